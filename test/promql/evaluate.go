// Evaluates expressions over scrapes, in memory.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
	service "inlay.dev/inlay/test/go-service"
)

// A scrape is the answer of a target to GET /metrics at a time, in seconds. Without a text, the target was down.
type scrape struct {
	At       float64 `json:"at"`
	Instance string  `json:"instance"`
	Text     string  `json:"text"`
}

type evaluation struct {
	Expr    string   `json:"expr"`
	Scrapes []scrape `json:"scrapes"`
	// Seconds: the first and last evaluation, and the time between two.
	Start float64 `json:"start"`
	End   float64 `json:"end"`
	Step  float64 `json:"step"`
}

// A result is a series with the times at which the expression has a value for its labels.
type result struct {
	Labels map[string]string `json:"labels"`
	Times  []float64         `json:"times"`
}

// evaluate runs a range query over the scrapes, each scrape with the series up of Prometheus.
func evaluate(input json.RawMessage) (any, error) {
	var asked evaluation
	if err := service.Decode(input, &asked); err != nil {
		return nil, err
	}
	stored, err := store(asked.Scrapes)
	if err != nil {
		return nil, err
	}
	engine := promqlEngine()
	defer engine.Close()
	query, err := engine.NewRangeQuery(context.Background(), stored, nil, asked.Expr, moment(asked.Start), moment(asked.End),
		time.Duration(asked.Step*float64(time.Second)))
	if err != nil {
		return nil, err
	}
	defer query.Close()
	matrix, err := query.Exec(context.Background()).Matrix()
	if err != nil {
		return nil, err
	}
	found := []result{}
	for _, series := range matrix {
		times := []float64{}
		for _, point := range series.Floats {
			times = append(times, float64(point.T)/1000)
		}
		found = append(found, result{series.Metric.Map(), times})
	}
	return found, nil
}

func promqlEngine() *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{
		MaxSamples:           10_000_000,
		Timeout:              time.Minute,
		EnableAtModifier:     true,
		EnableNegativeOffset: true,
		Parser:               promqlParser,
	})
}

func moment(seconds float64) time.Time { return time.UnixMilli(int64(seconds * 1000)) }

type series struct {
	labels  labels.Labels
	samples []chunks.Sample
}

// A memory answers the selectors of the engine from all series.
type memory map[uint64]*series

func store(scrapes []scrape) (memory, error) {
	all := memory{}
	for _, each := range scrapes {
		at := int64(each.At * 1000)
		target := map[string]string{"job": "inlay", "instance": each.Instance}
		up := 0.0
		if each.Text != "" {
			up = 1
			if err := all.read(each.Text, at, target); err != nil {
				return nil, err
			}
		}
		target[labels.MetricName] = "up"
		all.add(labels.FromMap(target), at, up)
	}
	return all, nil
}

func (all memory) read(text string, at int64, target map[string]string) error {
	parsed := textparse.NewPromParser([]byte(text), labels.NewSymbolTable(), false)
	for {
		entry, err := parsed.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var own labels.Labels
		_, _, value := parsed.Series()
		parsed.Labels(&own)
		builder := labels.NewBuilder(own)
		for name, label := range target {
			builder.Set(name, label)
		}
		all.add(builder.Labels(), at, value)
	}
}

func (all memory) add(own labels.Labels, at int64, value float64) {
	known, exists := all[own.Hash()]
	if !exists {
		known = &series{labels: own}
		all[own.Hash()] = known
	}
	known.samples = append(known.samples, sample{at, value})
}

func (all memory) Querier(_, _ int64) (storage.Querier, error) { return querier{all}, nil }

type querier struct{ all memory }

func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	found := []storage.Series{}
	for _, each := range q.all {
		if matches(each.labels, matchers) {
			found = append(found, storage.NewListSeries(each.labels, each.samples))
		}
	}
	return &set{rest: found}
}

func matches(own labels.Labels, matchers []*labels.Matcher) bool {
	for _, each := range matchers {
		if !each.Matches(own.Get(each.Name)) {
			return false
		}
	}
	return true
}

func (querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (querier) Close() error { return nil }

type set struct {
	now  storage.Series
	rest []storage.Series
}

func (s *set) Next() bool {
	if len(s.rest) == 0 {
		return false
	}
	s.now, s.rest = s.rest[0], s.rest[1:]
	return true
}

func (s *set) At() storage.Series              { return s.now }
func (*set) Err() error                        { return nil }
func (*set) Warnings() annotations.Annotations { return nil }

type sample struct {
	at    int64
	value float64
}

func (s sample) T() int64                    { return s.at }
func (sample) ST() int64                     { return 0 }
func (s sample) F() float64                  { return s.value }
func (sample) H() *histogram.Histogram       { return nil }
func (sample) FH() *histogram.FloatHistogram { return nil }
func (sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample         { return s }
