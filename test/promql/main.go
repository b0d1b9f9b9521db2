// The program runs Prometheus' own parser and query engine for tests of the dashboard and the alerts. It reads one request per
// line, {"op": …, "input": …}, and answers each with one line: {"result": …} or {"error": …}.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

type request struct {
	Op    string          `json:"op"`
	Input json.RawMessage `json:"input"`
}

type answer struct {
	Result any    `json:"result"`
	Error  string `json:"error,omitempty"`
}

var operations = map[string]func(json.RawMessage) (any, error){
	"selectors": selectors,
	"rules":     rules,
	"evaluate":  evaluate,
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			return
		}
		if err != nil && err != io.EOF {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		out.Encode(answerTo(line))
	}
}

func answerTo(line []byte) answer {
	var asked request
	if err := json.Unmarshal(line, &asked); err != nil {
		return answer{Error: err.Error()}
	}
	run, known := operations[asked.Op]
	if !known {
		return answer{Error: "unknown operation " + asked.Op}
	}
	result, err := run(asked.Input)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Result: result}
}
