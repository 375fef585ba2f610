// Package mask keeps secrets out of what is written down and of what models are shown.
//
// A [Mask] knows the values that the harness itself holds, and finds them plain, escaped as
// in JSON (to any depth: a journal holds JSON inside JSON), escaped as in URLs, and in
// base64. Towards a model only those are masked ([Mask.Known]); in what is written, also
// whatever looks like a key of a common kind ([Mask.Written]).
//
// Masking is deterministic, doing it twice changes nothing, and valid JSON stays valid.
//
// Non-goals: secrets shorter than 8 bytes, compressed or encrypted forms.
package mask

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"skein/tools"
)

// Marker stands where a secret stood.
const Marker = "[secret masked]"

// A Mask hides secrets. It is not changed once made and may be used from several
// goroutines at once.
type Mask struct {
	known    *finder
	patterns []pattern
	pieces   map[string]struct{} // see [Mask.Cut]
	shaped   bool                // see [Mask.Recording]
}

// New returns a mask for these secrets. Ones shorter than 8 bytes are left out: they would
// be found in texts that have nothing to do with them.
func New(secrets []string) *Mask {
	var all []string
	for _, s := range secrets {
		if s = strings.TrimSpace(s); len(s) >= headSize && !isMark(s) {
			all = append(all, forms(s)...)
		}
	}
	return &Mask{known: newFinder(all), patterns: patterns(), pieces: pieces(all)}
}

// Known masks the secrets that the harness holds. It is for tool output, once, when the
// result is made; never for the model's own messages.
func (m *Mask) Known(s string) string { return string(m.mask([]byte(s), false, true)) }

// Written masks the secrets that the harness holds and what looks like one. It is for all
// that is written or shown: journals, raw logs, spill files, errors, reports. A JSON value
// is given whole, one at a time, and stays valid; a secret that is a number becomes a string.
// Its own keys are not masked: who writes it chose them. Keys of JSON in its strings are.
// What is returned may be b itself; b is not changed.
func (m *Mask) Written(b []byte) []byte { return m.mask(b, true, false) }

func (m *Mask) mask(b []byte, patterns, keys bool) []byte {
	found := m.find(b, patterns)
	switch {
	case len(found) == 0:
		return b
	case json.Valid(b):
		return m.maskJSON(b, patterns, keys)
	}
	return m.replace(make([]byte, 0, len(b)), b, found)
}

// maskJSON masks inside the strings and numbers of valid JSON, never across them.
func (m *Mask) maskJSON(b []byte, patterns, keys bool) []byte {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); {
		end := i + 1
		switch {
		case b[i] == '"':
			for end++; b[end-1] != '"'; end++ {
				if b[end-1] == '\\' {
					end++
				}
			}
			if !keys && isKey(b[end:]) {
				out = append(out, b[i:end]...)
			} else {
				out = append(out, m.maskString(b[i:end], patterns)...)
			}
		case isNumber(b[i]):
			for end < len(b) && isNumber(b[end]) {
				end++
			}
			if found := m.find(b[i:end], patterns); len(found) > 0 {
				out = append(out, `"`+Marker+`"`...)
			} else {
				out = append(out, b[i:end]...)
			}
		default:
			out = append(out, b[i])
		}
		i = end
	}
	return out
}

// maskString masks in a string of JSON, its quotes included. One that holds JSON itself is
// written anew, so that what it holds stays valid too.
func (m *Mask) maskString(quoted []byte, patterns bool) []byte {
	inner := quoted[1 : len(quoted)-1]
	found := m.find(inner, patterns)
	if len(found) == 0 {
		return quoted
	}
	var text string
	if json.Unmarshal(quoted, &text) == nil && strings.IndexAny(text, "{[") == 0 && json.Valid([]byte(text)) {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if enc.Encode(string(m.mask([]byte(text), patterns, true))) == nil {
			return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
		}
	}
	return append(m.replace([]byte{'"'}, inner, found), '"')
}

// isKey reports whether a string of JSON is a key, by what stands behind it.
func isKey(after []byte) bool { return bytes.HasPrefix(bytes.TrimLeft(after, " \t\r\n"), []byte(":")) }

func isNumber(c byte) bool {
	return c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

// A span is a part of a text, from the first byte up to but not including the last.
type span struct {
	from, to int
	looks    bool // it is masked for its looks alone
}

// find returns where secrets stand in b, in order and apart from each other.
func (m *Mask) find(b []byte, patterns bool) []span {
	plain := newView(b, false)
	found := m.in(plain, patterns)
	if plain.at != nil {
		// As they stand too: in C:\notes the \n is no escape, and \notes may be the secret.
		for _, s := range m.known.find(b, nil) {
			found = append(found, plain.whole(s))
		}
	}
	if bytes.IndexByte(b, '%') < 0 {
		return merge(found)
	}
	urls := newView(b, true)
	if urls.at != nil {
		for i, s := range found {
			found[i] = urls.whole(s)
		}
		found = append(found, m.in(urls, patterns)...)
	}
	return merge(found)
}

// in returns where secrets stand in a view, as parts of its source that may overlap.
func (m *Mask) in(v view, patterns bool) []span {
	found := m.known.find(v.folded(), nil)
	if patterns {
		found = findPatterns(m.patterns, v.text, found)
	}
	for i, s := range found {
		found[i] = v.source(s)
	}
	return found
}

func merge(found []span) []span {
	if len(found) < 2 {
		return found
	}
	slices.SortFunc(found, func(a, b span) int { return cmp.Or(a.from-b.from, b.to-a.to) })
	out := found[:1]
	for _, s := range found[1:] {
		if last := &out[len(out)-1]; s.from < last.to {
			last.to, last.looks = max(last.to, s.to), last.looks && s.looks
		} else {
			out = append(out, s)
		}
	}
	return out
}

// replace appends b to out with a mark in place of each span.
func (m *Mask) replace(out, b []byte, found []span) []byte {
	at := 0
	for _, s := range found {
		out = append(append(out, b[at:s.from]...), m.mark(b[s.from:s.to], s.looks)...)
		at = s.to
	}
	return append(out, b[at:]...)
}

// Edit refuses new text for a file that holds the marker: the file would lose a secret that
// was only hidden from the model. What says which argument the text is.
func Edit(what, text string) error {
	if !strings.Contains(text, Marker) {
		return nil
	}
	return &tools.Fault{
		What: what + " holds the mark " + Marker + ", which stands for a secret that you are not shown; nothing was changed",
		Next: "leave the secret as it is: change the text around it with search_replace, without the mark",
	}
}
