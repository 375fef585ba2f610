package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// git runs the git program. It knows no repository: each call says its [place].
type git struct {
	program string
	version string
	box     Box // where it runs
	fault   func(point string) error
}

// in is the same program in another box.
func (g *git) in(box Box) *git {
	inside := *g
	inside.box = box
	return &inside
}

// place says which repository a git call works on and whose configuration counts.
type place struct {
	dir     string      // current directory
	gitDir  string      // "" = found from dir
	work    string      // working tree
	index   string      // index file, "" = the git directory's own
	objects string      // where new objects go, "" = the git directory's own
	user    bool        // the user's global and system configuration count
	config  []string    // further key=value
	disarm  [][2]string // keys with values that must win; a key may hold a "="
}

// quiet is what every call of ours switches off: nothing the repository or the user
// configured runs, asks, locks or writes beside what was asked for.
var quiet = []string{
	"core.hooksPath=/dev/null",
	"core.fsmonitor=false",
	"commit.gpgSign=false",
	"tag.gpgSign=false",
	"core.pager=cat",
	"core.logAllRefUpdates=false",
	"core.splitIndex=false", // else a copy of the index would write shared index files
	"core.safecrlf=false",   // else a file with mixed line ends could not be snapshot
	"submodule.recurse=false",
	"core.protectHFS=true", // what is .git on a Mac is refused anywhere
	"gc.auto=0",
	"maintenance.auto=false",
}

// environment is the user's without what git would obey.
func environment(environ []string) []string {
	env := make([]string, 0, len(environ))
	for _, kv := range environ {
		if !strings.HasPrefix(kv, "GIT_") && !strings.HasPrefix(kv, "LC_ALL=") {
			env = append(env, kv)
		}
	}
	return env
}

// fixed is part of the environment of all git calls.
var fixed = []string{
	"LC_ALL=C", // messages are read in two places
	"GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1",
	"GIT_ALLOW_PROTOCOL=none", // what older ones would fetch by
	"GIT_AUTHOR_NAME=skein", "GIT_AUTHOR_EMAIL=skein@localhost",
	"GIT_COMMITTER_NAME=skein", "GIT_COMMITTER_EMAIL=skein@localhost",
}

// A gitError is a git call that ended with a status other than 0.
type gitError struct {
	verb   string
	exit   int
	stderr string
	cause  error
}

func (e *gitError) Error() string {
	if text := strings.TrimSpace(e.stderr); text != "" {
		return "git " + e.verb + ": " + text
	}
	return "git " + e.verb + ": " + e.cause.Error()
}

// reason is why git stopped: the last of its errors that is not about what follows from
// it. Earlier ones may be of a filter that may fail, or of a filter's own.
func (e *gitError) reason() string {
	reason := ""
	for line := range strings.Lines(e.stderr) {
		kind, text, ok := strings.Cut(strings.TrimSpace(line), ": ")
		switch {
		case !ok, kind != "error" && kind != "fatal":
		case strings.HasPrefix(text, "Unable to process path "), strings.HasSuffix(text, ": failed to insert into database"):
		default:
			reason = text
		}
	}
	return reason
}

func (e *gitError) Unwrap() error { return e.cause }

// exitOf is the exit status in err; -1 where there is none.
func exitOf(err error) int {
	if e := (*gitError)(nil); errors.As(err, &e) {
		return e.exit
	}
	return -1
}

// run returns standard output, also beside an error: merge-tree answers with status 1.
func (g *git) run(ctx context.Context, at place, stdin []byte, args ...string) ([]byte, error) {
	out, _, err := g.both(ctx, at, stdin, args...)
	return out, err
}

// line runs git and returns its output without the last newline.
func (g *git) line(ctx context.Context, at place, args ...string) (string, error) {
	out, err := g.run(ctx, at, nil, args...)
	return strings.TrimSuffix(string(out), "\n"), err
}

// both returns standard output and standard error.
func (g *git) both(ctx context.Context, at place, stdin []byte, args ...string) ([]byte, string, error) {
	return g.call(ctx, at, bytes.NewReader(stdin), args...)
}

// call is both for any input.
func (g *git) call(ctx context.Context, at place, stdin io.Reader, args ...string) ([]byte, string, error) {
	verb := args[0]
	if err := g.point("before git " + verb); err != nil {
		return nil, "", err
	}
	argv := make([]string, 0, 2*(len(quiet)+len(at.config))+1+len(args))
	argv = append(argv, g.program)
	for _, kv := range slices.Concat(quiet, at.config) {
		argv = append(argv, "-c", kv)
	}
	a, err := g.box.Git(ctx, Call{
		Argv: append(argv, args...), Dir: at.dir, Stdin: stdin, Env: slices.Concat(fixed, at.environment()),
	})
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("git %s: %w", verb, context.Cause(ctx))
	case err != nil:
		err = &gitError{verb: verb, exit: -1, stderr: string(a.Stderr), cause: err}
	case a.Exit != 0:
		err = &gitError{verb: verb, exit: a.Exit, stderr: string(a.Stderr), cause: fmt.Errorf("exit status %d", a.Exit)}
	default:
		err = g.point("after git " + verb)
	}
	return a.Stdout, string(a.Stderr), err
}

// oneAtATime has the points of git calls that overlap come one after another.
func oneAtATime(fault func(string) error) func(string) error {
	if fault == nil {
		return nil
	}
	var mu sync.Mutex
	return func(point string) error {
		mu.Lock()
		defer mu.Unlock()
		return fault(point)
	}
}

func (g *git) point(name string) error {
	if g.fault == nil {
		return nil
	}
	return g.fault(name)
}

func (at place) environment() []string {
	var env []string
	for _, v := range [][2]string{
		{"GIT_DIR", at.gitDir},
		{"GIT_WORK_TREE", at.work},
		{"GIT_INDEX_FILE", at.index},
		{"GIT_OBJECT_DIRECTORY", at.objects},
	} {
		if v[1] != "" {
			env = append(env, v[0]+"="+v[1])
		}
	}
	for i, kv := range at.disarm {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, kv[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, kv[1]))
	}
	if len(at.disarm) > 0 {
		env = append(env, fmt.Sprint("GIT_CONFIG_COUNT=", len(at.disarm)))
	}
	if !at.user {
		env = append(env, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	}
	return env
}

// durable is the same place with objects and refs on the disk before git says that they are
// there: git itself leaves refs, and objects that are no packs, to the system.
func (at place) durable() place {
	at.config = append(at.config[:len(at.config):len(at.config)], "core.fsync=committed,loose-object,reference")
	return at
}

// with is the same place with another index.
func (at place) with(index string) place {
	at.index = index
	return at
}

// fields splits the output of a -z option.
func fields(out []byte) []string {
	text := strings.TrimSuffix(string(out), "\x00")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\x00")
}

// list is the input of a -z --stdin option.
func list(paths []string) []byte {
	var b bytes.Buffer
	for _, p := range paths {
		b.WriteString(p)
		b.WriteByte(0)
	}
	return b.Bytes()
}
