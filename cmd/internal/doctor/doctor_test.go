package doctor_test

import (
	"errors"
	"strings"
	"testing"

	"skein/cmd/internal/doctor"
)

func TestWrite(t *testing.T) {
	r := doctor.Report{Good: true}
	r.Add("git", "program", doctor.Good, "2.40.0 at /usr/bin/git")
	r.Add("git", "this folder", doctor.Note, "in no repository")
	if !r.Good || r.Hint() != "" {
		t.Errorf("with nothing bad Good = %v, Hint = %q, want true and none", r.Good, r.Hint())
	}
	r.Fail("box", "user namespaces", errors.New("refused"))
	if r.Good {
		t.Error("with a bad check Good = true, want false")
	}
	const want = "git\n" +
		"  ✓ program                     2.40.0 at /usr/bin/git\n" +
		"  – this folder                 in no repository\n" +
		"box\n" +
		"  ✗ user namespaces             refused\n"
	var plain, coloured strings.Builder
	if err := r.Write(&plain, false); err != nil || plain.String() != want {
		t.Errorf("Write = %v, %q, want %q", err, plain.String(), want)
	}
	if err := r.Write(&coloured, true); err != nil {
		t.Errorf("Write = %v", err)
	}
	bare := strings.NewReplacer("\x1b[32m", "", "\x1b[31m", "", "\x1b[2m", "", "\x1b[0m", "").Replace(coloured.String())
	if bare != want || !strings.Contains(coloured.String(), "\x1b[31m✗\x1b[0m") {
		t.Errorf("with colours Write = %q, want a red ✗ and the same text", coloured.String())
	}
}
