package orchestrator_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"skein/agent/journal"
	"skein/agent/model/openai"
	"skein/agent/model/script"
	"skein/orchestrator"
	"skein/sandbox"
	"skein/sandbox/sandboxtest"
	"skein/tools/gate"
)

func TestMain(m *testing.M) {
	if sandbox.IsInit() {
		sandbox.Main()
	}
	exe, err := os.Executable()
	if err == nil {
		err = sandboxtest.BuildInit(context.Background(), filepath.Dir(exe))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err) // this program serves, slowly
	}
	goleak.VerifyTestMain(m)
}

// A rig is a workspace, a scripted model on loopback, and what a run on them left.
type rig struct {
	t      *testing.T
	dir    string
	cache  string
	script string
	ask    string // the instruction

	mu       sync.Mutex
	events   []journal.Event
	payloads []journal.Payload // of the first of them
	asked    []script.Recorded
	out      orchestrator.Outcome
}

func newRig(t *testing.T, yaml string) *rig {
	t.Helper()
	return &rig{t: t, dir: t.TempDir(), cache: t.TempDir(), script: yaml, ask: "go"}
}

// repo makes the workspace a repository with one commit of these files.
func (r *rig) repo(files map[string]string) *rig {
	r.t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		need(r.t, false, "git is not installed")
	}
	r.git("init", "-q", "-b", "main")
	r.write(files)
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "first")
	return r
}

func (r *rig) write(files map[string]string) {
	r.t.Helper()
	for name, text := range files {
		path := filepath.Join(r.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *rig) read(name string) string {
	r.t.Helper()
	b, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

func (r *rig) git(args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", append([]string{"-C", r.dir, "-c", "user.name=T", "-c", "user.email=t@example.invalid"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_DATE=2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE=2026-01-01T00:00:00Z")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// run carries out the instruction with a fixed session.
func (r *rig) run(edit func(*orchestrator.Options)) orchestrator.Outcome {
	r.t.Helper()
	return r.runContext(r.t.Context(), edit)
}

func (r *rig) runContext(ctx context.Context, edit func(*orchestrator.Options)) orchestrator.Outcome {
	r.t.Helper()
	s, err := script.Parse([]byte(r.script))
	if err != nil {
		r.t.Fatal(err)
	}
	server, err := script.Listen(r.t.Context(), s, "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	client, err := openai.New(openai.Options{BaseURL: server.URL(), Model: "scripted", Name: "script", Scripted: true})
	if err != nil {
		r.t.Fatal(err)
	}
	r.events, r.payloads = nil, nil
	o := orchestrator.Options{
		Dir: r.dir, Client: client, ModelName: "script/test", Access: gate.Auto, Cache: r.cache,
		Boxes:   orchestrator.Boxes{Environ: os.Environ(), Probe: func(context.Context, bool) error { return boxes() }},
		Limits:  orchestrator.Limits{ProcessJobs: 16}, // commands of tests wait for each other
		Session: "s1", Watch: func(e journal.Event) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.events = append(r.events, e)
		},
	}
	if edit != nil {
		edit(&o)
	}
	r.out, err = orchestrator.Run(ctx, o, r.ask)
	client.Close()
	r.asked = server.Requests()
	if err := server.Close(); err != nil {
		r.t.Errorf("close server: %v", err)
	}
	if err != nil {
		r.t.Fatalf("Run = %v, want no error", err)
	}
	return r.out
}

// of returns the payloads of one kind, in journal order.
func of[P any](r *rig) (list []*P, agents []string, times []time.Time) {
	r.t.Helper()
	for _, e := range r.events[len(r.payloads):] {
		p, err := e.Decode()
		if err != nil {
			r.t.Fatal(err)
		}
		r.payloads = append(r.payloads, p)
	}
	for i, p := range r.payloads {
		if v, ok := any(p).(*P); ok {
			e := r.events[i]
			list, agents, times = append(list, v), append(agents, e.Agent), append(times, e.Time)
		}
	}
	return list, agents, times
}

// bodies returns what an agent sent, request by request.
func (r *rig) bodies(agent string) [][]byte {
	var list [][]byte
	for _, q := range r.asked {
		if q.Agent == agent {
			list = append(list, q.Body)
		}
	}
	return list
}

// tree renders every file below the workspace but .git and .skein.
func (r *rig) tree() string {
	r.t.Helper()
	var lines []string
	err := filepath.WalkDir(r.dir, func(path string, d os.DirEntry, err error) error {
		name, _ := filepath.Rel(r.dir, path)
		if err != nil || name == "." {
			return err
		}
		if name == ".git" || name == ".skein" {
			return filepath.SkipDir
		}
		info, err := d.Info()
		if err != nil || d.IsDir() {
			return err
		}
		text := ""
		if info.Mode().IsRegular() {
			text = r.read(name)
		} else {
			text, _ = os.Readlink(path)
		}
		lines = append(lines, fmt.Sprintf("%s %v %q", name, info.Mode(), text))
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// need skips a test whose program or kernel feature is missing, and fails it where
// everything is required.
func need(t *testing.T, ok bool, why string) {
	t.Helper()
	if ok {
		return
	}
	if os.Getenv("SKEIN_REQUIRE") == "all" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// boxes finds out once whether boxes hold here.
var boxes = sync.OnceValue(func() error { return sandbox.Probe(context.Background(), false) })

func needBox(t *testing.T) {
	t.Helper()
	err := boxes()
	need(t, err == nil, fmt.Sprintf("no box here: %v", err))
}
