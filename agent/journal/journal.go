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

	// Mask hides secrets in the content of an event, JSON that has to stay valid, before it
	// is written and watched; it may be nil.
	Mask func([]byte) []byte
}

// A Journal is the journal of one session. Its methods may be called from several goroutines
// at once.
//
// It begins on disk with the first durable event, which is the model's first reply: a run
// that never got an answer leaves nothing behind.
type Journal struct {
	dir     string
	session string
	now     func() time.Time
	watch   func(Event)
	mask    func([]byte) []byte

	mu      sync.Mutex
	lock    *os.File // nil before the journal is on disk
	file    *os.File
	waiting []byte // lines written before it was
	run     int
	seqs    map[string]int
	count   int64 // events appended
	needed  int64 // the last durable one
	failed  error

	sync   sync.Mutex // one fsync at a time serves all that wait
	synced int64      // events known to be on disk; guarded by sync
}

// New returns the session's journal below dir, a folder such as <workspace>/.skein. Call
// Close when the run is over.
func New(dir string, o Options) *Journal {
	j := &Journal{dir: dir, session: o.Session, now: o.Now, watch: o.Watch, mask: o.Mask, run: 1, seqs: map[string]int{}}
	if j.now == nil {
		j.now = time.Now
	}
	return j
}

// begin makes the session's folders (0700), takes its lock and opens its file; a session held
// by another process is refused.
func (j *Journal) begin() error {
	folder := filepath.Join(j.dir, "sessions", j.session)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("open session %s: %w", j.session, err)
	}
	if err := ignore(j.dir); err != nil {
		return fmt.Errorf("open session %s: %w", j.session, err)
	}
	lock, err := os.OpenFile(filepath.Join(folder, ".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("lock session %s: %w", j.session, err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return errors.Join(fmt.Errorf("lock session %s: in use by another process: %w", j.session, err), lock.Close())
	}
	file, err := os.OpenFile(filepath.Join(folder, "journal.jsonl"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return errors.Join(fmt.Errorf("open journal of session %s: %w", j.session, err), lock.Close())
	}
	j.lock, j.file = lock, file
	return nil
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

// Append writes an event of an agent. A failure to write is kept and returned by
// [Journal.Barrier] and Close, so that no effect follows an event that is not on disk.
func (j *Journal) Append(agent string, p Payload) {
	c := p.class()
	data, err := json.Marshal(p)
	if err != nil {
		f := &Fault{Text: "encode event " + c.kind + ": " + err.Error()}
		c = f.class()
		data, _ = json.Marshal(f) // two strings: it cannot fail
	}
	if j.mask != nil {
		data = j.mask(data)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.seqs[agent]++
	j.count++
	e := Event{Session: j.session, Run: j.run, Agent: agent, Seq: j.seqs[agent], Time: j.now(), Kind: c.kind, Data: data}
	if j.count == 1 {
		e.Schema = Schema
	}
	if c.durable {
		j.needed = j.count
	}
	if err := j.write(e, c.durable); err != nil && j.failed == nil {
		j.failed = fmt.Errorf("write journal of session %s: %w", j.session, err)
	}
	if j.watch != nil {
		j.watch(e)
	}
}

func (j *Journal) write(e Event, durable bool) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	j.waiting = append(append(j.waiting, line...), '\n')
	if j.file == nil {
		if !durable {
			return nil
		}
		if err := j.begin(); err != nil {
			return err
		}
	}
	n, err := j.file.Write(j.waiting)
	j.waiting = j.waiting[:copy(j.waiting, j.waiting[n:])]
	return err
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
	have, file := j.count, j.file
	j.mu.Unlock()
	if err := file.Sync(); err != nil {
		return fmt.Errorf("sync journal of session %s: %w", j.session, err)
	}
	j.synced = have
	return nil
}

// Close makes everything durable and gives the session's lock back. Nothing may be appended
// afterwards.
func (j *Journal) Close() error {
	if j.file == nil {
		return j.failed
	}
	return errors.Join(j.Barrier(), j.file.Close(), j.lock.Close())
}
