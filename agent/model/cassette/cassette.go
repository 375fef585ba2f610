// Package cassette keeps the exchanges of a real run in a folder, and plays them again
// without a network or a key.
//
// The folder (0700) has one file (0600) for each agent, named after its ordinal, such as
// 0.2.jsonl. Its first line tells version, dialect and agent; each further line is one
// exchange, in order: how many messages it repeats of the exchange before it and their hash,
// the messages that are new, and the reply or the failure. So a file grows with what is new.
// Raw forms are texts in it, byte for byte save for secrets, which are masked; requests are
// compared in their masked form.
//
// Record the client that tries again, and attempts that failed are not kept: a replay does
// not wait for anything. Exchanges that were cancelled are not kept either.
//
// Non-goals: replaying a part of a run; finding an exchange that is asked for out of order.
package cassette

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"time"

	"skein/agent/model"
)

// version of the format, in the first line of each file.
const version = 1

// A Masker hides secrets in what is written. Doing it twice changes nothing. *mask.Mask is
// the one in use.
type Masker interface {
	Written(b []byte) []byte
}

type header struct {
	Cassette int    `json:"cassette"`
	Dialect  string `json:"dialect"`
	Agent    string `json:"agent"`
}

// An exchange is a line after the first.
type exchange struct {
	Turn      int      `json:"turn"`
	Front     front    `json:"front"`
	New       []string `json:"new"`             // messages after the front
	Tools     *string  `json:"tools,omitempty"` // if not as in the line before
	MaxTokens int      `json:"max_tokens,omitempty"`
	Schema    string   `json:"schema,omitempty"`

	Reply *reply   `json:"reply,omitempty"` // this or the next
	Error *failure `json:"error,omitempty"`
}

// A front is what an exchange repeats of the one before.
type front struct {
	Messages int    `json:"messages"`
	Hash     string `json:"sha256"`
}

type reply struct {
	Message model.Message `json:"message"`
	Finish  model.Finish  `json:"finish"`
	Why     string        `json:"why,omitempty"`
	Usage   model.Usage   `json:"usage"`
}

type failure struct {
	Provider   string        `json:"provider"`
	Status     int           `json:"status,omitempty"`
	Message    string        `json:"message"`
	Advice     string        `json:"advice,omitempty"`
	Again      bool          `json:"again,omitempty"`
	RetryAfter time.Duration `json:"retry_after_ns,omitempty"`
	TooLong    bool          `json:"too_long,omitempty"`
	Usage      model.Usage   `json:"usage,omitzero"`
}

// masked is a raw form as it is kept and compared.
func masked(m Masker, raw []byte) string {
	return string(bytes.ToValidUTF8(m.Written(raw), []byte("\uFFFD")))
}

// A chain is the running hash of the messages of a conversation, one for each beginning.
type chain [][sha256.Size]byte

// to returns the chain of the first n messages and then these. It takes the place of c.
func (c chain) to(n int, more []string) chain {
	c = c[:n]
	for _, text := range more {
		h := sha256.New()
		if len(c) > 0 {
			h.Write(c[len(c)-1][:])
		}
		h.Write([]byte(text))
		c = append(c, [sha256.Size]byte(h.Sum(nil)))
	}
	return c
}

// front describes the first n messages.
func (c chain) front(n int) front {
	if n == 0 {
		return front{}
	}
	return front{n, hex.EncodeToString(c[n-1][:])}
}

// repeated returns how many messages are at the front of both conversations. Most are the
// very same bytes in memory.
func repeated(before, now []model.Message) int {
	for i, m := range now {
		if i == len(before) || !same(before[i].Raw, m.Raw) {
			return i
		}
	}
	return len(now)
}

func same(a, b json.RawMessage) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || bytes.Equal(a, b))
}

func fileOf(dir, agent string) string { return filepath.Join(dir, agent+".jsonl") }
