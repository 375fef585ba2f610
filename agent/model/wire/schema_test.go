package wire_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"skein/agent/model"
	"skein/agent/model/wire"
)

func TestSchemas(t *testing.T) {
	refused := func(status int) error { return &model.Error{Provider: "p", Status: status, Message: "no"} }
	for _, tc := range []struct {
		name    string
		answers []error // one for each exchange, then nil
		want    []bool  // which exchanges had a schema; the client is asked twice
		fails   bool    // the first time
	}{
		{"a schema is taken", nil, []bool{true, true}, false},
		{"a schema is refused", []error{refused(400)}, []bool{true, false, false}, false},
		{"a schema is unprocessable", []error{refused(422)}, []bool{true, false, false}, false},
		{"all is refused", []error{refused(400), refused(400)}, []bool{true, false, true}, true},
		{"the second is not answered", []error{refused(400), refused(429)}, []bool{true, false, true}, true},
		{"another failure", []error{refused(401)}, []bool{true, true}, true},
		{"too long", []error{&model.Error{Status: 400, TooLong: true}}, []bool{true, true}, true},
		{"no answer", []error{errors.New("cut")}, []bool{true, true}, true},
	} {
		var asked []bool
		exchange := func(_ context.Context, req model.Request) (model.Reply, error) {
			asked = append(asked, req.Schema != nil)
			if n := len(asked) - 1; n < len(tc.answers) {
				return model.Reply{}, tc.answers[n]
			}
			return model.Reply{}, nil
		}
		var s wire.Schemas
		req := model.Request{Schema: json.RawMessage(`{}`)}
		_, first := s.Ask(t.Context(), req, exchange)
		if _, err := s.Ask(t.Context(), req, exchange); err != nil {
			t.Errorf("%s: second Ask = %v", tc.name, err)
		}
		if !slices.Equal(asked, tc.want) || (first != nil) != tc.fails {
			t.Errorf("%s: schemas sent %v, %v, want %v, failure %t", tc.name, asked, first, tc.want, tc.fails)
		}
	}
}
