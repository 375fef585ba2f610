package sandbox

import (
	"io"
	"os"
	"sync"
	"time"
)

// defaultLimit is how many bytes of a stream are kept when the command does not say.
const defaultLimit = 1 << 20

// drainFor bounds how long output is awaited once no process of the command is left. A
// descriptor that was handed to another command keeps the pipe open.
const drainFor = time.Second

// A clip keeps the beginning and the end of a stream.
type clip struct {
	limit      int
	head, tail []byte
	at         int // where the next byte of a full tail goes
	dropped    int64
}

func (c *clip) write(p []byte) {
	n := min(len(p), c.limit/2-len(c.head))
	c.head = append(c.head, p[:n]...)
	p = p[n:]
	keep := c.limit - c.limit/2
	if over := len(p) - keep; over > 0 {
		c.dropped += int64(over)
		p = p[over:]
	}
	n = min(len(p), keep-len(c.tail))
	c.tail = append(c.tail, p[:n]...)
	for p = p[n:]; len(p) > 0; p = p[n:] {
		n = copy(c.tail[c.at:], p)
		c.at = (c.at + n) % keep
		c.dropped += int64(n)
	}
}

func (c *clip) bytes() []byte {
	out := make([]byte, 0, len(c.head)+len(c.tail))
	out = append(out, c.head...)
	out = append(out, c.tail[c.at:]...)
	return append(out, c.tail[:c.at]...)
}

// since returns what is kept of the stream from byte off on, how many bytes of that were
// dropped, and where the stream ends now.
func (c *clip) since(off int64) (kept []byte, dropped, next int64) {
	kept, first := c.bytes(), int64(len(c.head)) // the gap, if there is one, is at first
	next = int64(len(kept)) + c.dropped
	switch off = max(0, min(off, next)); {
	case off < first:
		return kept[off:], c.dropped, next
	case off < first+c.dropped:
		return kept[first:], first + c.dropped - off, next
	}
	return kept[off-c.dropped:], 0, next
}

// A capture reads what one command writes.
type capture struct {
	merge  bool
	reads  []*os.File
	writes []*os.File // ends for the command; out and err are the same when merged
	group  sync.WaitGroup

	over func() // called once more than most has been written

	mu                    sync.Mutex
	most                  int64 // bytes; 0 = no limit
	seen                  int64
	combined, stdout, err clip
}

// newCapture calls over as soon as more than most bytes are written.
func newCapture(c Command, most int64, over func()) (*capture, error) {
	limit := int(c.Limit)
	if limit <= 0 {
		limit = defaultLimit
	}
	k := &capture{merge: c.Merge, most: most, over: over, combined: clip{limit: limit}, stdout: clip{limit: limit}, err: clip{limit: limit}}
	for _, s := range []struct {
		keep *clip
		live io.Writer
	}{{&k.stdout, c.Out}, {&k.err, c.Err}} {
		if c.Merge && s.keep == &k.err {
			continue
		}
		r, w, err := pipe()
		if err != nil {
			k.started()
			_ = k.finish()
			return nil, err
		}
		k.reads, k.writes = append(k.reads, r), append(k.writes, w)
		k.group.Go(func() { k.read(r, s.keep, s.live) }) // finish waits
	}
	return k, nil
}

func (k *capture) out() *os.File    { return k.writes[0] }
func (k *capture) errOut() *os.File { return k.writes[len(k.writes)-1] }

func (k *capture) read(r io.Reader, to *clip, live io.Writer) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		k.mu.Lock()
		k.combined.write(buf[:n])
		if k.seen += int64(n); k.most > 0 && k.seen > k.most {
			k.over()
		}
		if !k.merge {
			to.write(buf[:n])
		}
		if live != nil && n > 0 {
			_, _ = live.Write(buf[:n])
		}
		k.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// started closes our copies of the command's ends.
func (k *capture) started() {
	for _, w := range k.writes {
		_ = w.Close()
	}
}

// finish returns all output once the command has ended.
func (k *capture) finish() Output {
	deadline := time.Now().Add(drainFor)
	for _, r := range k.reads {
		_ = r.SetReadDeadline(deadline)
	}
	k.group.Wait()
	for _, r := range k.reads {
		_ = r.Close()
	}
	o := Output{Combined: k.combined.bytes(), Dropped: k.combined.dropped, Stderr: k.err.bytes()}
	if o.Stdout = k.stdout.bytes(); k.merge {
		o.Stdout = o.Combined
	}
	return o
}
