package cli

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"skein/tools/gate"
)

// asker is a person who is asked.
type asker func() (gate.Answer, error)

func (a asker) Ask(context.Context, gate.Question) (gate.Answer, error) { return a() }

// While a question waits, lines do; what cannot wait says that the question still does.
func TestQuiet(t *testing.T) {
	var out strings.Builder
	said := &notes{out: &out}
	said.say("before")
	said.urgent("stopping")
	_, err := quiet{asker(func() (gate.Answer, error) {
		out.WriteString("allow? ")
		said.say("meanwhile")
		said.urgent("ending")
		out.WriteString("y\n")
		return gate.Answer{Granted: true}, nil
	}), said}.Ask(t.Context(), gate.Question{})
	if err != nil {
		t.Fatal(err)
	}
	said.say("after")
	want := "note: before\nstopping\nallow? \nending\nthe question above still waits: y\nnote: meanwhile\nnote: after\n"
	if out.String() != want {
		t.Errorf("shown %q, want %q", out.String(), want)
	}
}

// What is held is bounded: the newest lines stay, whole, and the others are counted.
func TestQuietForgets(t *testing.T) {
	const lines = 100_000
	var out strings.Builder
	said := &notes{out: &out}
	release := said.hold()
	for i := range lines {
		if _, err := fmt.Fprintln(said, "line", i); err != nil {
			t.Fatal(err)
		}
		if len(said.held) > mostHeld {
			t.Fatalf("%d bytes are held, want at most %d", len(said.held), mostHeld)
		}
	}
	release()
	shown := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	var lost int
	if _, err := fmt.Sscanf(shown[0], "… %d lines are not shown …", &lost); err != nil || lost+len(shown)-1 != lines {
		t.Errorf("%q stands before %d lines, want the rest of %d counted", shown[0], len(shown)-1, lines)
	}
	for i, line := range shown[1:] {
		if want := fmt.Sprint("line ", lost+i); line != want {
			t.Fatalf("line %d is %q, want %q", i, line, want)
		}
	}
}
