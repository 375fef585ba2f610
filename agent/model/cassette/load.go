package cassette

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A tape is the recording of one agent.
type tape struct {
	file      string // its name, for errors
	exchanges []exchange
}

// Dialect returns the dialect of the recording in dir: what its player has to encode.
func Dialect(dir string) (string, error) {
	_, dialect, err := load(dir)
	return dialect, err
}

// load reads a recording whole, so that a fault of it is told before anything is done.
func load(dir string) (tapes map[string]*tape, dialect string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, "", fmt.Errorf("open recording: %w", err)
	}
	tapes = map[string]*tape{}
	for _, e := range entries {
		agent, ok := strings.CutSuffix(e.Name(), ".jsonl")
		if !ok || !ordinal.MatchString(agent) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, "", fmt.Errorf("open recording: %w", err)
		}
		t := &tape{file: e.Name()}
		head, err := t.read(data)
		switch {
		case err != nil:
			return nil, "", err
		case head.Agent != agent:
			return nil, "", t.bad(1, "it is of agent "+head.Agent)
		case dialect != "" && head.Dialect != dialect:
			return nil, "", t.bad(1, "its dialect is "+head.Dialect+", of the files before it "+dialect)
		}
		tapes[agent], dialect = t, head.Dialect
	}
	if len(tapes) == 0 {
		return nil, "", &fault{"open recording: " + dir + " holds none", "record one with --record-to"}
	}
	return tapes, dialect, nil
}

func (t *tape) bad(line int, what string) error {
	return &fault{
		fmt.Sprintf("open recording: %s line %d: %s", t.file, line, what),
		"replay up to there by removing this line and those after it, or record it again",
	}
}

// read takes the lines of a file apart and checks that each goes on from the one before.
func (t *tape) read(data []byte) (header, error) {
	var head header
	var last chain
	for n := 1; len(data) > 0; n++ {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		if data = rest; !whole {
			return head, t.bad(n, "it is cut: the recording ended while it was written")
		}
		if n == 1 {
			if err := json.Unmarshal(line, &head); err != nil || head.Cassette != version {
				return head, t.bad(n, fmt.Sprintf("it does not begin a recording of version %d", version))
			}
			continue
		}
		var e exchange
		if err := json.Unmarshal(line, &e); err != nil {
			return head, t.bad(n, err.Error())
		}
		switch {
		case (e.Reply == nil) == (e.Error == nil):
			return head, t.bad(n, "it has neither a reply nor an error, or both")
		case e.Front.Messages < 0 || e.Front.Messages > len(last) || e.Front != last.front(e.Front.Messages):
			return head, t.bad(n, "it does not go on from the line before: a line was changed or is missing")
		}
		last = last.to(e.Front.Messages, e.New)
		t.exchanges = append(t.exchanges, e)
	}
	if head.Cassette == 0 {
		return head, t.bad(1, "the file is empty")
	}
	return head, nil
}
