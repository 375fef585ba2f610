package rawjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// An Object is a JSON object that is put together from pieces, as streams bring them. Its
// keys stand in the order of their first appearance, and texts keep the bytes they came
// with: the same pieces always make the same object. The zero value is an empty object.
type Object struct {
	keys   []string
	fields map[string]*field
}

// A field is null until it gets a value in one of these forms.
type field struct {
	raw    json.RawMessage // as it came
	text   []byte          // '"' and the inside of a string so far, still escaped
	object *Object
	list   []element
}

// An element of a list is kept as it came, or grows if it carries an index.
type element struct {
	index  int
	raw    json.RawMessage
	object *Object
}

// names are the fields that say what a thing is. A server that repeats one in each piece
// means it once.
var names = []string{"role", "id", "type", "name", "format"}

// Merge adds a piece: an object whose texts continue those that are there already and whose
// lists are joined to them; a list's element with an "index" continues the one of the same
// index. Other values replace what was there, null nothing.
func (o *Object) Merge(piece json.RawMessage) error { return Each(piece, o.Add) }

// Add adds a piece of one field.
func (o *Object) Add(key string, value json.RawMessage) error {
	f := o.field(key)
	value = bytes.TrimSpace(value)
	if len(value) == 0 {
		return fmt.Errorf("field %q has no value", key)
	}
	switch value[0] {
	case 'n': // null
	case '"':
		f.write(key, value)
	case '{':
		if f.object == nil {
			*f = field{object: &Object{}}
		}
		return f.object.Merge(value)
	case '[':
		return f.extend(value)
	default:
		*f = field{raw: bytes.Clone(value)}
	}
	return nil
}

// Set gives a field a value, whatever it was.
func (o *Object) Set(key string, value json.RawMessage) { *o.field(key) = field{raw: value} }

// Has reports whether the field was named, if only as null.
func (o *Object) Has(key string) bool { return o.fields[key] != nil }

// Text returns a field that is a text, decoded.
func (o *Object) Text(key string) string {
	if f := o.fields[key]; f != nil && f.text != nil {
		return Text(f.bytes())
	}
	return ""
}

// Bytes returns the object's JSON.
func (o *Object) Bytes() json.RawMessage {
	out := []byte{'{'}
	for i, key := range o.keys {
		if i > 0 {
			out = append(out, ',')
		}
		name, _ := Encode(key) // a text always encodes
		out = append(append(out, name...), ':')
		out = append(out, o.fields[key].bytes()...)
	}
	return append(out, '}')
}

func (o *Object) field(key string) *field {
	f := o.fields[key]
	if f == nil {
		if o.fields == nil {
			o.fields = map[string]*field{}
		}
		f = &field{}
		o.keys, o.fields[key] = append(o.keys, key), f
	}
	return f
}

// write continues a text with the inside of another one.
func (f *field) write(key string, quoted json.RawMessage) {
	if f.text == nil {
		*f = field{text: []byte{'"'}}
	}
	inside := quoted[1 : len(quoted)-1]
	if slices.Contains(names, key) && bytes.Equal(f.text[1:], inside) {
		return
	}
	f.text = append(f.text, inside...)
}

func (f *field) extend(list json.RawMessage) error {
	if f.list == nil {
		*f = field{list: []element{}}
	}
	return Each(list, func(_ string, one json.RawMessage) error {
		var head struct {
			Index *int `json:"index"`
		}
		if one[0] != '{' || json.Unmarshal(one, &head) != nil || head.Index == nil {
			f.list = append(f.list, element{index: -1, raw: bytes.Clone(one)})
			return nil
		}
		i := slices.IndexFunc(f.list, func(e element) bool { return e.object != nil && e.index == *head.Index })
		if i < 0 {
			i = len(f.list)
			f.list = append(f.list, element{index: *head.Index, object: &Object{}})
		}
		return f.list[i].object.Merge(one)
	})
}

func (f *field) bytes() []byte {
	switch {
	case f.text != nil:
		return append(slices.Clip(f.text), '"')
	case f.object != nil:
		return f.object.Bytes()
	case f.list != nil:
		return List(f.list, func(e element) json.RawMessage {
			if e.object != nil {
				return e.object.Bytes()
			}
			return e.raw
		})
	case f.raw != nil:
		return f.raw
	}
	return []byte("null")
}

// List returns a JSON list of what raw gives for each element.
func List[E any](elements []E, raw func(E) json.RawMessage) json.RawMessage {
	out := []byte{'['}
	for i, e := range elements {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, raw(e)...)
	}
	return append(out, ']')
}
