package main

import (
	"encoding/json"
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	service "inlay.dev/inlay/test/go-service"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Evaluates an expression of the Common Expression Language over an object, as a health check of Flux: without type checks, with the
// top-level fields of the object as variables, and with the library of strings. The result must be a boolean.
func init() {
	operations["cel"] = evaluate
}

func evaluate(input json.RawMessage) (any, error) {
	var asked struct {
		Expression string          `json:"expression"`
		Object     json.RawMessage `json:"object"`
	}
	if err := service.Decode(input, &asked); err != nil {
		return nil, err
	}
	var object unstructured.Unstructured
	if err := object.UnmarshalJSON(asked.Object); err != nil {
		return nil, err
	}
	env, err := cel.NewEnv(cel.HomogeneousAggregateLiterals(), cel.EagerlyValidateDeclarations(true), cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(), ext.Strings(), ext.Sets(), ext.Encoders())
	if err != nil {
		return nil, err
	}
	parsed, issues := env.Parse(asked.Expression)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	program, err := env.Program(parsed)
	if err != nil {
		return nil, err
	}
	value, _, err := program.Eval(object.Object)
	if err != nil {
		return nil, err
	}
	result, isBoolean := value.Value().(bool)
	if !isBoolean {
		return nil, fmt.Errorf("the expression is no boolean")
	}
	return result, nil
}
