package keys

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// folder makes a folder with a .env.
func folder(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".env"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	c := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=Ada", "-c", "user.email=ada@example.com"}, args...)...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func nothing(string) string { return "" }

func TestGet(t *testing.T) {
	dir := folder(t, "# mine\n\nOPENAI_API_KEY=from-the-file\n export DEEPSEEK_API_KEY=\"quoted\"\r\nEMPTY_KEY=\n")
	env := map[string]string{"ANTHROPIC_API_KEY": "from-the-environment"}
	ring := Open(t.Context(), dir, func(name string) string { return env[name] })
	for name, want := range map[string]string{
		"OPENAI_API_KEY": "from-the-file", "DEEPSEEK_API_KEY": "quoted",
		"ANTHROPIC_API_KEY": "from-the-environment", "EMPTY_KEY": "", "OPENROUTER_API_KEY": "",
	} {
		if got, err := ring.Get(name); err != nil || got != want {
			t.Errorf("Get(%s) = %q, %v, want %q", name, got, err, want)
		}
	}
	env["OPENAI_API_KEY"] = "first"
	if got, err := ring.Get("OPENAI_API_KEY"); err != nil || got != "first" {
		t.Errorf("Get with both = %q, %v, want the environment's", got, err)
	}
}

func TestFaults(t *testing.T) {
	for _, tt := range []struct {
		text string
		line int
		want string
	}{
		{"A_KEY=1\nPORT=3000\n", 2, "PORT is not the name of a key"},
		{"OPENAI_BASE_URL=http://evil.example\n", 1, "OPENAI_BASE_URL is not"},
		{"SKEIN_MODEL=openai/some\n", 1, "SKEIN_MODEL is not"},
		{"\n\nsecret-words\n", 3, "not like NAME=value"},
		{"A_KEY=hush\nA_KEY=hush\n", 2, "twice"},
		{"A_KEY=hush hush\n", 1, "no key has"},
		{"A_KEY=hush # mine\n", 1, "no key has"},
		{"lower_key=hush\n", 1, "lower_key is not"},
	} {
		ring := Open(t.Context(), folder(t, tt.text), nothing)
		_, err := ring.Get("ANY_KEY")
		var fault *Error
		if !errors.As(err, &fault) || fault.Line != tt.line || !strings.Contains(fault.Text, tt.want) || fault.Hint() == "" {
			t.Errorf("Get with %q = %v, want line %d with %q", tt.text, err, tt.line, tt.want)
			continue
		}
		if strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "secret-words") {
			t.Errorf("the error shows a value: %v", err)
		}
		// Who has the key in the environment need not care.
		ring = Open(t.Context(), folder(t, tt.text), func(string) string { return "mine" })
		if got, err := ring.Get("ANY_KEY"); err != nil || got != "mine" {
			t.Errorf("Get with a faulty file = %q, %v, want the environment's", got, err)
		}
	}
}

func TestTrackedFileIsLeftAlone(t *testing.T) {
	dir := folder(t, "OPENAI_API_KEY=planted-by-others\n")
	git(t, dir, "init", "-q")
	if ring := Open(t.Context(), dir, nothing); ring.Notice != "" {
		t.Errorf("an untracked file gives the notice %q", ring.Notice)
	} else if got, err := ring.Get("OPENAI_API_KEY"); err != nil || got == "" {
		t.Errorf("Get of an untracked file = %q, %v", got, err)
	}
	git(t, dir, "add", ".env")
	ring := Open(t.Context(), dir, nothing)
	if got, err := ring.Get("OPENAI_API_KEY"); err != nil || got != "" || !strings.Contains(ring.Notice, "git tracks it") {
		t.Errorf("Get of a tracked file = %q, %v with notice %q, want nothing", got, err, ring.Notice)
	}
	if got := Secrets(dir, nil); !slices.Contains(got, "planted-by-others") {
		t.Errorf("Secrets = %d, want the tracked file's too", len(got))
	}
}

// Where git cannot say, the file supplies nothing.
func TestUnknownIsTakenForTracked(t *testing.T) {
	dir := folder(t, "OPENAI_API_KEY=k\n")
	if err := os.WriteFile(filepath.Join(dir, ".git"), []byte("gitdir: nowhere\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ring := Open(t.Context(), dir, nothing)
	if got, err := ring.Get("OPENAI_API_KEY"); err != nil || got != "" || !strings.Contains(ring.Notice, "could not be found out") {
		t.Errorf("Get = %q, %v with notice %q, want nothing and why", got, err, ring.Notice)
	}
}

func TestNoFile(t *testing.T) {
	empty, python, pipe := t.TempDir(), t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(python, ".env"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(pipe, ".env"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{empty, python, pipe} {
		ring := Open(t.Context(), dir, nothing)
		if got, err := ring.Get("OPENAI_API_KEY"); err != nil || got != "" || ring.Notice != "" {
			t.Errorf("Get = %q, %v with notice %q, want nothing", got, err, ring.Notice)
		}
	}
	ring := Open(t.Context(), folder(t, strings.Repeat("#", sizeLimit+1)), nothing)
	if !strings.Contains(ring.Notice, "64 KiB") {
		t.Errorf("Notice for a large file = %q", ring.Notice)
	}
}

func TestSecrets(t *testing.T) {
	dir := folder(t, "NODE_ENV=development\nDB_PASSWORD='open sesame'\nOPENAI_API_KEY=key-of-mine\nbroken line\nMODEL_KEY=opensesame\nSECRET_MODE=disabled\n")
	got := Secrets(dir, []string{"GITHUB_TOKEN=token-of-mine", "EDITOR=a-long-editor"}, "MODEL_KEY")
	slices.Sort(got)
	if want := []string{"key-of-mine", "open sesame", "opensesame", "token-of-mine"}; !slices.Equal(got, want) {
		t.Errorf("Secrets = %q, want %q", got, want)
	}
}
