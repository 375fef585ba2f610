package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// docs/events.md lists every event with its fields, from the types that are written.
func TestEvents(t *testing.T) {
	fset := token.NewFileSet()
	dir := filepath.Join(root(t), "agent", "journal")
	var files []*ast.File
	for _, name := range []string{"event.go", "payload.go"} {
		f, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	kinds := map[string]string{} // of types
	class := regexp.MustCompile(`func \(\*(\w+)\) class\(\) class +\{ return class\{"([\w-]+)"`)
	for _, m := range class.FindAllStringSubmatch(page(t, "agent/journal/payload.go"), -1) {
		kinds[m[1]] = m[2]
	}
	var b strings.Builder
	for _, f := range files {
		for _, decl := range f.Decls {
			d, ok := decl.(*ast.GenDecl)
			if !ok || d.Tok != token.TYPE {
				continue
			}
			spec, ok := d.Specs[0].(*ast.TypeSpec)
			if !ok {
				continue
			}
			s, ok := spec.Type.(*ast.StructType)
			if !ok || kinds[spec.Name.Name] == "" && spec.Name.Name != "Event" {
				continue
			}
			title := "`" + kinds[spec.Name.Name] + "`"
			if spec.Name.Name == "Event" {
				title = "Every event"
			}
			doc := strings.TrimPrefix(strings.Join(strings.Fields(d.Doc.Text()), " "), spec.Name.Name+" ")
			fmt.Fprintf(&b, "\n## %s\n\n%s%s\n\n| field | type | |\n| --- | --- | --- |\n", title, strings.ToUpper(doc[:1]), doc[1:])
			for _, field := range s.Fields.List {
				tag, err := strconv.Unquote(field.Tag.Value)
				if err != nil {
					t.Fatal(err)
				}
				name, more, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
				var kind strings.Builder
				if err := printer.Fprint(&kind, fset, field.Type); err != nil {
					t.Fatal(err)
				}
				note := strings.TrimSpace(field.Comment.Text())
				if more == "omitempty" {
					note = strings.TrimSpace("left out when empty. " + note)
				}
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, jsonType(kind.String()), strings.ReplaceAll(note, "|", "\\|"))
			}
		}
	}
	if strings.Count(b.String(), "\n## ") != len(kinds)+1 {
		t.Errorf("%d parts for %d kinds of events", strings.Count(b.String(), "\n## "), len(kinds))
	}
	golden(t, "docs/events.md", "<!-- events -->\n", b.String(), "<!-- end -->\n")
}

func jsonType(goType string) string {
	switch goType {
	case "int", "int64", "float64":
		return "number"
	case "*float64", "model.Count":
		return "number or null"
	case "[]string":
		return "list of strings"
	case "time.Time":
		return "string, RFC 3339"
	case "model.Message":
		return "object: `role`, `text`, `calls`, `call_id`, `name`, `is_error`, `raw`, `dialect`"
	case "model.Usage":
		return "object: `input`, `cache_read`, `cache_write`, `output`, `reasoning`; each a number or null"
	case "json.RawMessage":
		return "object: the fields of its kind"
	case "bool":
		return "true or false"
	}
	return "string"
}
