package sandbox_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"skein/sandbox"
)

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	linked := t.TempDir()
	link(t, dir, filepath.Join(linked, ".git"))
	link(t, dir, filepath.Join(linked, "soft"))
	write(t, filepath.Join(dir, "file"), "")
	state := t.TempDir()
	user := filepath.Join(t.TempDir(), "user")
	write(t, filepath.Join(user, ".ssh/config"), "")
	link(t, dir, filepath.Join(state, ".skein"))
	for _, row := range []struct {
		policy sandbox.Policy
		want   string
	}{
		{sandbox.Policy{}, "no workspace"},
		{sandbox.Policy{Workspace: dir + "/absent"}, "no such file"},
		{sandbox.Policy{Workspace: dir + "/file"}, "not a folder"},
		{sandbox.Policy{Workspace: dir, View: "relative"}, "relative"},
		{sandbox.Policy{Workspace: dir, View: "/"}, "the box needs"},
		{sandbox.Policy{Workspace: dir, View: "/tmp"}, "the box needs"},
		{sandbox.Policy{Workspace: dir, View: "/proc/self"}, "the box needs"},
		{sandbox.Policy{Workspace: dir, View: "/nowhere/at/all"}, "no such file"},
		{sandbox.Policy{Workspace: dir, Scopes: []string{"../x"}}, "leaves the workspace"},
		{sandbox.Policy{Workspace: dir, Scopes: []string{"/etc"}}, "leaves the workspace"},
		{sandbox.Policy{Workspace: dir, Scopes: []string{"absent"}}, "no such file"},
		{sandbox.Policy{Workspace: dir, Scopes: []string{"file"}}, "not a folder"},
		{sandbox.Policy{Workspace: linked, Writable: true, Scopes: []string{"soft"}}, "symbolic link"},
		{sandbox.Policy{Workspace: linked, Writable: true, Scopes: []string{".git"}}, "ever writable"},
		{sandbox.Policy{Workspace: linked + "/..", Writable: true}, "symbolic link"},
		{sandbox.Policy{Workspace: dir, Hidden: []string{"../x"}}, "leaves the workspace"},
		{sandbox.Policy{Workspace: dir, Hidden: []string{"."}}, "covers"},
		{sandbox.Policy{Workspace: dir, ReadOnly: []sandbox.Mount{{Host: dir, Path: filepath.Dir(dir)}}}, "cover the workspace"},
		{sandbox.Policy{Workspace: dir, Readable: []string{"/"}}, "everything"},
		{sandbox.Policy{Workspace: dir, Readable: []string{"/home"}}, "homes"},
		{sandbox.Policy{Workspace: dir, Readable: []string{""}}, "empty"},
		{sandbox.Policy{Workspace: dir, Readable: []string{"/tmp"}}, "its own"},
		{sandbox.Policy{Workspace: dir, Readable: []string{"/proc/self"}}, "its own"},
		{sandbox.Policy{Workspace: dir, Readable: []string{"/dev/null"}}, "neither"},
		{sandbox.Policy{Workspace: dir, Readable: []string{dir + "/absent"}}, "no such file"},
		{sandbox.Policy{Workspace: dir, Readable: []string{filepath.Join(user, ".ssh/config")}, Env: []string{"HOME=" + user}}, "secrets"},
		{sandbox.Policy{Workspace: dir, Readable: []string{filepath.Dir(user)}, Env: []string{"HOME=" + user}}, "homes"},
		{sandbox.Policy{Workspace: dir, GitDir: dir + "/absent"}, "no such file"},
		{sandbox.Policy{Workspace: linked, Writable: true}, "symbolic link"},
		{sandbox.Policy{Workspace: state, Writable: true, Hidden: []string{".skein"}}, "symbolic link"},
	} {
		box, err := sandbox.Open(t.Context(), row.policy)
		if err == nil {
			_ = box.Close()
		}
		var hint interface{ Hint() string }
		if err == nil || !strings.Contains(err.Error(), row.want) || errors.Is(err, sandbox.ErrNoBox) || !errors.As(err, &hint) {
			t.Errorf("Open(%+v) = %v, want an error with a hint that says %q", row.policy, err, row.want)
		}
	}
}

// In a box there are no user namespaces to be had, so no box either: a real refusal.
func TestOpenSaysWhyThereIsNoBox(t *testing.T) {
	dir := t.TempDir()
	program := self(t, dir)
	box := open(t, sandbox.Policy{Workspace: dir})
	if err := exec.CommandContext(t.Context(), program, "-test.run=^$").Run(); err != nil {
		t.Fatalf("control: %v", err)
	}
	out, exit := sh(t, box, helper+"=open "+program+" .")
	if exit != 1 || !strings.Contains(out, "no box on this system: tried namespaces: ") || !strings.Contains(out, "operation not permitted") {
		t.Errorf("opening a box in a box: exit %d, %q, want exit 1 and the kernel's answer", exit, out)
	}
	box2, err := sandbox.Open(t.Context(), sandbox.Policy{Workspace: dir, Init: "/bin/false"})
	if !errors.Is(err, sandbox.ErrNoBox) {
		t.Errorf("Open with an init that ends = %v, want ErrNoBox", err)
	}
	if err == nil {
		_ = box2.Close()
	}
	if _, err := sandbox.Open(t.Context(), sandbox.Policy{Workspace: dir, Init: "/nowhere"}); !errors.Is(err, sandbox.ErrNoBox) {
		t.Errorf("Open without an init = %v, want ErrNoBox", err)
	}
}

func TestProbe(t *testing.T) {
	dir := t.TempDir()
	box := open(t, sandbox.Policy{Workspace: dir}) // or skip
	if err := sandbox.Probe(t.Context(), false); err != nil {
		t.Errorf("Probe = %v, want nil where a box can be opened", err)
	}
	report, err := sandbox.Examine(t.Context())
	if err != nil || len(report.Steps) < 7 {
		t.Errorf("Examine = %+v, %v, want all that was tried", report, err)
	}
	for _, s := range report.Steps {
		if !s.Held || s.What == "" || s.Detail == "" {
			t.Errorf("Examine tells %+v, want that it held, and how", s)
		}
	}
	if report.Held != box.Held() {
		t.Errorf("Examine held %+v, want what every box does: %+v", report.Held, box.Held())
	}
	if err := sandbox.ExamineLayers(t.Context()); err != nil {
		t.Errorf("ExamineLayers = %v, want nil", err)
	}
	// In a box there is no other one.
	out, exit := sh(t, box, helper+"=examine "+self(t, dir))
	if want := "user namespaces: false: refused: operation not permitted (user.max_user_namespaces is 0)\n"; exit != 1 || !strings.HasPrefix(out, want) {
		t.Errorf("Examine in a box: exit %d, %q, want exit 1 and %q", exit, out, want)
	}
}

func TestRunRefuses(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "plain"), "no program")
	for name, in := range map[string]runner{"box": open(t, sandbox.Policy{Workspace: dir}), "bare": outside(t, dir)} {
		for _, row := range []struct {
			command sandbox.Command
			want    error
		}{
			{sandbox.Command{Argv: []string{"no-such-program"}}, os.ErrNotExist},
			{sandbox.Command{Argv: []string{"./absent"}}, os.ErrNotExist},
			{sandbox.Command{Argv: []string{"./plain"}}, os.ErrPermission},
			{sandbox.Command{Argv: []string{"true"}, Dir: "absent"}, os.ErrNotExist},
			{sandbox.Command{Argv: []string{"true"}, Dir: "../.."}, sandbox.ErrOutside},
			{sandbox.Command{Argv: []string{"true"}, Dir: "/etc"}, sandbox.ErrOutside},
			{sandbox.Command{}, nil},
		} {
			_, err := in.Run(t.Context(), row.command)
			if err == nil || row.want != nil && !errors.Is(err, row.want) {
				t.Errorf("%s: Run(%v) = %v, want %v", name, row.command, err, row.want)
			}
		}
	}
}

// The whole suite again as an ordinary user: what root may do says little about others.
func TestAsNobody(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this is the run as an ordinary user")
	}
	asNobody(t)
}
