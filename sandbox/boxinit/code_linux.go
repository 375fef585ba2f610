package boxinit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"reflect"
)

// Messages are structs, written field by field: numbers as varints, strings and lists after
// their lengths. Strings are of any bytes, as paths, arguments and environments are. JSON would
// change these, and take an init a third of the memory that it may have. What a message
// begins with stands for the names and kinds of its fields: an init of another version must not
// build a box without what it does not know.

// errVersion is the answer to a message with other fields.
var errVersion = errors.New("message of another version: skein and skein-init have to be of one build")

// layout stands for the names and kinds of a message's fields.
func layout(t reflect.Type) uint64 {
	h := fnv.New64a()
	describe(h, t)
	return h.Sum64()
}

func describe(w io.Writer, t reflect.Type) {
	_, _ = io.WriteString(w, t.Kind().String()) // a hash takes all
	switch t.Kind() {
	case reflect.Slice, reflect.Pointer:
		describe(w, t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			_, _ = io.WriteString(w, t.Field(i).Name)
			describe(w, t.Field(i).Type)
		}
	}
}

// encode appends a message.
func encode(b []byte, v reflect.Value) ([]byte, error) {
	return appendValue(binary.BigEndian.AppendUint64(b, layout(v.Type())), v)
}

func appendValue(b []byte, v reflect.Value) ([]byte, error) {
	var err error
	switch v.Kind() {
	case reflect.String:
		return append(binary.AppendUvarint(b, uint64(v.Len())), v.String()...), nil
	case reflect.Bool:
		if v.Bool() {
			return append(b, 1), nil
		}
		return append(b, 0), nil
	case reflect.Int, reflect.Int64:
		return binary.AppendVarint(b, v.Int()), nil
	case reflect.Uint8, reflect.Uint32:
		return binary.AppendUvarint(b, v.Uint()), nil
	case reflect.Slice:
		b = binary.AppendUvarint(b, uint64(v.Len()))
		for i := 0; i < v.Len() && err == nil; i++ {
			b, err = appendValue(b, v.Index(i))
		}
		return b, err
	case reflect.Pointer:
		if v.IsNil() {
			return append(b, 0), nil
		}
		return appendValue(append(b, 1), v.Elem())
	case reflect.Struct:
		for i := 0; i < v.NumField() && err == nil; i++ {
			b, err = appendValue(b, v.Field(i))
		}
		return b, err
	}
	return nil, fmt.Errorf("no message has a %s", v.Type())
}

// decode reads a message, all of it. Its strings are parts of the body.
func decode(body string, v reflect.Value) error {
	const mark = 8
	if len(body) < mark {
		return io.ErrUnexpectedEOF
	}
	if binary.BigEndian.Uint64([]byte(body[:mark])) != layout(v.Type()) {
		return errVersion
	}
	p := parser{body[mark:]}
	if err := p.value(v); err != nil {
		return err
	}
	if p.rest != "" {
		return fmt.Errorf("message with %d bytes more than it says", len(p.rest))
	}
	return nil
}

// A parser holds what is left of a message.
type parser struct{ rest string }

func (p *parser) value(v reflect.Value) error {
	if v.Kind() == reflect.Struct {
		for i := range v.NumField() {
			if err := p.value(v.Field(i)); err != nil {
				return err
			}
		}
		return nil
	}
	n, err := p.number()
	if err != nil {
		return err
	}
	switch v.Kind() {
	case reflect.String:
		if n > uint64(len(p.rest)) {
			return io.ErrUnexpectedEOF
		}
		v.SetString(p.rest[:n])
		p.rest = p.rest[n:]
	case reflect.Bool:
		v.SetBool(n != 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(n>>1) ^ -int64(n&1)) // as varints have their signs
	case reflect.Uint8, reflect.Uint32:
		v.SetUint(n)
	case reflect.Slice:
		return p.list(v, n)
	case reflect.Pointer:
		if n == 0 {
			return nil
		}
		v.Set(reflect.New(v.Type().Elem()))
		return p.value(v.Elem())
	}
	return nil
}

// list reads n elements, each of which takes a byte at least.
func (p *parser) list(v reflect.Value, n uint64) error {
	if n > uint64(len(p.rest)) {
		return io.ErrUnexpectedEOF
	}
	if n == 0 {
		return nil
	}
	v.Set(reflect.MakeSlice(v.Type(), int(n), int(n)))
	for i := range v.Len() {
		if err := p.value(v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) number() (n uint64, err error) {
	for i := range min(len(p.rest), binary.MaxVarintLen64) {
		c := p.rest[i]
		n |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			p.rest = p.rest[i+1:]
			return n, nil
		}
	}
	return 0, io.ErrUnexpectedEOF
}
