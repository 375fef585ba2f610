package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
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
		deep:                                        "nested more than",
	} {
		path := filepath.Join(t.TempDir(), "schema.json")
		if err := os.WriteFile(path, []byte(schema), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := form(path)
		if want == "" {
			if err != nil || !json.Valid(f.Schema) {
				t.Errorf("form(%.80s) = %v", schema, err)
				continue
			}
			_ = f.Check(`{"next":{"next":{}}}`) // must end
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("form(%.80s) = %v, want %q", schema, err, want)
		}
	}
	if _, err := form("/dev/null"); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("form of a device = %v", err)
	}
}
