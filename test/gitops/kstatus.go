package main

import (
	"encoding/json"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Computes the status of an object by the rules of kstatus, which Flux, kpt and others use.
func init() {
	operations["kstatus"] = kstatus
}

func kstatus(input json.RawMessage) (any, error) {
	var object unstructured.Unstructured
	if err := object.UnmarshalJSON(input); err != nil {
		return nil, err
	}
	found, err := status.Compute(&object)
	if err != nil {
		return nil, err
	}
	return map[string]any{"status": found.Status.String(), "message": found.Message}, nil
}
