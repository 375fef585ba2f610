package modeltest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"testing"
)

// schemaRefused checks that a model without structured output answers all the same, and is
// asked for it once.
func schemaRefused(t *testing.T, m *mode) {
	const mark = "field_of_the_schema"
	srv, _ := m.serve(t, "- say: '{}'\n")
	to, err := url.Parse(srv.Root())
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(to)
	pass.Transport = &http.Transport{DisableKeepAlives: true}
	var asked []bool // whether with a schema
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read the request: %v", err)
		}
		asked = append(asked, bytes.Contains(body, []byte(mark)))
		if asked[len(asked)-1] {
			http.Error(w, `{"error":{"message":"This response_format type is unavailable now"}}`, http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		pass.ServeHTTP(w, r)
	}))
	defer web.Close()
	c := m.Connect(t, web.URL+m.dialect.base, m.stream)
	_, tr, err := ask(t.Context(), t, c, "hello", nil)
	for n := 2; err == nil && n < 4; n++ {
		req := turn(tr, n)
		req.Schema = json.RawMessage(`{"type":"object","properties":{"` + mark + `":{"type":"string"}}}`)
		_, err = c.Exchange(t.Context(), req)
	}
	if want := []bool{false, true, false, false}; err != nil || !slices.Equal(asked, want) {
		t.Errorf("Exchange = %v after requests with a schema %v, want %v", err, asked, want)
	}
}
