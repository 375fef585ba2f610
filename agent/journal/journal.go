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

// Options configures [New].
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
	waiting []byte // lines that are not written yet
	run     int
	seqs    map[string]int
	count   int64 // events appended
	needed  int64 // the last durable one
	failed  error // why the lines wait; nil once they are written

	sync   sync.Mutex // one fsync at a time serves all that wait
	synced int64      // events known to be on disk; guarded by sync
	lost   error      // of an fsync: what it was to save may be gone, and stays so
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
// by another process is refused, and so is a folder that is a link to elsewhere.
func (j *Journal) begin() error {
	fail := func(err error) error { return fmt.Errorf("open session %s: %w", j.session, err) }
	folder := j.dir
	for _, below := range []string{"", "sessions", j.session} {
		folder = filepath.Join(folder, below)
		if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return fail(err)
		}
		if info, err := os.Lstat(folder); err != nil {
			return fail(err)
		} else if !info.IsDir() {
			return fail(fmt.Errorf("%s is not a folder", folder))
		}
	}
	if err := ignore(j.dir); err != nil {
		return fail(err)
	}
	lock, err := os.OpenFile(filepath.Join(folder, ".lock"), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return fail(err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return errors.Join(fail(fmt.Errorf("in use by another process: %w", err)), lock.Close())
	}
	file, err := os.OpenFile(filepath.Join(folder, "journal.jsonl"), os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return errors.Join(fail(err), lock.Close())
	}
	// The names must last as long as what is written under them.
	for _, dir := range []string{folder, filepath.Dir(folder), j.dir, filepath.Dir(j.dir)} {
		if err := syncFolder(dir); err != nil {
			return errors.Join(fail(err), file.Close(), lock.Close())
		}
	}
	j.lock, j.file = lock, file
	return nil
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
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

// Append adds an event of an agent. Where it cannot be written it waits in memory and is tried
// again with the next one; the first failure is told to the watcher, and [Journal.Barrier]
// fails meanwhile, so that no effect follows an event that is not on disk.
func (j *Journal) Append(agent string, p Payload) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.append(agent, p)
	if p.class().durable {
		j.needed = j.count
	}
	if j.file == nil && j.needed == 0 {
		return // nothing that must last yet
	}
	before := j.failed
	if j.failed = j.write(); j.failed != nil && before == nil {
		j.append("0", &Notice{
			Text: "the journal cannot be written, so nothing may be changed: " + j.failed.Error(),
			Hint: "make room or give access to " + j.dir + "; it is tried again with every event",
		})
	}
}

// append puts an event behind what waits to be written, and tells the watcher.
func (j *Journal) append(agent string, p Payload) {
	data, err := json.Marshal(p)
	if err != nil {
		p = &Fault{Text: "encode event " + p.class().kind + ": " + err.Error()}
		data, _ = json.Marshal(p) // two strings: it cannot fail
	}
	if j.mask != nil {
		data = j.mask(data)
	}
	j.seqs[agent]++
	j.count++
	e := Event{Session: j.session, Run: j.run, Agent: agent, Seq: j.seqs[agent], Time: j.now(), Kind: p.class().kind, Data: data}
	if j.count == 1 {
		e.Schema = Schema
	}
	if line, err := json.Marshal(e); err == nil { // fails only for what Marshal or a mask made no JSON of
		j.waiting = append(append(j.waiting, line...), '\n')
	}
	if j.watch != nil {
		j.watch(e)
	}
}

// write brings what waits to the file, which it makes first.
func (j *Journal) write() error {
	if j.file == nil {
		if err := j.begin(); err != nil {
			return err
		}
	}
	n, err := j.file.Write(j.waiting)
	j.waiting = j.waiting[:copy(j.waiting, j.waiting[n:])]
	if err != nil {
		return fmt.Errorf("write journal of session %s: %w", j.session, err)
	}
	return nil
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
	return j.save(need)
}

func (j *Journal) save(need int64) error {
	j.sync.Lock()
	defer j.sync.Unlock()
	if j.lost != nil || j.synced >= need {
		return j.lost
	}
	j.mu.Lock()
	have, file := j.count, j.file
	j.mu.Unlock()
	if err := file.Sync(); err != nil {
		j.lost = fmt.Errorf("save journal of session %s: %w", j.session, err)
		return j.lost
	}
	j.synced = have
	return nil
}

// Close makes everything durable and gives the session's lock back. Nothing may be appended
// afterwards. That the journal could not be written is an error here only if no watcher was
// told of it.
func (j *Journal) Close() error {
	j.mu.Lock()
	failed, file, all := j.failed, j.file, j.count
	j.mu.Unlock()
	if file == nil || failed != nil {
		if j.watch != nil {
			failed = nil
		}
		return errors.Join(failed, closeAll(j.file, j.lock))
	}
	return errors.Join(j.save(all), closeAll(j.file, j.lock))
}

func closeAll(files ...*os.File) error {
	var errs []error
	for _, f := range files {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}
