package main

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/adler32"
	"regexp"
	"strconv"
	"strings"

	service "inlay.dev/inlay/test/go-service"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Runs Go's own packages, and apimachinery's quantities, on values: formats, texts, conversions. Values are sent with
// their types, since JSON has one type for int64 and float64: {"int64": "1"}, {"float64": "1"}, {"string": base64},
// {"bool": true}, {"null": true}, {"list": […]} and {"object": {…}}.
func init() {
	operations["value.format"] = format
	operations["value.text"] = text
	operations["value.regexp"] = find
	operations["value.convert"] = convert
}

func format(input json.RawMessage) (any, error) {
	var asked struct {
		Format string            `json:"format"`
		Values []json.RawMessage `json:"values"`
	}
	if err := service.Decode(input, &asked); err != nil {
		return nil, err
	}
	values := make([]any, len(asked.Values))
	for i, each := range asked.Values {
		value, err := untag(each)
		if err != nil {
			return nil, err
		}
		values[i] = value
	}
	return tag(fmt.Sprintf(asked.Format, values...))
}

// The string transforms of the type Convert.
func text(input json.RawMessage) (any, error) {
	var asked struct {
		Convert string          `json:"convert"`
		Value   json.RawMessage `json:"value"`
	}
	if err := service.Decode(input, &asked); err != nil {
		return nil, err
	}
	value, err := untag(asked.Value)
	if err != nil {
		return nil, err
	}
	plain := fmt.Sprintf("%v", value)
	switch asked.Convert {
	case "ToUpper":
		return tag(strings.ToUpper(plain))
	case "ToLower":
		return tag(strings.ToLower(plain))
	case "ToBase64":
		return tag(base64.StdEncoding.EncodeToString([]byte(plain)))
	case "FromBase64":
		made, err := base64.StdEncoding.DecodeString(plain)
		if err != nil {
			return nil, err
		}
		return tag(string(made))
	}
	written, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	if asked.Convert == "ToJson" {
		return tag(string(written))
	}
	if of, ok := value.(string); ok {
		written = []byte(of)
	}
	switch asked.Convert {
	case "ToSha1":
		sum := sha1.Sum(written)
		return tag(hex.EncodeToString(sum[:]))
	case "ToSha256":
		sum := sha256.Sum256(written)
		return tag(hex.EncodeToString(sum[:]))
	case "ToSha512":
		sum := sha512.Sum512(written)
		return tag(hex.EncodeToString(sum[:]))
	case "ToAdler32":
		return tag(strconv.FormatUint(uint64(adler32.Checksum(written)), 10))
	}
	return nil, fmt.Errorf("request: no conversion %q", asked.Convert)
}

func find(input json.RawMessage) (any, error) {
	var asked struct {
		Match string `json:"match"`
		Group int    `json:"group"`
		Text  string `json:"text"`
	}
	if err := service.Decode(input, &asked); err != nil {
		return nil, err
	}
	pattern, err := regexp.Compile(asked.Match)
	if err != nil {
		return nil, err
	}
	groups := pattern.FindStringSubmatch(asked.Text)
	if asked.Group >= len(groups) {
		return nil, errors.New("no such match")
	}
	return tag(groups[asked.Group])
}

// The pairs of function-patch-and-transform.
func convert(input json.RawMessage) (any, error) {
	var asked struct {
		Value  json.RawMessage `json:"value"`
		ToType string          `json:"toType"`
		Format string          `json:"format"`
	}
	if err := service.Decode(input, &asked); err != nil {
		return nil, err
	}
	value, err := untag(asked.Value)
	if err != nil {
		return nil, err
	}
	to := asked.ToType
	if to == "int" {
		to = "int64"
	}
	from := fmt.Sprintf("%T", value)
	if from == to {
		return tag(value)
	}
	var made any
	switch from + " " + to + " " + asked.Format {
	case "string int64 none":
		made, err = strconv.ParseInt(value.(string), 10, 64)
	case "string bool none":
		made, err = strconv.ParseBool(value.(string))
	case "string float64 none":
		made, err = strconv.ParseFloat(value.(string), 64)
	case "string float64 quantity":
		var quantity resource.Quantity
		quantity, err = resource.ParseQuantity(value.(string))
		made = quantity.AsApproximateFloat64()
	case "string object json":
		var object map[string]any
		err = unmarshal(value.(string), &object)
		made = object
	case "string array json":
		var list []any
		err = unmarshal(value.(string), &list)
		made = list
	case "int64 string none":
		made = strconv.FormatInt(value.(int64), 10)
	case "int64 bool none":
		made = value.(int64) == 1
	case "int64 float64 none":
		made = float64(value.(int64))
	case "bool string none":
		made = strconv.FormatBool(value.(bool))
	case "bool int64 none":
		made = map[bool]int64{true: 1}[value.(bool)]
	case "bool float64 none":
		made = map[bool]float64{true: 1}[value.(bool)]
	case "float64 string none":
		made = strconv.FormatFloat(value.(float64), 'f', -1, 64)
	case "float64 int64 none":
		made = int64(value.(float64))
	case "float64 bool none":
		made = value.(float64) == 1
	default:
		err = fmt.Errorf("%s is not converted to %s", from, to)
	}
	if err != nil {
		return nil, err
	}
	return tag(made)
}

func unmarshal(text string, into any) error {
	return json.Unmarshal([]byte(text), into)
}

func untag(input json.RawMessage) (any, error) {
	var tagged struct {
		Int64   *string                     `json:"int64"`
		Float64 *string                     `json:"float64"`
		String  *[]byte                     `json:"string"`
		Bool    *bool                       `json:"bool"`
		Null    bool                        `json:"null"`
		List    *[]json.RawMessage          `json:"list"`
		Object  *map[string]json.RawMessage `json:"object"`
	}
	if err := service.Decode(input, &tagged); err != nil {
		return nil, err
	}
	switch {
	case tagged.Int64 != nil:
		return strconv.ParseInt(*tagged.Int64, 10, 64)
	case tagged.Float64 != nil:
		return strconv.ParseFloat(*tagged.Float64, 64)
	case tagged.String != nil:
		return string(*tagged.String), nil
	case tagged.Bool != nil:
		return *tagged.Bool, nil
	case tagged.List != nil:
		list := make([]any, len(*tagged.List))
		for i, each := range *tagged.List {
			value, err := untag(each)
			if err != nil {
				return nil, err
			}
			list[i] = value
		}
		return list, nil
	case tagged.Object != nil:
		object := map[string]any{}
		for key, each := range *tagged.Object {
			value, err := untag(each)
			if err != nil {
				return nil, err
			}
			object[key] = value
		}
		return object, nil
	}
	if !tagged.Null {
		return nil, fmt.Errorf("request: no value in %s", bytes.TrimSpace(input))
	}
	return nil, nil
}

func tag(value any) (any, error) {
	switch v := value.(type) {
	case nil:
		return map[string]any{"null": true}, nil
	case int64:
		return map[string]any{"int64": strconv.FormatInt(v, 10)}, nil
	case float64:
		return map[string]any{"float64": strconv.FormatFloat(v, 'g', -1, 64)}, nil
	case string:
		return map[string]any{"string": []byte(v)}, nil
	case bool:
		return map[string]any{"bool": v}, nil
	case []any:
		if v == nil {
			return tag(nil)
		}
		list := make([]any, len(v))
		for i, each := range v {
			list[i], _ = tag(each)
		}
		return map[string]any{"list": list}, nil
	case map[string]any:
		if v == nil {
			return tag(nil)
		}
		object := map[string]any{}
		for key, each := range v {
			object[key], _ = tag(each)
		}
		return map[string]any{"object": object}, nil
	}
	return nil, fmt.Errorf("request: no tag for %T", value)
}
