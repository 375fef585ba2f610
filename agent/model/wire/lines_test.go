package wire_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"skein/agent/model/wire"
)

func TestEvents(t *testing.T) {
	for _, tc := range []struct {
		name, stream string
		want         []string
	}{
		{"plain", "data: a\n\ndata: b\n\n", []string{"a", "b"}},
		{"no space after the colon", "data:a\n\n", []string{"a"}},
		{"only one space goes", "data:  a\n\n", []string{" a"}},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"a", "b"}},
		{"comments and other fields", ": keep-alive\n\nevent: x\nid: 7\ndata: a\nretry: 3\n\n: more\n\n", []string{"a"}},
		{"several lines", "data: a\ndata:\ndata: b\n\n", []string{"a\n\nb"}},
		{"empty data", "data\n\n", []string{""}},
		{"cut inside an event", "data: a\n\ndata: b\n", []string{"a"}},
		{"cut inside a line", "data: a\n\ndata: b", []string{"a"}},
		{"characters of several bytes", "data: é\u2028😀\n\n", []string{"é\u2028😀"}},
		{"a line longer than the reader's buffer", "data: " + strings.Repeat("é", 50_000) + "\n\ndata: b\n\n", []string{strings.Repeat("é", 50_000), "b"}},
		{"a byte order mark", "\ufeffdata: a\n\ndata: b\n\n", []string{"a", "b"}},
		{"nothing", "", nil},
	} {
		for _, r := range []io.Reader{strings.NewReader(tc.stream), iotest.OneByteReader(strings.NewReader(tc.stream)), iotest.DataErrReader(strings.NewReader(tc.stream))} {
			var got []string
			err := wire.Events(r, func(data []byte) (bool, error) {
				got = append(got, string(data))
				return false, nil
			})
			if err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("%s: Events = %.200q, %v, want %.200q", tc.name, got, err, tc.want)
			}
		}
	}
}

func TestLines(t *testing.T) {
	type line struct {
		text  string
		whole bool
	}
	var got []line
	err := wire.Lines(strings.NewReader("a\r\n\n  \nb\nc"), func(l []byte, whole bool) (bool, error) {
		got = append(got, line{string(l), whole})
		return false, nil
	})
	if want := []line{{"a", true}, {"b", true}, {"c", false}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("Lines = %v, %v, want %v", got, err, want)
	}
}

func TestReadingEnds(t *testing.T) {
	broken := errors.New("broken")
	endless := io.MultiReader(strings.NewReader("data: a\n\n"), iotest.ErrReader(broken))
	if err := wire.Events(endless, func([]byte) (bool, error) { return false, nil }); !errors.Is(err, broken) {
		t.Errorf("Events of a broken stream = %v, want the reader's error", err)
	}
	endless = io.MultiReader(strings.NewReader("data: a\n\n"), iotest.ErrReader(broken))
	if err := wire.Events(endless, func([]byte) (bool, error) { return true, nil }); err != nil {
		t.Errorf("Events that was done before the stream broke = %v, want no error", err)
	}
	if err := wire.Events(strings.NewReader("data: a\n\ndata: b\n\n"), func([]byte) (bool, error) { return false, broken }); !errors.Is(err, broken) {
		t.Errorf("Events whose reader failed = %v, want its error", err)
	}
	for name, r := range map[string]io.Reader{
		"one line":   io.LimitReader(zeros{}, 17<<20),
		"many lines": strings.NewReader(strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", 17)),
	} {
		if err := wire.Events(r, func([]byte) (bool, error) { return false, nil }); err == nil || !strings.Contains(err.Error(), "longer than 16 MiB") {
			t.Errorf("%s: Events = %v, want …longer than 16 MiB…", name, err)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestIsObject(t *testing.T) {
	for in, want := range map[string]bool{`{"a":1}`: true, " \n{": true, "data: {}": false, "": false, "  ": false, strings.Repeat(" ", 5000): false} {
		got, r := wire.IsObject(strings.NewReader(in))
		if all, err := io.ReadAll(r); got != want || string(all) != in || err != nil {
			t.Errorf("IsObject(%.20q) = %t and %d bytes, %v, want %t and all %d", in, got, len(all), err, want, len(in))
		}
	}
}

func TestLinesAreUTF8(t *testing.T) {
	var got []string
	err := wire.Lines(strings.NewReader("a\xffb\n\u00e9\n"), func(line []byte, _ bool) (bool, error) {
		got = append(got, string(line))
		return false, nil
	})
	if want := []string{"a\ufffdb", "\u00e9"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("Lines = %q, %v, want %q", got, err, want)
	}
}
