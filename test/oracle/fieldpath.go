package main

import (
	"encoding/json"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	service "inlay.dev/inlay/test/go-service"
	kjson "k8s.io/apimachinery/pkg/util/json"
)

// Runs Crossplane's field paths on an object: parse, get, set, delete, expand, merge.
func init() {
	operations["path.parse"] = parsePath
	operations["path.get"] = onObject(func(paved *fieldpath.Paved, asked pathRequest) (any, error) {
		value, err := paved.GetValue(asked.Path)
		if fieldpath.IsNotFound(err) {
			return map[string]any{"missing": true}, nil
		}
		return map[string]any{"value": value}, err
	})
	operations["path.set"] = onObject(func(paved *fieldpath.Paved, asked pathRequest) (any, error) {
		value, err := asked.value()
		if err != nil {
			return nil, err
		}
		return changed(paved, paved.SetValue(asked.Path, value))
	})
	operations["path.delete"] = onObject(func(paved *fieldpath.Paved, asked pathRequest) (any, error) {
		return changed(paved, paved.DeleteField(asked.Path))
	})
	operations["path.expand"] = onObject(func(paved *fieldpath.Paved, asked pathRequest) (any, error) {
		paths, err := paved.ExpandWildcards(asked.Path)
		if fieldpath.IsNotFound(err) {
			return map[string]any{"missing": true}, nil
		}
		return map[string]any{"paths": paths}, err
	})
	operations["path.merge"] = onObject(func(paved *fieldpath.Paved, asked pathRequest) (any, error) {
		value, err := asked.value()
		if err != nil {
			return nil, err
		}
		return changed(paved, paved.MergeValue(asked.Path, value, asked.Options))
	})
}

type pathRequest struct {
	Object  json.RawMessage         `json:"object"`
	Path    string                  `json:"path"`
	Value   json.RawMessage         `json:"value,omitempty"`
	Options *fieldpath.MergeOptions `json:"options,omitempty"`
}

// value parses JSON as Kubernetes does: whole numbers are int64.
func (asked pathRequest) value() (any, error) {
	var value any
	err := kjson.Unmarshal(asked.Value, &value)
	return value, err
}

func onObject(operate func(*fieldpath.Paved, pathRequest) (any, error)) service.Operation {
	return func(input json.RawMessage) (any, error) {
		var asked pathRequest
		if err := service.Decode(input, &asked); err != nil {
			return nil, err
		}
		object := map[string]any{}
		if err := kjson.Unmarshal(asked.Object, &object); err != nil {
			return nil, err
		}
		return operate(fieldpath.Pave(object), asked)
	}
}

func changed(paved *fieldpath.Paved, err error) (any, error) {
	return map[string]any{"object": paved.UnstructuredContent()}, err
}

func parsePath(input json.RawMessage) (any, error) {
	var asked struct {
		Path string `json:"path"`
	}
	if err := service.Decode(input, &asked); err != nil {
		return nil, err
	}
	segments, err := fieldpath.Parse(asked.Path)
	if err != nil {
		return nil, err
	}
	steps := make([]map[string]any, len(segments))
	for n, segment := range segments {
		if segment.Type == fieldpath.SegmentIndex {
			steps[n] = map[string]any{"index": segment.Index}
		} else {
			steps[n] = map[string]any{"key": segment.Field}
		}
	}
	return steps, nil
}
