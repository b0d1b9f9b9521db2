module inlay.dev/inlay/test/go-service

go 1.25.9
