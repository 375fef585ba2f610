package config

import (
	"maps"
	"regexp"
	"slices"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"skein/agent/model"
)

// A Row is what is known of a model.
type Row struct {
	Window int          // tokens of the whole conversation
	Output int          // tokens of the largest reply
	Price  *model.Price // nil: not known
	Date   string       // when it was so, such as 2026-10-04; may be empty
	Known  bool         // false: nobody said anything of this model, and the figures are guesses
}

// What a model is taken to hold that nobody said anything of.
const (
	guessedWindow = 128_000
	guessedOutput = 8192
)

// builtIn are rows that need no file. Figures that nobody stated are not made up: a price that
// is not here is not known.
func builtIn() map[string]Row {
	return map[string]Row{
		"deepseek/deepseek-flash": {Window: 1_000_000, Output: 384_000, Date: "2026-10-04", Known: true},
	}
}

// Row returns what is known of a model, provider/name: the file's row before a built-in one.
func (c Config) Row(name string) Row {
	if r, ok := c.rows[name]; ok {
		return r
	}
	if r, ok := builtIn()[name]; ok {
		return r
	}
	return Row{Window: guessedWindow, Output: guessedOutput}
}

// Names lists the models that something is known of, in order.
func (c Config) Names() []string {
	all := builtIn()
	maps.Copy(all, c.rows)
	return slices.Sorted(maps.Keys(all))
}

// table is the rows of the file, by provider/name.
type table map[string]Row

var rowName = regexp.MustCompile(`^[a-z]+/\S+$`)

// UnmarshalYAML reads the rows one by one, so that each fault has its line.
func (t *table) UnmarshalYAML(node ast.Node) error {
	rows, ok := node.(ast.MapNode)
	if !ok {
		return bad(node, "models is a table of rows, each by provider/name")
	}
	*t = table{}
	for each := rows.MapRange(); each.Next(); {
		name := each.Key().GetToken().Value
		if !rowName.MatchString(name) {
			return bad(each.Key(), "%q is not like provider/name", name)
		}
		if _, ok := each.Value().(ast.MapNode); !ok {
			return bad(each.Key(), "%s is a row of window, output, prices and date", name)
		}
		var r row
		if err := yaml.NodeToValue(each.Value(), &r, yaml.Strict()); err != nil {
			return err
		}
		done, err := r.done(each.Key())
		if err != nil {
			return err
		}
		(*t)[name] = done
	}
	return nil
}

// row is the form of a row of the file.
type row struct {
	Window tokens  `yaml:"window"`
	Output tokens  `yaml:"output"`
	Prices *prices `yaml:"prices"`
	Date   day     `yaml:"date"`
}

type prices struct {
	Input      *dollars `yaml:"input"`
	CacheRead  *dollars `yaml:"cache_read"`
	CacheWrite *dollars `yaml:"cache_write"`
	Output     *dollars `yaml:"output"`
}

// done fills in what a row leaves out. Tokens of a cache without a price of their own cost
// what others cost.
func (r row) done(at ast.Node) (Row, error) {
	out := Row{Window: int(r.Window), Output: int(r.Output), Date: string(r.Date), Known: true}
	if out.Window == 0 {
		out.Window = guessedWindow
	}
	if out.Output == 0 {
		out.Output = guessedOutput
	}
	if out.Output > out.Window {
		return out, bad(at, "%s: output %d is more than window %d", at.GetToken().Value, out.Output, out.Window)
	}
	p := r.Prices
	if p == nil {
		return out, nil
	}
	if p.Input == nil || p.Output == nil {
		return out, bad(at, "%s: prices need input and output", at.GetToken().Value)
	}
	or := func(v *dollars) float64 {
		if v == nil {
			v = p.Input
		}
		return float64(*v)
	}
	out.Price = &model.Price{Input: or(p.Input), CacheRead: or(p.CacheRead), CacheWrite: or(p.CacheWrite), Output: float64(*p.Output)}
	return out, nil
}
