// Package rawjson works on JSON as bytes: it reads objects in the order they were written,
// changes single values in place, and puts objects together from the pieces of a stream.
// Bytes that need no change stay as they are, so what was received once is sent again the
// same.
package rawjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// Encode gives v's JSON with <, > and & as they are: models read it.
func Encode(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// Given reports whether a value is there and not null.
func Given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// IsObject reports whether raw is one whole JSON object.
func IsObject(raw []byte) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && raw[0] == '{' && json.Valid(raw)
}

// Text reads a JSON string; anything else is no text.
func Text(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}

// Each calls do with every value of an object or list, in the order in which they stand
// there. Elements of a list have no key.
func Each(whole json.RawMessage, do func(key string, value json.RawMessage) error) error {
	return walk(whole, func(key string, value json.RawMessage, _ int64) error { return do(key, value) })
}

// Edit returns an object or list with change applied to each of its values; the bytes
// between the values stay as they are. Elements of a list have no key.
func Edit(whole json.RawMessage, change func(key string, value json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
	out := make([]byte, 0, len(whole))
	done := int64(0) // bytes of whole that out has already
	err := walk(whole, func(key string, value json.RawMessage, end int64) error {
		changed, err := change(key, value)
		out = append(out, whole[done:end-int64(len(value))]...)
		out = append(out, changed...)
		done = end
		return err
	})
	if err != nil {
		return nil, err
	}
	return append(out, whole[done:]...), nil
}

// walk calls do with every value and the place in whole where it ends.
func walk(whole json.RawMessage, do func(key string, value json.RawMessage, end int64) error) error {
	dec := json.NewDecoder(bytes.NewReader(whole))
	open, err := dec.Token()
	if err != nil {
		return err
	}
	if open != json.Delim('{') && open != json.Delim('[') {
		return fmt.Errorf("found %v where an object or a list was expected", open)
	}
	for dec.More() {
		key := ""
		if open == json.Delim('{') {
			t, err := dec.Token()
			if err != nil {
				return err
			}
			key, _ = t.(string)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
		if err := do(key, value, dec.InputOffset()); err != nil {
			return err
		}
	}
	_, err = dec.Token() // the end has to be there
	return err
}

// SetField returns an object with one field's value changed and every other byte as it was.
// A field that is not there yet is put in front.
func SetField(whole json.RawMessage, key string, value json.RawMessage) (json.RawMessage, error) {
	if !IsObject(whole) {
		return nil, fmt.Errorf("set field %q: found no object", key)
	}
	found := false
	out, err := Edit(whole, func(k string, old json.RawMessage) (json.RawMessage, error) {
		if k != key {
			return old, nil
		}
		found = true
		return value, nil
	})
	if err != nil || found {
		return out, err
	}
	name, err := Encode(key)
	if err != nil {
		return nil, err
	}
	rest := bytes.TrimSpace(whole)[1:]
	sep := ","
	if bytes.TrimSpace(rest)[0] == '}' {
		sep = ""
	}
	return slices.Concat([]byte("{"), name, []byte(":"), value, []byte(sep), rest), nil
}
