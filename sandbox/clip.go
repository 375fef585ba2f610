package sandbox

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
