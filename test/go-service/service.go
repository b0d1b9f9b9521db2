// Package service answers the requests of tests to a Go program: one request per line, {"op": …, "input": …}, and one line for each
// answer: {"result": …} or {"error": …}. The order of the answers is the order of the requests.
package service

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// An Operation gets the input of the request and returns the result of the answer.
type Operation func(input json.RawMessage) (any, error)

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

// Serve answers the requests on standard input until it ends. The name is the program's, for messages.
func Serve(name string, operations map[string]Operation) {
	if err := serve(os.Stdin, os.Stdout, operations); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

func serve(requests io.Reader, answers io.Writer, operations map[string]Operation) error {
	in := bufio.NewReaderSize(requests, 1<<20)
	out := bufio.NewWriterSize(answers, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return out.Flush()
		}
		if err != nil {
			return err
		}
		if _, err := out.Write(append(encode(respond(line, operations)), '\n')); err != nil {
			return err
		}
		// The answers of requests that arrive together are written together.
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

func respond(line []byte, operations map[string]Operation) (given answer) {
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

// Decode reads the input of an operation. An unknown field is a mistake of the test. A number without a type becomes a json.Number,
// which keeps all its digits.
func Decode(input json.RawMessage, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(input))
	decoder.DisallowUnknownFields()
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("request: %w", err)
	}
	return nil
}
