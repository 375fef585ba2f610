package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Options configures [Open].
type Options struct {
	Session string           // id, sortable by time; see [NewID]
	Now     func() time.Time // nil: time.Now
	Watch   func(Event)      // told of each event after it was written, in file order; may be nil
}

// A Journal is the open journal of one session. Its methods may be called from several
// goroutines at once.
type Journal struct {
	session string
	now     func() time.Time
	watch   func(Event)
	lock    *os.File

	mu      sync.Mutex
	file    *os.File
	run     int
	seqs    map[string]int
	first   bool
	written int64 // events written
	needed  int64 // the last durable one
	failed  error

	sync   sync.Mutex // one fsync at a time serves all that wait
	synced int64      // events known to be on disk; guarded by sync
}

// Open starts the session's journal below dir, a folder such as <workspace>/.skein. It makes
// the folders (0700) and takes the session's lock; a session held by another process is
// refused. Call Close when the run is over.
func Open(dir string, o Options) (*Journal, error) {
	folder := filepath.Join(dir, "sessions", o.Session)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("open session %s: %w", o.Session, err)
	}
	if err := ignore(dir); err != nil {
		return nil, fmt.Errorf("open session %s: %w", o.Session, err)
	}
	lock, err := os.OpenFile(filepath.Join(folder, ".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock session %s: %w", o.Session, err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock session %s: in use by another process: %w", o.Session, err), lock.Close())
	}
	file, err := os.OpenFile(filepath.Join(folder, "journal.jsonl"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open journal of session %s: %w", o.Session, err), lock.Close())
	}
	j := &Journal{session: o.Session, now: o.Now, watch: o.Watch, lock: lock, file: file, run: 1, seqs: map[string]int{}, first: true}
	if j.now == nil {
		j.now = time.Now
	}
	return j, nil
}

// ignore keeps the state of sessions out of the project's git, and leaves a file that the
// project made itself as it is.
func ignore(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, ".gitignore"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString("/.gitignore\n/sessions/\n/sessions.lock\n")
	return errors.Join(err, f.Close())
}

// Append writes an event of an agent. A failure to write is kept and returned by [Journal.Barrier]
// and Close, so that no effect follows an event that is not on disk.
func (j *Journal) Append(agent string, p Payload) {
	c := p.class()
	data, err := json.Marshal(p)
	if err != nil {
		data, _ = json.Marshal(Fault{Text: "encode event: " + err.Error()})
		c = (&Fault{}).class()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.seqs[agent]++
	e := Event{Session: j.session, Run: j.run, Agent: agent, Seq: j.seqs[agent], Time: j.now(), Kind: c.kind, Data: data}
	if j.first {
		e.Schema, j.first = Schema, false
	}
	line, err := json.Marshal(e)
	if err == nil && j.failed == nil {
		_, err = j.file.Write(append(line, '\n'))
	}
	if err != nil && j.failed == nil {
		j.failed = fmt.Errorf("write journal of session %s: %w", j.session, err)
	}
	j.written++
	if c.durable {
		j.needed = j.written
	}
	if j.watch != nil {
		j.watch(e)
	}
}

// Barrier returns once every durable event appended before the call is on disk. It is called
// before an effect: a write, a command, a merge.
func (j *Journal) Barrier() error {
	j.mu.Lock()
	need, failed := j.needed, j.failed
	j.mu.Unlock()
	if failed != nil {
		return failed
	}
	j.sync.Lock()
	defer j.sync.Unlock()
	if j.synced >= need {
		return nil
	}
	j.mu.Lock()
	have := j.written
	j.mu.Unlock()
	if err := j.file.Sync(); err != nil {
		return fmt.Errorf("sync journal of session %s: %w", j.session, err)
	}
	j.synced = have
	return nil
}

// Close makes everything durable and gives the session's lock back. Nothing may be appended
// afterwards.
func (j *Journal) Close() error {
	return errors.Join(j.Barrier(), j.file.Close(), j.lock.Close())
}
