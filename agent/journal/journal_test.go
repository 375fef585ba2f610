package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"skein/agent/model"
)

func lines(t *testing.T, dir string) []Event {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "sessions", "s1", "journal.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var events []Event
	for s := bufio.NewScanner(f); s.Scan(); {
		var e Event
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			t.Fatalf("line %d: %v", len(events)+1, err)
		}
		events = append(events, e)
	}
	return events
}

func TestNothingOnDiskBeforeTheFirstReply(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".skein")
	j := New(dir, Options{Session: "s1"})
	j.Append("0", &RunStarted{Instruction: "go"})
	j.Append("0", &Notice{Text: "x"})
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s exists, want nothing on disk", dir)
	}
}

func TestEventsAreWrittenInOrderWithTheirAgentsSequence(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".skein")
	var watched []Event
	j := New(dir, Options{Session: "s1", Watch: func(e Event) { watched = append(watched, e) }, Now: func() time.Time { return time.Unix(1, 0) }})
	j.Append("0", &RunStarted{Instruction: "go"})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for turn := range 50 {
				j.Append(fmt.Sprintf("0.%d", i), &Reply{Turn: turn + 1, Message: model.Message{Raw: json.RawMessage(`{"a" : "<b>"}`)}})
				if err := j.Barrier(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	events := lines(t, dir)
	if len(events) != 201 || len(watched) != 201 {
		t.Fatalf("%d lines on disk and %d watched, want 201", len(events), len(watched))
	}
	seqs := map[string]int{}
	for i, e := range events {
		if e.Kind != watched[i].Kind || e.Agent != watched[i].Agent {
			t.Fatalf("line %d is %s of %s, watched as %s of %s", i+1, e.Kind, e.Agent, watched[i].Kind, watched[i].Agent)
		}
		if seqs[e.Agent]++; e.Seq != seqs[e.Agent] {
			t.Errorf("line %d: seq %d of agent %s, want %d", i+1, e.Seq, e.Agent, seqs[e.Agent])
		}
		if (e.Schema == Schema) != (i == 0) {
			t.Errorf("line %d has schema %d", i+1, e.Schema)
		}
		p, err := e.Decode()
		if err != nil {
			t.Fatal(err)
		}
		if r, ok := p.(*Reply); ok && (r.Turn != e.Seq || string(r.Message.Raw) != `{"a" : "<b>"}`) {
			t.Errorf("line %d: turn %d raw %s", i+1, r.Turn, r.Message.Raw)
		}
	}
}

func TestFilesArePrivateAndOutOfGit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".skein")
	j := New(dir, Options{Session: "s1"})
	j.Append("0", &Reply{})
	defer func() { _ = j.Close() }()
	for path, want := range map[string]os.FileMode{"sessions/s1": 0o700, "sessions/s1/journal.jsonl": 0o600, ".gitignore": 0o600} {
		info, err := os.Stat(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", path, info.Mode().Perm(), want)
		}
	}
}

func TestASessionInUseIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".skein")
	j := New(dir, Options{Session: "s1"})
	j.Append("0", &Reply{})
	second := New(dir, Options{Session: "s1"})
	second.Append("0", &Reply{})
	if err := second.Barrier(); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("Barrier of a second journal = %v, want in use", err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	_ = second.Close()
}

func TestAFailedWriteWaits(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".skein")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var told int
	j := New(dir, Options{Session: "s1", Watch: func(e Event) {
		if e.Kind == "notice" {
			told++
		}
	}})
	j.Append("0", &Reply{Turn: 1})
	j.Append("0", &Reply{Turn: 2})
	if err := j.Barrier(); err == nil || told != 1 {
		t.Errorf("Barrier = %v after %d notices, want an error and one notice", err, told)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	j.Append("0", &Reply{Turn: 3})
	if err := errors.Join(j.Barrier(), j.Close()); err != nil {
		t.Errorf("Barrier and Close = %v once the journal can be written", err)
	}
	if n := len(lines(t, dir)); n != 4 {
		t.Errorf("%d lines on disk, want three replies and the notice", n)
	}
}

func TestCloseFailsWhereNothingCouldBeWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	j := New(dir, Options{Session: "s1"})
	j.Append("0", &Reply{})
	if err := j.Close(); err == nil {
		t.Error("Close = nil where the journal cannot be written")
	}
}

func TestALinkLeadsNowhere(t *testing.T) {
	for _, link := range []string{".skein", ".skein/sessions", ".skein/sessions/s1"} {
		top, elsewhere := t.TempDir(), t.TempDir()
		path := filepath.Join(top, link)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(elsewhere, path); err != nil {
			t.Fatal(err)
		}
		j := New(filepath.Join(top, ".skein"), Options{Session: "s1"})
		j.Append("0", &Reply{})
		if err := j.Barrier(); err == nil || !strings.Contains(err.Error(), "not a folder") {
			t.Errorf("Barrier through the link %s = %v, want a refusal", link, err)
		}
		_ = j.Close()
		if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
			t.Errorf("behind the link %s there is now %v (%v)", link, left, err)
		}
	}
}

func TestIDsSortByTime(t *testing.T) {
	a, b := NewID(time.Unix(1_000_000, 0)), NewID(time.Unix(1_000_001, 0))
	if a >= b || a == NewID(time.Unix(1_000_000, 0)) {
		t.Errorf("NewID gave %s then %s", a, b)
	}
}

func TestEveryKindDecodes(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range []Payload{
		&RunStarted{}, &Notice{}, &AgentQueued{}, &AgentStarted{}, &Message{}, &Reply{}, &Attempt{}, &Call{}, &Approval{}, &Result{},
		&Snapshot{}, &Copied{}, &Collected{}, &Settled{}, &AgentEnded{}, &Fault{}, &RunEnded{},
	} {
		kind := p.class().kind
		if seen[kind] {
			t.Errorf("kind %s twice", kind)
		}
		seen[kind] = true
		data, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := (Event{Kind: kind, Data: data}).Decode(); err != nil || fmt.Sprintf("%T", got) != fmt.Sprintf("%T", p) {
			t.Errorf("Decode(%s) = %T, %v", kind, got, err)
		}
	}
}

func TestMaskIsAppliedToWhatIsWrittenAndWatched(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".skein")
	var watched []Event
	j := New(dir, Options{
		Session: "s1", Watch: func(e Event) { watched = append(watched, e) },
		Mask: func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("hush"), []byte("****")) },
	})
	j.Append("0", &RunStarted{Instruction: "say hush"})
	j.Append("0", &Reply{Message: model.Message{Text: "hush", Raw: json.RawMessage(`{"content":"hush"}`)}})
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for _, events := range [][]Event{watched, lines(t, dir)} {
		for _, e := range events {
			if strings.Contains(string(e.Data), "hush") || !strings.Contains(string(e.Data), "****") {
				t.Errorf("event %s holds %s, want it masked", e.Kind, e.Data)
			}
		}
	}
}
