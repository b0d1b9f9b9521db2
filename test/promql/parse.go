// Parses expressions and files of rules.
package main

import (
	"encoding/json"
	"errors"
	"log/slog"
	"sort"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	service "inlay.dev/inlay/test/go-service"
)

var promqlParser = parser.NewParser(parser.Options{})

type matcher struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Value string `json:"value"`
}

// A selected metric, with its matchers, and the labels by which the expression groups or joins its result.
type selector struct {
	Metric   string    `json:"metric"`
	Matchers []matcher `json:"matchers"`
	Grouping []string  `json:"grouping"`
}

// selectors returns what an expression selects. It fails if the expression is not PromQL.
func selectors(input json.RawMessage) (any, error) {
	var text string
	if err := service.Decode(input, &text); err != nil {
		return nil, err
	}
	expression, err := promqlParser.ParseExpr(text)
	if err != nil {
		return nil, err
	}
	found := []selector{}
	parser.Inspect(expression, func(node parser.Node, path []parser.Node) error {
		if vector, is := node.(*parser.VectorSelector); is {
			found = append(found, selector{vector.Name, matchersOf(vector), groupingOf(path)})
		}
		return nil
	})
	return found, nil
}

func matchersOf(vector *parser.VectorSelector) []matcher {
	found := []matcher{}
	for _, each := range vector.LabelMatchers {
		if each.Name != labels.MetricName {
			found = append(found, matcher{each.Name, each.Type.String(), each.Value})
		}
	}
	return found
}

func groupingOf(path []parser.Node) []string {
	names := map[string]bool{}
	for _, node := range path {
		switch each := node.(type) {
		case *parser.AggregateExpr:
			for _, name := range each.Grouping {
				names[name] = true
			}
		case *parser.BinaryExpr:
			if each.VectorMatching != nil {
				for _, name := range each.VectorMatching.MatchingLabels {
					names[name] = true
				}
			}
		}
	}
	found := []string{}
	for name := range names {
		found = append(found, name)
	}
	sort.Strings(found)
	return found
}

// rules checks a file of rules as Prometheus does when it loads it, with the templates of labels and annotations.
func rules(input json.RawMessage) (any, error) {
	var text string
	if err := service.Decode(input, &text); err != nil {
		return nil, err
	}
	groups, problems := rulefmt.Parse([]byte(text), false, model.LegacyValidation, promqlParser, slog.New(slog.DiscardHandler))
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	count := 0
	for _, each := range groups.Groups {
		count += len(each.Rules)
	}
	return count, nil
}
