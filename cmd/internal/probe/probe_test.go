package probe_test

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"skein/agent/model/openai"
	"skein/agent/model/script"
	"skein/cmd/internal/probe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Each kind of model is told from the others, over real HTTP.
func TestModel(t *testing.T) {
	for _, tt := range []struct {
		name  string
		rules string
		want  string // what was found, in order
		fault string // "" for a model that is fit for work
	}{
		{"everything", `
- when: {user: "as JSON"}
  say: '{"sum": 42}'
- when: {result: "17(.|\\n)*25"}
  say: forty-two
- calls: [{stock: {fruit: Apples}}, {stock: {fruit: pears}}]
`, "reachable ok, tools ok, parallel calls ok, streaming ok, usage ok, cache ok, schema ok", ""},
		{"one call after the other", `
- when: {user: "as JSON"}
  say: forty-two
- when: {result: "25"}
  say: forty-two
- when: {result: "17"}
  call: {stock: {fruit: pears}}
- call: {stock: {fruit: apples}}
`, "reachable ok, tools ok, parallel calls no, streaming ok, usage ok, cache ok, schema no", ""},
		{"schema refused", `
- when: {user: "as JSON"}
  status: 400
- when: {result: "17"}
  say: forty-two
- calls: [{stock: {fruit: apples}}, {stock: {fruit: pears}}]
`, "reachable ok, tools ok, parallel calls ok, streaming ok, usage ok, cache ok, schema no", ""},
		{"calls something else", `
- when: {user: "as JSON"}
  say: '{"sum": 42}'
- when: {result: "unknown"}
  say: forty-two
- call: {stocks: {}}
`, "reachable ok, tools no, parallel calls unavailable, streaming ok, usage ok, cache ok, schema ok", "did not call"},
		{"only talks", "- say: many apples", "reachable ok, tools no, parallel calls unavailable, streaming ok, usage ok, cache unavailable, schema no", "did not call"},
		{"never ends", "- call: {stock: {fruit: apples}}", "reachable ok, tools ok, parallel calls no, streaming no, usage ok, cache ok, schema no", "no answer"},
		{"finds fault with the request", "- {status: 400, body: '{\"error\": \"no such field\"}'}", "reachable ok, tools no", "no such field"},
		{"wrong key", "- {status: 401, body: '{\"error\": \"wrong key\"}'}", "reachable ok, tools unavailable", "wrong key"},
		{"forbidden", "- {status: 403, body: '{\"error\": \"not you\"}'}", "reachable ok, tools unavailable", "not you"},
		{"unknown model", "- {status: 404, body: '{\"error\": \"no such model\"}'}", "reachable ok, tools unavailable", "no such model"},
		{"busy", "- {status: 429, body: '{\"error\": \"later\"}'}", "reachable ok, tools unavailable", "later"},
		{"in trouble", "- {status: 503, body: '{\"error\": \"down\"}'}", "reachable ok, tools unavailable", "down"},
		{"schema in trouble", `
- when: {user: "as JSON"}
  status: 500
- when: {result: "17"}
  say: forty-two
- calls: [{stock: {fruit: apples}}, {stock: {fruit: pears}}]
`, "reachable ok, tools ok, parallel calls ok, streaming ok, usage ok, cache ok, schema unavailable", ""},
		{"fails later", `
- when: {result: "17"}
  status: 500
- call: {stock: {fruit: apples}}
`, "reachable ok, tools ok, parallel calls no, answer no", "500"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := script.Parse([]byte(tt.rules))
			if err != nil {
				t.Fatal(err)
			}
			server, err := script.Listen(t.Context(), s, "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = server.Close() }()
			c, err := openai.New(openai.Options{BaseURL: server.URL(), Model: "m", Stream: true})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			got := probe.Model(t.Context(), c, true)
			var found []string
			for _, f := range got.Findings {
				found = append(found, f.What+" "+string(f.Verdict))
			}
			if text := strings.Join(found, ", "); text != tt.want {
				t.Errorf("found %s\n want %s\n with %+v", text, tt.want, got.Findings)
			}
			if tt.fault == "" && got.Err != nil || tt.fault != "" && (got.Err == nil || !strings.Contains(got.Err.Error(), tt.fault)) {
				t.Errorf("Err = %v, want %q", got.Err, tt.fault)
			}
		})
	}
}
