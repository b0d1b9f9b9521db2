package main

import (
	"encoding/json"

	"github.com/itchyny/gojq"
	service "inlay.dev/inlay/test/go-service"
)

// Removes what a jq path names from an object, as Argo CD does before it compares two objects.
func init() {
	operations["jq.remove"] = remove
}

func remove(input json.RawMessage) (any, error) {
	var asked struct {
		Path   string          `json:"path"`
		Object json.RawMessage `json:"object"`
	}
	if err := service.Decode(input, &asked); err != nil {
		return nil, err
	}
	// gojq knows int and float64, but no json.Number.
	var object any
	if err := json.Unmarshal(asked.Object, &object); err != nil {
		return nil, err
	}
	query, err := gojq.Parse("del(" + asked.Path + ")")
	if err != nil {
		return nil, err
	}
	code, err := gojq.Compile(query)
	if err != nil {
		return nil, err
	}
	result, _ := code.Run(object).Next()
	if failed, isError := result.(error); isError {
		return nil, failed
	}
	return result, nil
}
