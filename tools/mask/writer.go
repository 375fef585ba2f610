package mask

import "io"

// hold is how many bytes a [Writer] keeps back at least: a key has to show itself in them.
const hold = 16 << 10

// A Writer masks a stream as [Mask.Written] masks a text, wherever its chunks are cut. It
// belongs to one goroutine. Of a key of more than 16 KiB, and there are none, the end would
// pass; a secret that the harness holds may be of any length.
type Writer struct {
	mask   *Mask
	to     io.Writer
	keep   int
	buf    []byte
	before byte // the character in front of buf
	err    error
}

// Writer returns a writer that masks what is written to it and passes it on to w. Close it:
// it holds back its last bytes, since a secret may have begun in them.
func (m *Mask) Writer(w io.Writer) *Writer {
	keep := max(hold, 12*m.known.longest) // each byte may be written \u00XX, and escaped again
	return &Writer{mask: m, to: w, keep: keep}
}

// Write takes all of p. The first error of the writer below is returned from then on.
func (w *Writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	w.buf = append(w.buf, p...)
	if len(w.buf) >= 2*w.keep {
		w.flush(len(w.buf) - w.keep)
	}
	return len(p), w.err
}

// Close passes on what was held back. It does not close the writer below.
func (w *Writer) Close() error {
	if w.err == nil && len(w.buf) > 0 {
		w.flush(len(w.buf))
	}
	return w.err
}

// flush passes on the buffer up to cut, or to a little before: no secret and no escape is
// cut in two.
func (w *Writer) flush(cut int) {
	found, v := w.mask.find(w.buf, true, w.before)
	if cut < len(w.buf) {
		cut = v.unitAt(cut)
	}
	n := 0
	for n < len(found) && found[n].from < cut {
		if found[n].to > cut && found[n].from > 0 {
			cut = found[n].from
			break
		}
		cut = max(cut, found[n].to)
		n++
	}
	if cut == 0 { // one escape fills the buffer: a run of backslashes
		return
	}
	_, w.err = w.to.Write(replace(nil, w.buf[:cut], found[:n]))
	w.before = v.before(cut)
	w.buf = w.buf[:copy(w.buf, w.buf[cut:])]
}
