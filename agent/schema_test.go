package agent

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestFormsThatCannotBe(t *testing.T) {
	deep := strings.Repeat(`{"not":`, 9000) + `{}` + strings.Repeat(`}`, 9000)
	for schema, want := range map[string]string{
		`{"type":"object","required":["n"]}`: "",
		`true`:                               "",
		`{"$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"}}}},"$ref":"#/$defs/node"}`: "", // goes into the value
		`{"$ref":"#/$defs/x","$defs":{"x":{"$ref":"#/$defs/x"}}}`:                                                  "refers to itself",
		`{"$ref":"#"}`: "refers to itself",
		`{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}}}`: "refers to itself",
		`{"properties":{"a":{"$ref":"#/nowhere"}}}`: "leads nowhere",
		`{"$ref":"https://example.invalid/s.json"}`: "only references",
		`[{"type":"object"}]`:                       "is an object",
		`"x"`:                                       "is an object",
		`{`:                                         "unexpected end",
		`{"$REF":"#"}`:                              "refers to itself",
		`{"allof":[{"$Ref":"#"}]}`:                  "refers to itself",
		`{"$dynamicRef":"#x"}`:                      "not understood",
		deep:                                        "nested more than",
	} {
		f, err := NewForm([]byte(schema))
		if want == "" {
			if err != nil || !json.Valid(f.Schema) {
				t.Errorf("NewForm(%.80s) = %v", schema, err)
				continue
			}
			_ = f.Check(`{"next":{"next":{}}}`) // must end
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("NewForm(%.80s) = %v, want %q", schema, err, want)
		}
	}
}

func TestModelsForms(t *testing.T) {
	// Each definition stands twice in the one before: 2^30 of the last one.
	laughs := `{"$ref":"#/$defs/d0","$defs":{`
	for i := range 30 {
		laughs += fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	laughs += `"d30":{}}}`
	for schema, want := range map[string]string{
		`{"type":"object"}`: "",
		`{"properties":{"a":{"$ref":"#/$defs/x"},"b":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"string"}}}`: "",
		`{"not":{}}`: "", // which no answer can meet
		`{"type":"object","description":"` + strings.Repeat("x", 1<<20) + `"}`:            "may have 32768",
		`{"properties":{"next":{"$ref":"#"}}}`:                                            "lead back to themselves",
		`{"allOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}`: "lead back to themselves",
		laughs:                          "too much",
		`{"$ref":"file:///etc/passwd"}`: "only references",
		`{"$ref":"https://example.invalid/s.json"}`:            "only references",
		`{"items":{"$ref":"other.json#/$defs/x"}}`:             "only references",
		`{"$id":"https://example.invalid/s","$ref":"#/x"}`:     "leads nowhere",
		`{"properties":{"$ref":{"type":"string"}}}`:            "", // a property of that name
		`{"type":"object","properties":{"a":{"pattern":"("}}}`: "pattern",
	} {
		_, err := NewModelsForm([]byte(schema))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("NewModelsForm(%.80s) = %v, want %q", schema, err, want)
		}
	}
}
