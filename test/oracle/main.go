// The oracle runs Crossplane's field paths and Go's own formats and conversions on a value, for tests that compare Inlay with them.
package main

import service "inlay.dev/inlay/test/go-service"

// operations has all operations by name. Each file adds its own in init.
var operations = map[string]service.Operation{}

func main() { service.Serve("oracle", operations) }
