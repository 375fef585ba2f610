package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"skein/sandbox/boxinit"
)

const (
	// patience bounds how long building a box, handing it a message or ending a command may
	// take on a machine under load. What ends a box for less takes other commands with it.
	patience = 20 * time.Second
	// closeFor bounds how long an init may take to end by itself, and to end a command that
	// nobody waits for any more.
	closeFor = 5 * time.Second
)

// A Box holds the processes of one workspace. Its methods may be called at the same time.
type Box struct {
	policy Policy // checked
	plan   plan
	held   Held
	init   *exec.Cmd
	stderr bytes.Buffer  // of the init; to be read after gone
	gone   chan struct{} // closed when the init has ended, and with it every process
	conn   *net.UnixConn

	crew    crew
	sending sync.Mutex // a message and its descriptors are not torn apart

	viewing sync.RWMutex // held for reading while the path of the view is used
	view    *os.File     // handle of the workspace as the box shows it; nil when closed
	root    string       // its path, see [Box.Root]

	mu     sync.Mutex // guards the fields just below
	last   int64
	calls  map[int64]chan boxinit.Reply
	guests map[string]*Guest
	closed bool // no more guests
}

// Open builds a box that holds the policy, or starts nothing and says why: the error wraps
// [ErrNoBox] when this system cannot. ctx bounds the building, not the box's life; the
// caller must close the box. The box also ends when this process does, however that comes.
func Open(ctx context.Context, p Policy) (*Box, error) {
	p, err := p.checked()
	if err != nil {
		return nil, err
	}
	b := &Box{policy: p, gone: make(chan struct{}), calls: map[int64]chan boxinit.Reply{}, guests: map[string]*Guest{}}
	ready := b.expect(0)
	// The init starts while it is worked out what it shall build.
	started := make(chan error, 1)
	go func() { started <- b.start(ctx, p.Init) }() // waited for just below
	b.plan, err = planFor(p)
	failed := <-started
	switch {
	case err != nil:
		if failed == nil {
			_ = b.Close() // err says what went wrong
		}
		return nil, err
	case failed != nil:
		return nil, &noBox{refusedBy(failed)}
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err = b.send(b.plan.spec); err == nil {
		err = b.built(limited, ready)
	}
	if err == nil {
		// Now: once commands run, they could move what lies on the way.
		if b.view, err = b.look(); err == nil {
			b.root = fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), b.view.Fd())
		}
	}
	if err == nil {
		return b, nil
	}
	_ = b.Close() // err says what went wrong
	if ctx.Err() != nil {
		return nil, fmt.Errorf("open box: %w", context.Cause(ctx))
	}
	return nil, b.refused(err)
}

// refused says why the init built no box. It is to be called once that is gone.
func (b *Box) refused(err error) error {
	said := (*initError)(nil)
	switch errors.As(err, &said); {
	case said == nil:
		// One that crashes says more than anybody reads.
		if words, _, _ := strings.Cut(strings.TrimSpace(b.stderr.String()), "\n"); words != "" {
			err = fmt.Errorf("%w: %s", err, words)
		}
	case said.fault == boxinit.FaultNet:
		err = fmt.Errorf("%w: %w", ErrNoNet, err)
	case said.fault == boxinit.FaultPath:
		return &policyError{err, "commands run as the owner of the workspace: let that user enter the folders above it"}
	case said.fault == boxinit.FaultGone:
		return &policyError{err, "it changed while the box was opened: try again"}
	}
	return &noBox{err}
}

// built waits for the init to say that the box is there.
func (b *Box) built(ctx context.Context, ready <-chan boxinit.Reply) error {
	r, err := b.await(ctx, ready)
	if err == nil && r.Held == nil {
		err = errors.New("the init does not say what holds the box")
	}
	if err == nil {
		b.held = Held{Tier: "namespaces", Landlock: r.Held.Landlock, Seccomp: true, Processes: r.Held.Processes}
	}
	return err
}

// Held tells what holds the box. It may be called at any time.
func (b *Box) Held() Held { return b.held }

// start starts the init and what listens to it.
func (b *Box) start(ctx context.Context, program string) error {
	program, err := initProgram(program)
	if err != nil {
		return err
	}
	attr, err := namespaces(b.policy.Net)
	if err != nil {
		return err
	}
	conn, theirs, err := socketPair()
	if err != nil {
		return err
	}
	defer func() { _ = theirs.Close() }()
	b.conn = conn
	b.init = exec.CommandContext(context.WithoutCancel(ctx), program, boxinit.ArgServe)
	b.init.Args[0] = boxinit.Name
	// One command at a time is looked after: more would take memory for each processor.
	b.init.Dir, b.init.Env, b.init.Stderr = "/", []string{"GOMAXPROCS=1"}, &b.stderr
	b.init.ExtraFiles = []*os.File{theirs}
	b.init.WaitDelay = time.Second
	b.init.SysProcAttr = attr
	if err := b.init.Start(); err != nil {
		_ = conn.Close()
		return err
	}
	go b.listen() // Close waits for it, through gone
	return nil
}

// listen hands replies to those who wait for them, until the box ends.
func (b *Box) listen() {
	defer close(b.gone)
	b.hear()
	_ = b.conn.Close() // the init reads the end of the file, and exits
	overdue := time.AfterFunc(closeFor, func() { _ = b.init.Process.Kill() })
	defer overdue.Stop()
	_ = b.init.Wait() // how it ended does not matter
}

// hear hands replies on until the conversation is over.
func (b *Box) hear() {
	for {
		var r boxinit.Reply
		if boxinit.Decode(b.conn, &r) != nil {
			return
		}
		b.mu.Lock()
		call := b.calls[r.ID]
		if !r.Started {
			delete(b.calls, r.ID)
		}
		b.mu.Unlock()
		select {
		case call <- r: // nil takes none
		default: // an init that answers too often is not listened to
		}
	}
}

// Close ends every process ever started in the box and waits until none is left. It may
// be called more than once.
func (b *Box) Close() error {
	_ = b.conn.Close() // listen sees it, or has closed it
	<-b.gone
	b.crew.close()
	b.mu.Lock()
	b.closed = true
	guests := slices.Collect(maps.Values(b.guests))
	b.mu.Unlock()
	for _, g := range guests {
		g.crew.close()
	}
	b.viewing.Lock()
	defer b.viewing.Unlock()
	if b.view != nil {
		_ = b.view.Close() // nothing is written through it
		b.view = nil
	}
	return nil
}

// Planted lists what somebody outside could obey and what was not there when the box was
// opened: git directories, what [Closed] names, and files of a hidden name; and closed files
// that have another name and were changed since, as by that one. Paths are slash-separated and relative to the workspace. Whoever runs git in the workspace outside
// of a box looks here first, and the user is told; nothing is removed, since it may be the
// user who made it in the meantime. It may be called at any time, after Close too.
func (b *Box) Planted() []string { return b.plan.planted() }

func (b *Box) expect(id int64) <-chan boxinit.Reply {
	call := make(chan boxinit.Reply, 2) // that it has started, that it has ended
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls[id] = call
	return call
}

// forget drops a call that nothing answers.
func (b *Box) forget(id int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.calls, id)
}

// await waits for a reply. Its error is the init's, an [endedError], or [errOver].
func (b *Box) await(ctx context.Context, call <-chan boxinit.Reply) (boxinit.Reply, error) {
	select {
	case r := <-call:
		return r, answered(r)
	case <-ctx.Done():
		return boxinit.Reply{}, errOver
	case <-b.gone:
	}
	select {
	case r := <-call: // its last words
		return r, answered(r)
	default:
		return boxinit.Reply{}, b.ended(nil)
	}
}

// errOver is the answer of await when its ctx was over first.
var errOver = errors.New("no answer in time")

// An initError is what the init says of a command or a box that it could not start.
type initError struct {
	text  string
	errno syscall.Errno
	fault string // see [boxinit.Reply]
}

func (e *initError) Error() string { return e.text }

func (e *initError) Unwrap() error {
	if e.errno == 0 {
		return nil
	}
	return e.errno
}

func answered(r boxinit.Reply) error {
	if r.Error == "" {
		return nil
	}
	return &initError{r.Error, syscall.Errno(r.Errno), r.Fault}
}
