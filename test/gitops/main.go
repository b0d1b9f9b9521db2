// The program runs a value through the code with which GitOps tools judge and compare objects: Argo CD's Lua interpreter with the
// libraries that Argo CD opens, jq, kstatus, and the Common Expression Language of Flux's health checks. It reads one request per line,
// {"op": …, "input": …}, and answers each with one line: {"result": …} or {"error": …}, in the order of the requests.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// An operation gets the input of the request and returns the result of the answer.
type operation func(input json.RawMessage) (any, error)

// operations has all operations by name. Each file adds its own in init.
var operations = map[string]operation{}

type request struct {
	Op    string          `json:"op"`
	Input json.RawMessage `json:"input"`
}

// An answer has a result or an error. The result may be null.
type answer struct {
	result any
	err    string
}

func (given answer) MarshalJSON() ([]byte, error) {
	if given.err != "" {
		return json.Marshal(map[string]any{"error": given.err})
	}
	return json.Marshal(map[string]any{"result": given.result})
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			fail(err)
		}
		if _, err := out.Write(append(encode(respond(line)), '\n')); err != nil {
			fail(err)
		}
		// The answers of requests that arrive together are written together.
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				fail(err)
			}
		}
	}
	if err := out.Flush(); err != nil {
		fail(err)
	}
}

func respond(line []byte) (given answer) {
	// A panic becomes an error, so that the next request is answered too.
	defer func() {
		if panicked := recover(); panicked != nil {
			given = answer{err: fmt.Sprintf("panic: %v", panicked)}
		}
	}()
	var asked request
	if err := json.Unmarshal(line, &asked); err != nil {
		return answer{err: fmt.Sprintf("request: %v", err)}
	}
	operate, ok := operations[asked.Op]
	if !ok {
		return answer{err: fmt.Sprintf("request: no operation %q", asked.Op)}
	}
	result, err := operate(asked.Input)
	if err != nil {
		return answer{err: err.Error()}
	}
	return answer{result: result}
}

func encode(value answer) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		text, _ = json.Marshal(answer{err: fmt.Sprintf("answer: %v", err)})
	}
	return text
}

// decode reads an operation's input; an unknown field is an error in the test. Use UseNumber's json.Number
// or json.RawMessage in the struct for numbers that have to survive.
func decode(input json.RawMessage, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(input))
	decoder.DisallowUnknownFields()
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("request: %w", err)
	}
	return nil
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "gitops:", err)
	os.Exit(1)
}
