// The program runs Prometheus' own parser and query engine for tests of the dashboard and the alerts.
package main

import service "inlay.dev/inlay/test/go-service"

func main() {
	service.Serve("promql", map[string]service.Operation{
		"selectors": selectors,
		"rules":     rules,
		"evaluate":  evaluate,
	})
}
