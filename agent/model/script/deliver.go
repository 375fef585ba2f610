package script

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A delivery is a body on its way, in the pieces in which it is written.
type delivery struct {
	status int
	kind   string // the media type
	chunks [][]byte
	alive  string // what the provider sends while the model thinks
	lines  bool   // it is a stream of lines
	whole  func() // told just before the last byte is sent; may be nil
}

// deliver sends the body in the rule's way. Where the rule cuts it, it does not return:
// the connection ends.
func (r *rule) deliver(ctx context.Context, w http.ResponseWriter, d delivery) {
	chunks := d.chunks
	if r.KeepAlive && d.alive != "" {
		var kept [][]byte
		for _, c := range chunks {
			kept = append(kept, []byte(d.alive), c)
		}
		chunks = kept
	}
	if r.CRLF && d.lines { // JSON holds no line ends of its own
		for i, c := range chunks {
			chunks[i] = bytes.ReplaceAll(c, []byte("\n"), []byte("\r\n"))
		}
	}
	size := 0
	for _, c := range chunks {
		size += len(c)
	}
	if r.Split > 0 {
		chunks = slices.Collect(slices.Chunk(slices.Concat(chunks...), r.Split))
	}
	w.Header().Set("Content-Type", d.kind)
	if !d.lines {
		w.Header().Set("Content-Length", strconv.Itoa(size))
	}
	left := r.Cut.at(size)
	cut := left < size
	if d.whole != nil && !cut {
		d.whole()
	}
	w.WriteHeader(d.status)
	flush := http.NewResponseController(w).Flush
	for _, c := range chunks {
		if left == 0 {
			break
		}
		if r.Slow > 0 {
			wait(ctx, r.Slow)
		}
		c = c[:min(len(c), left)]
		left -= len(c)
		_, _ = w.Write(c) // the client may have gone: nobody is left to tell
		if d.lines || len(chunks) > 1 || cut {
			_ = flush()
		}
	}
	if cut {
		_ = flush() // the headers, where not even one byte is sent
		panic(http.ErrAbortHandler)
	}
}

// malform breaks the JSON of the piece in the middle and leaves its lines whole.
func malform(chunks [][]byte) {
	i := len(chunks) / 2
	text := strings.TrimRight(string(chunks[i]), "\n")
	ending := chunks[i][len(text):]
	open := max(0, strings.Index(text, "{"))
	chunks[i] = append([]byte(text[:open+(len(text)-open)/2]), ending...)
}

// fail answers with the rule's fault.
func (r *rule) fail(ctx context.Context, w http.ResponseWriter, p protocol, req *request, got captures) {
	if r.RetryAfter != "" {
		w.Header().Set("Retry-After", r.RetryAfter)
	}
	if r.RetryAfterDate != nil {
		// A date has whole seconds: rounded up, it is never earlier than was meant.
		at := time.Now().Add(time.Duration(*r.RetryAfterDate)*time.Second + time.Second - 1)
		w.Header().Set("Retry-After", at.UTC().Format(http.TimeFormat))
	}
	d := delivery{status: r.Status, kind: typeJSON}
	if d.status == 0 {
		d.status = http.StatusOK
	}
	var data []byte
	switch {
	case r.Body != nil:
		data = []byte(got.expand(*r.Body))
		// Some servers answer a request for a stream with a whole reply; a line of JSON may be
		// a stream of lines.
		stream := p.habits().streamType
		if req.streams && d.status == http.StatusOK && (stream == typeLines || isEvents(data)) {
			d.kind, d.lines = stream, true
		}
	case r.Garbage:
		d.kind = "text/html"
		data = []byte("<!doctype html><p>this is no JSON {\"")
	default:
		data = p.problem(d.status, "scripted_fault", fmt.Sprintf("scripted fault: %s", statusText(d.status)))
	}
	d.chunks = [][]byte{data}
	r.deliver(ctx, w, d)
}

// isEvents tells a body of events from one of JSON.
func isEvents(data []byte) bool {
	for _, field := range []string{"data:", "event:", "id:", ":"} {
		if bytes.HasPrefix(data, []byte(field)) {
			return true
		}
	}
	return false
}

func statusText(status int) string {
	if status == 529 { // at some providers
		return "overloaded"
	}
	return strings.ToLower(http.StatusText(status))
}

func send(w http.ResponseWriter, status int, data []byte) {
	w.Header().Set("Content-Type", typeJSON)
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	_, _ = w.Write(data) // the client may have gone: nobody is left to tell
}
