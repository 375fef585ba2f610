package files

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"

	"skein/tools"
)

// A Record knows which contents of files one agent has seen. It is what keeps write_file from
// replacing what the model never looked at, or what somebody changed meanwhile. The zero value
// has seen nothing; a nil Record switches the guard off. Its methods may be called from
// several goroutines at once.
type Record struct {
	mu    sync.Mutex
	seen  map[string]view // by name in the workspace's FS
	fresh map[string]view // shown since the last Next: the model does not know it yet
}

// A view is what was shown of one content of a file.
type view struct {
	sum   [sha256.Size]byte // of the whole content
	size  int
	parts []part // shown so far; sorted, disjoint
}

// A part is a range of bytes: from, and the byte after the last.
type part struct{ from, to int }

func (v view) whole() bool {
	return v.size == 0 || len(v.parts) == 1 && v.parts[0] == part{0, v.size}
}

// add takes note that a part was shown. Parts that touch become one.
func (v view) add(p part) view {
	parts := append(slices.Clone(v.parts), p)
	slices.SortFunc(parts, func(a, b part) int { return a.from - b.from })
	joined := parts[:1]
	for _, p := range parts[1:] {
		if last := &joined[len(joined)-1]; p.from <= last.to {
			last.to = max(last.to, p.to)
		} else {
			joined = append(joined, p)
		}
	}
	v.parts = joined
	return v
}

// Next says that the model has answered: what was shown until now is what it knew. The batch
// of the agent calls it before it carries out the calls of a reply.
func (r *Record) Next() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, v := range r.fresh {
		r.putLocked(&r.seen, name, v)
	}
	r.fresh = nil
}

// Shown says that bytes from up to to of a file, whose whole content is data, are in a result.
func (r *Record) Shown(name, data string, from, to int) {
	if r == nil {
		return
	}
	v := view{sum: sha256.Sum256([]byte(data)), size: len(data)}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.putLocked(&r.fresh, name, v.add(part{from, to}))
}

// putLocked adds the parts of v to those known of the same content.
func (r *Record) putLocked(to *map[string]view, name string, v view) {
	if *to == nil {
		*to = map[string]view{}
	}
	if old, ok := (*to)[name]; ok && old.sum == v.sum {
		for _, p := range old.parts {
			v = v.add(p)
		}
	}
	(*to)[name] = v
}

// Wrote says that the agent itself made data the content of a file. It knows that content
// from then on, in the same reply too.
func (r *Record) Wrote(name, data string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	v := view{sum: sha256.Sum256([]byte(data)), size: len(data)}
	r.putLocked(&r.seen, name, v.add(part{0, len(data)}))
}

// Edited says that the agent changed before into after by an edit. It knows after to the
// extent to which it knew before.
func (r *Record) Edited(name, before, after string) {
	if r == nil {
		return
	}
	old, now := sha256.Sum256([]byte(before)), sha256.Sum256([]byte(after))
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range []map[string]view{r.seen, r.fresh} {
		if v, ok := m[name]; ok && v.sum == old && v.whole() {
			m[name] = view{sum: now, size: len(after)}.add(part{0, len(after)})
		}
	}
}

// check returns why the file must not be overwritten, or nil.
func (r *Record) check(t tools.Text) error {
	if r == nil {
		return nil
	}
	sum := sha256.Sum256([]byte(t.Data))
	r.mu.Lock()
	defer r.mu.Unlock()
	v, known := r.seen[t.Name]
	f, justNow := r.fresh[t.Name]
	what, next := "", "read it with read_file first, then write it in your next reply, or change parts of it with search_replace"
	switch {
	case known && v.sum == sum && v.whole():
		return nil
	case justNow && f.sum == sum:
		what = "was read in this same reply, so you had not seen it when you wrote the new content"
		next = "look at what it holds now, then write it in your next reply"
	case known && v.sum == sum:
		what = fmt.Sprintf("was read only in part (%s of %d bytes), and the rest would be lost", v.shown(), v.size)
	case known:
		what = "has changed since you read it"
	default:
		what = "exists and you have not read it"
	}
	return &tools.Fault{What: tools.Show(t.Name) + ": not overwritten: it " + what, Next: next}
}

func (v view) shown() string {
	n := 0
	for _, p := range v.parts {
		n += p.to - p.from
	}
	return fmt.Sprint(n)
}
