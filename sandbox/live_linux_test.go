package sandbox_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skein/sandbox"
)

// trigger is a writer that lets a waiting command go on once it was given something.
type trigger struct {
	t     *testing.T
	fifo  string
	given bytes.Buffer
}

func (w *trigger) Write(p []byte) (int, error) {
	if w.given.Len() == 0 {
		f, err := os.OpenFile(w.fifo, os.O_RDWR, 0) // does not wait for a reader
		if err != nil {
			w.t.Error(err)
			return 0, err
		}
		defer w.t.Cleanup(func() { _ = f.Close() }) // what a FIFO holds ends with its last descriptor
		if _, err := f.WriteString("go on\n"); err != nil {
			w.t.Error(err)
		}
	}
	return w.given.Write(p)
}

// A command that waits for its first line to be seen ends only if the output comes at once.
func TestOutputComesAsItIsWritten(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, in := range map[string]runner{"box": open(t, sandbox.Policy{Workspace: dir}), "bare": outside(t, dir)} {
		for _, merge := range []bool{false, true} {
			out, errOut := &trigger{t: t, fifo: fifo}, &bytes.Buffer{}
			got, err := in.Run(t.Context(), sandbox.Command{
				Argv: []string{"bash", "-c", "echo first; read x < fifo; echo $x; echo oops >&2"}, Timeout: 20 * time.Second,
				Merge: merge, Limit: 4, Out: out, Err: errOut,
			})
			want, wantErr := "first\ngo on\n", "oops\n"
			if merge {
				want, wantErr = want+wantErr, ""
			}
			if err != nil || got.Killed != "" || out.given.String() != want || errOut.String() != wantErr {
				t.Errorf("%s, merge %v: Run = %q, %v, live %q and %q, want %q and %q", name, merge, got.Killed, err, out.given.String(), errOut.String(), want, wantErr)
			}
			if len(got.Combined) != 4 {
				t.Errorf("%s: %q is kept, want the limit to hold", name, got.Combined)
			}
		}
	}
}
