package mask

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// However a stream is cut into chunks, the same comes out as for the text at once.
func TestWriterEqualsText(t *testing.T) {
	m := New([]string{`no\ta"secret`, "0123456789"})
	piece := rapid.SampledFrom([]string{
		`no\ta"secret`, `no\\ta\"secret`, `\u006eo\\ta\u0022secret`, "0123456789", "01234567", "012345678", "sk-a0123456_90123456789-b", "xsk-a0123456_90123456789-b",
		"Bearer ", "%30123456789", `\`, `\\`, `\u00`, "\n", "words and words ", strings.Repeat("x", 200) + " ", strings.Repeat(`\`, 50),
		"-----BEGIN PRIVATE KEY-----\nABCDEFGHIJKLMNOPQRST\n-----END PRIVATE KEY-----", "é😀",
	})
	rapid.Check(t, func(t *rapid.T) {
		in := strings.Join(rapid.SliceOfN(piece, 0, 60).Draw(t, "pieces"), "")
		var out bytes.Buffer
		w := m.Writer(&out)
		w.keep = 1000 // more than any secret here
		for rest := in; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "chunk")
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		found, _ := m.find([]byte(in), true, 0)
		if want := string(replace(nil, []byte(in), found)); out.String() != want {
			t.Fatalf("Writer of %q wrote\n%q, want\n%q", in, out.String(), want)
		}
	})
}

func TestWriterHoldsBackOnlyALittle(t *testing.T) {
	var out bytes.Buffer
	w := New(nil).Writer(&out)
	for range 1000 {
		if n, err := w.Write(bytes.Repeat([]byte("line\n"), 200)); n != 1000 || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	if out.Len() < 1_000_000-2*hold {
		t.Errorf("after 1,000,000 bytes only %d were passed on", out.Len())
	}
	if len(w.buf) > 2*hold+1000 {
		t.Errorf("the buffer holds %d bytes", len(w.buf))
	}
}

type broken struct{}

var errBroken = errors.New("disk full")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestWriterKeepsTheFirstError(t *testing.T) {
	w := New(nil).Writer(broken{})
	_, err := w.Write(make([]byte, 3*hold))
	if !errors.Is(err, errBroken) {
		t.Errorf("Write = %v, want %v", err, errBroken)
	}
	if err := w.Close(); !errors.Is(err, errBroken) {
		t.Errorf("Close = %v, want %v", err, errBroken)
	}
}
