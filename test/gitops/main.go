// The program runs a value through the code with which GitOps tools judge and compare objects: Argo CD's Lua interpreter with the
// libraries that Argo CD opens, jq, kstatus, and the Common Expression Language of Flux's health checks.
package main

import service "inlay.dev/inlay/test/go-service"

// operations has all operations by name. Each file adds its own in init.
var operations = map[string]service.Operation{}

func main() { service.Serve("gitops", operations) }
