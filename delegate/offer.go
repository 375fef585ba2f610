package delegate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"skein/tools"
)

// An Offer is what delegate_task can do in a run. It is the same for all agents of the run, so
// that all are shown the same bytes.
type Offer struct {
	Mode   Mode
	Roles  []Role   // that children may be given, sorted by name
	Models []string // that children may be given
}

// The properties of the tool's arguments are written by hand: they are short, and their bytes
// are a part of every request.
const (
	ownProperties = `"task":{"type":"string","description":"The whole task, complete in itself: goal, files or places, constraints, and what the answer must contain."},` +
		`"title":{"type":"string","description":"A few words naming it in reports."},` +
		`"access":{"type":"string","enum":["read","write"],"description":"read (default): may only read and run commands that change nothing. write: may change files, in a copy of its own; its changes are merged into yours when it is done."},` +
		`"paths":{"type":"array","items":{"type":"string"},"description":"With write: what alone it may change, such as storage/** or docs/*.md. If it changes anything else, nothing of its change is merged."},` +
		`"output_schema":{"type":"object","description":"A JSON Schema that its answer has to fit; the answer is that JSON."}`
	roleProperty = `,"role":{"type":"string","description":"One of the roles named above."}`
)

// Schema is the JSON Schema of the tool's arguments.
func (o Offer) Schema() json.RawMessage {
	s := `{"type":"object","properties":{` + ownProperties
	if len(o.Roles) > 0 {
		s += roleProperty
	}
	if len(o.Models) > 0 {
		names, err := json.Marshal(o.Models)
		if err != nil {
			panic("list models: " + err.Error()) // they are strings
		}
		s += `,"model":{"type":"string","enum":` + string(names) + `,"description":"Another model than yours."}`
	}
	return json.RawMessage(s + `},"required":["task"],"additionalProperties":false}`)
}

// Spec describes the tool. Parent and children are shown the same.
func (o Offer) Spec() tools.Spec {
	var roles strings.Builder
	if len(o.Roles) > 0 {
		roles.WriteString("Roles that this project has for subagents:\n")
		for _, r := range o.Roles {
			fmt.Fprintf(&roles, "- %s: %s\n", r.Name, r.Description)
		}
	}
	return tools.Spec{
		Name: Name,
		Description: "Hand a part of the work to a subagent and get its report. Use it for parts that are independent, large, or would fill this conversation with text you do not need. " +
			"Ask for independent parts in several calls in one reply: they run at the same time, all writers of a reply start from the same state of your tree, and their changes are merged in the order of your calls. " +
			"Not for a single read or edit that you can do in one call. " +
			"Write each task concrete and complete in itself, and name the output you want. " + roles.String() + o.Mode.sees(),
		Schema: o.Schema(),
	}
}

// Read reads the arguments of a call. The error tells the model what is wrong with them.
func (o Offer) Read(args string) (*Delegation, error) {
	d := &Delegation{Index: 1, Of: 1}
	if err := o.read(args, d); err != nil {
		return nil, fmt.Errorf("%s: read arguments: %w\nThey are described by this schema: %s", Name, err, o.Schema())
	}
	return d, nil
}

func (o Offer) read(args string, d *Delegation) error {
	t := &d.Task
	dec := json.NewDecoder(bytes.NewReader([]byte(args)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(t); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON object")
	}
	if strings.TrimSpace(t.Task) == "" {
		return errors.New("task is empty")
	}
	switch t.Access {
	case "":
		t.Access = ReadOnly
	case ReadOnly, Writing:
	default:
		return fmt.Errorf("access is %q, not read or write", oneLine(string(t.Access)))
	}
	if string(t.Schema) == "null" {
		t.Schema = nil // like any other argument that is not given
	}
	if len(t.Schema) > 0 && t.Schema[0] != '{' {
		return errors.New("output_schema is no object: give the JSON Schema itself, not its text")
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, t.Schema); err == nil && compact.Len() > 0 { // it was decoded
		t.Schema = compact.Bytes()
	}
	if len(t.Paths) > 0 && t.Access != Writing {
		return errors.New("paths are for access write: a reader changes nothing")
	}
	var err error
	if t.Paths, err = cleanGlobs(t.Paths); err != nil {
		return err
	}
	if t.Role != "" {
		if err := o.assume(d); err != nil {
			return err
		}
	}
	if t.Model != "" && !slices.Contains(o.Models, t.Model) {
		return fmt.Errorf("model is %q, not one of: %s", oneLine(t.Model), none(o.Models))
	}
	return nil
}

// assume gives the delegation its role, which only narrows what it may do.
func (o Offer) assume(d *Delegation) error {
	var names []string
	for _, r := range o.Roles {
		if names = append(names, r.Name); r.Name != d.Role {
			continue
		}
		if r.Access == ReadOnly && d.Access == Writing {
			return fmt.Errorf("role %s may only read: leave access away, or the role", r.Name)
		}
		if d.Model == "" {
			d.Model = r.Model
		}
		d.Tools, d.role = r.Tools, r.Body
		return nil
	}
	return fmt.Errorf("role is %q, not one of: %s", oneLine(d.Role), none(names))
}

// none lists names, or says that there are none.
func none(names []string) string {
	if len(names) == 0 {
		return "none, there are none here"
	}
	return strings.Join(names, ", ")
}
