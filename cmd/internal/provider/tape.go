package provider

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"skein/agent/model"
	"skein/agent/model/cassette"
	"skein/agent/model/command"
	"skein/agent/model/text"
	"skein/cmd/internal/program"
	"skein/tools/mask"
)

// A Label says of a recording what its exchanges alone do not: which model it was, the
// parameters it was given, and the date that it was told.
type Label struct {
	Model  string       `json:"model"`
	Date   time.Time    `json:"date"`
	Params model.Params `json:"params"`
}

const labelFile = "run.json"

// Record has the connection keep its exchanges in a folder, without the secrets that m hides.
func (c *Connection) Record(dir string, l Label, m *mask.Mask) error {
	rec, err := cassette.Recorder(c.Client, dir, m.Recording())
	if err != nil {
		return fault(err.Error(), hintOf(err, "name a folder that can be made, as in --record-to ../recording"))
	}
	data, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("record to %s: %w", dir, err)
	}
	// A new file: nothing that stands there is overwritten, and no link is followed.
	f, err := os.OpenFile(filepath.Join(dir, labelFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fault(err.Error(), "name a folder that is new or empty, as in --record-to ../recording")
	}
	_, err = f.Write(append(m.Written(data), '\n'))
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("record to %s: %w", dir, err)
	}
	release := c.close
	c.Client, c.close = rec, func() error { return errors.Join(rec.Close(), release()) }
	return nil
}

// Replay returns a client that answers from a recording, and what the recording is of.
func Replay(dir string, m *mask.Mask) (*Connection, Label, error) {
	l, err := label(dir)
	if err != nil {
		return nil, l, err
	}
	dialect, err := cassette.Dialect(dir)
	if err != nil {
		return nil, l, fault(err.Error(), hintOf(err, "record it again with --record-to"))
	}
	enc, err := encoder(Choice{Model: l.Model}, strings.HasPrefix(dialect, "text+"))
	if err != nil {
		return nil, l, err
	}
	player, err := cassette.Player(dir, enc, m.Recording())
	if err != nil {
		return nil, l, fault(err.Error(), hintOf(err, "record it again with --record-to"))
	}
	return &Connection{player, dir, func() error { return nil }}, l, nil
}

func label(dir string) (Label, error) {
	var l Label
	data, err := os.ReadFile(filepath.Join(dir, labelFile))
	if err == nil {
		err = json.Unmarshal(data, &l)
	}
	if err == nil && (l.Model == "" || l.Date.IsZero()) {
		err = errors.New(labelFile + " names no model or no date")
	}
	if err != nil {
		return l, fault("open recording: "+err.Error(), "it is a folder that --record-to made")
	}
	return l, nil
}

// encoder encodes as the client of the recorded run did. It is never asked for an exchange.
func encoder(c Choice, asText bool) (model.Client, error) {
	name, _ := c.split()
	p, ok := find(name)
	switch {
	case !ok:
		return nil, fault("open recording: its provider "+name+" is unknown", "known are "+Names())
	case p.speaks == stdio:
		client, err := command.New(command.Options{Argv: []string{name}, Run: program.Run})
		return text.Client(client), err
	}
	p.baseURL = "http://127.0.0.1:1" // nobody is asked
	link, err := p.client("recorded", "", Options{Notice: func(string) {}})
	if err != nil {
		return nil, err
	}
	f := newFallback(link.Client, func(string) {})
	if asText {
		f.settle(wantsText)
	}
	return f, nil
}

func hintOf(err error, otherwise string) string {
	if h := (interface{ Hint() string })(nil); errors.As(err, &h) && h.Hint() != "" {
		return h.Hint()
	}
	return otherwise
}
