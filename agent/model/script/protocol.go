package script

import (
	"bytes"
	"encoding/json"
	"net/http"
	"unicode/utf8"
)

// A protocol is how one kind of provider is asked, and how it answers.
type protocol interface {
	// read takes a request apart, all but its origin. It refuses what the provider refuses,
	// so that no harness passes its tests with conversations that nobody else would accept.
	read(header http.Header, body []byte) (request, error)

	// pieces are the reply in the form in which it will be seen when it is sent back.
	pieces(a answer) ([][]byte, error)

	// whole is the body of a reply that is not streamed; stream is one that is, in the
	// pieces in which the provider would write it.
	whole(a answer) ([]byte, error)
	stream(a answer) ([][]byte, error)

	// problem is the body of an error.
	problem(status int, kind, words string) []byte

	// habits are what else differs.
	habits() habits
}

// habits of a protocol. Keep-alives are sent while the model thinks; empty means that the
// provider sends none.
type habits struct {
	streamType  string // the media type of a stream
	streamAlive string // what keeps a stream alive
	wholeAlive  string // what keeps the connection of another reply alive
}

const (
	typeJSON   = "application/json"
	typeEvents = "text/event-stream"
	typeLines  = "application/x-ndjson"
)

// bits cuts a text into what a stream brings at once: a few characters, more of long texts
// so that a stream of megabytes is no million of events.
func bits(text string) []string {
	const least, most = 12, 512 // bytes of one, number of all
	size := max(least, len(text)/most)
	var out []string
	for len(text) > size {
		n := size
		for n > 1 && !utf8.RuneStart(text[n]) {
			n--
		}
		out, text = append(out, text[:n]), text[n:]
	}
	if text != "" {
		out = append(out, text)
	}
	return out
}

// encode gives v's JSON with <, > and & as they are.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}

// again decodes raw into form and encodes it, so that only what form holds counts. What
// does not fit the form stays as it is.
func again(raw json.RawMessage, form any) []byte {
	if json.Unmarshal(raw, form) == nil {
		if out, err := encode(form); err == nil {
			return out
		}
	}
	return raw
}

// A sequence collects the pieces of a stream and the first error of making one.
type sequence struct {
	chunks [][]byte
	err    error
}

// add puts one piece between head and tail.
func (s *sequence) add(head string, v any, tail string) {
	data, err := encode(v)
	if err != nil && s.err == nil {
		s.err = err
	}
	s.chunks = append(s.chunks, append(append([]byte(head), data...), tail...))
}

// isFilled reports whether a value that was part of a body, and so is JSON, is a list of
// something. It is not read once more for that: tools are most of a request.
func isFilled(value json.RawMessage) bool {
	return value[0] == '[' && bytes.TrimLeft(value[1:], " \t\r\n")[0] != ']'
}

// isObject reports whether a call's arguments are what protocols that do not send them as
// a text can send.
func isObject(args string) bool {
	var m map[string]json.RawMessage
	return json.Unmarshal([]byte(args), &m) == nil && m != nil
}
