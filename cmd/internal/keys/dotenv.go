package keys

import (
	"fmt"
	"regexp"
	"strings"
)

// An Error is a fault of the .env. It never holds a value.
type Error struct {
	Line int
	Text string
}

func (e *Error) Error() string { return fmt.Sprintf(".env:%d: %s", e.Line, e.Text) }

// Hint says what to do instead.
func (e *Error) Hint() string {
	return "a .env may hold keys only, as in OPENAI_API_KEY=...; or set the key in the environment"
}

var (
	entry   = regexp.MustCompile(`^(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)$`)
	keyName = regexp.MustCompile(`^[A-Z][A-Z0-9_]*_(KEY|TOKEN|SECRET)$`)
)

// parse reads NAME=value lines of keys; blank lines and comments may stand between them.
func parse(data []byte) (map[string]string, error) {
	all := map[string]string{}
	for i, line := range strings.Split(string(data), "\n") {
		name, value, ok := split(line)
		if !ok {
			continue
		}
		fault := ""
		switch _, twice := all[name]; {
		case name == "":
			fault = "not like NAME=value"
		case !keyName.MatchString(name):
			fault = name + " is not the name of a key"
		case twice:
			fault = name + " is there twice"
		case strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }):
			fault = "the value of " + name + " holds characters that no key has"
		}
		if fault != "" {
			return nil, &Error{i + 1, fault}
		}
		all[name] = value
	}
	return all, nil
}

// entries returns what reads as NAME=value, as an environment; the rest is left out.
func entries(data []byte) []string {
	var all []string
	for line := range strings.SplitSeq(string(data), "\n") {
		if name, value, ok := split(line); ok && name != "" {
			all = append(all, name+"="+value)
		}
	}
	return all
}

// split takes a line apart; ok is false for blank lines and comments, the name is empty for
// what has no such form. Quotes around the value are left out.
func split(line string) (name, value string, ok bool) {
	line = strings.TrimSpace(line)
	if line == "" || strings.HasPrefix(line, "#") {
		return "", "", false
	}
	m := entry.FindStringSubmatch(line)
	if m == nil {
		return "", "", true
	}
	value = strings.TrimSpace(m[2])
	if n := len(value); n > 1 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
		value = value[1 : n-1]
	}
	return m[1], value, true
}
