package main

import (
	"encoding/json"

	"github.com/argoproj/gitops-engine/pkg/diff"
	openapi "github.com/google/gnostic-models/openapiv2"
	service "inlay.dev/inlay/test/go-service"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/util/proto"
)

// Compares objects of git with the cluster's, as Argo CD does: with the option ServerSideApply=true as a manager, and without it.
func init() {
	operations["diff"] = compare
}

// The field manager of Argo CD.
const manager = "argocd-controller"

type pair struct {
	Git  unstructured.Unstructured `json:"git"`
	Live unstructured.Unstructured `json:"live"`
}

func compare(input json.RawMessage) (any, error) {
	var asked struct {
		// The answer of /openapi/v2, from which Argo CD learns which lists are atomic.
		Schemas json.RawMessage `json:"schemas"`
		Pairs   []pair          `json:"pairs"`
	}
	if err := service.Decode(input, &asked); err != nil {
		return nil, err
	}
	document, err := openapi.ParseDocument(asked.Schemas)
	if err != nil {
		return nil, err
	}
	models, err := proto.NewOpenAPIData(document)
	if err != nil {
		return nil, err
	}
	parser, err := managedfields.NewGVKParser(models, false)
	if err != nil {
		return nil, err
	}
	results := make([]map[string]any, 0, len(asked.Pairs))
	for _, each := range asked.Pairs {
		result := map[string]any{}
		for name, options := range map[string][]diff.Option{
			"serverSide": {diff.WithStructuredMergeDiff(true), diff.WithManager(manager), diff.WithGVKParser(parser)},
			"clientSide": {},
		} {
			found, err := diff.Diff(each.Git.DeepCopy(), each.Live.DeepCopy(), options...)
			if err != nil {
				return nil, err
			}
			if found.Modified {
				result[name] = map[string]any{
					"live": json.RawMessage(found.NormalizedLive), "predicted": json.RawMessage(found.PredictedLive),
				}
			}
		}
		results = append(results, result)
	}
	return results, nil
}
