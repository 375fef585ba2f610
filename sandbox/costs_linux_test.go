package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"skein/sandbox"
)

// What a box may cost at most.
const (
	mostTimes = 2.0                   // a command in an open box, in bare ones
	mostOpen  = 15 * time.Millisecond // opening a box
	mostPSS   = 1.0                   // memory of an open box, in MB, with the tiny init
)

// BenchmarkCosts prints what boxes cost beside what they are compared with, at the median of
// one run in which all take turns. make bench-boxes runs it.
func BenchmarkCosts(b *testing.B) {
	tiny, dir := tinyInit(b), b.TempDir()
	box := open(b, sandbox.Policy{Workspace: dir, Init: tiny})
	c := sandbox.Command{Argv: []string{"bash", "-c", "true"}}
	env := sandbox.Environment(os.Environ())
	bare := func(argv ...string) func(context.Context) error {
		return func(ctx context.Context) error { _, err := alone(ctx, dir, env, argv...); return err }
	}
	_, err := exec.LookPath("bwrap")
	var lone, in, opened, closed, wrap []time.Duration
	for b.Loop() {
		lone = append(lone, timed(b, bare(c.Argv...)))
		in = append(in, timed(b, func(ctx context.Context) error { _, err := box.Run(ctx, c); return err }))
		var one *sandbox.Box
		opened = append(opened, timed(b, func(ctx context.Context) (err error) {
			one, err = sandbox.Open(ctx, sandbox.Policy{Workspace: dir, Init: tiny, Env: env})
			return err
		}))
		closed = append(closed, timed(b, func(context.Context) error { return one.Close() }))
		if err == nil {
			wrap = append(wrap, timed(b, bare(append(bubblewrap(dir), c.Argv...)...)))
		}
	}
	b.StopTimer()

	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	one := median(lone)
	row := func(what string, d time.Duration, bar string) {
		_, _ = fmt.Fprintf(w, "%s\t%.2f ms\t%.2f x bare\t%s\n", what, float64(d.Microseconds())/1000, float64(d)/float64(one), bar)
	}
	_, _ = fmt.Fprintf(w, "\n")
	row("bare exec of bash", one, "")
	times := float64(median(in)) / float64(one)
	row("exec in an open box", median(in), held(times <= mostTimes, fmt.Sprintf("at most %v x bare", mostTimes)))
	row("opening a box", median(opened), held(median(opened) <= mostOpen, fmt.Sprintf("at most %v", mostOpen)))
	row("closing a box", median(closed), "")
	if err == nil {
		row("bwrap with as many namespaces", median(wrap), "")
	} else {
		_, _ = fmt.Fprintf(w, "bwrap\t-\t-\tnot compared: %v\n", err)
	}
	main := filepath.Join(b.TempDir(), "skein")
	must(b, outside(b, "."), "CGO_ENABLED=0 go build -trimpath -o "+main+" skein/cmd/skein")
	pss := memory(b, tiny)
	_, _ = fmt.Fprintf(w, "memory of an open box, tiny init\t%.2f MB\t\t%s\n", pss, held(pss <= mostPSS, fmt.Sprintf("at most %v MB", mostPSS)))
	_, _ = fmt.Fprintf(w, "memory of an open box, skein itself\t%.2f MB\t\t\n", memory(b, main))
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	fmt.Print(table.String()) // a benchmark's own log is cut after ten lines
}

func held(ok bool, bar string) string {
	if ok {
		return "bar " + bar + ": held"
	}
	return "bar " + bar + ": NOT HELD"
}

// bubblewrap is the beginning of a command line that holds about what a reader's box does.
func bubblewrap(dir string) []string {
	return []string{
		"bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--tmpfs", "/run", "--tmpfs", "/root",
		"--ro-bind", dir, dir, "--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--cap-drop", "ALL", "--new-session", "--die-with-parent", "--",
	}
}

// memory is the proportional share of one of twenty open boxes, in MB.
func memory(b *testing.B, program string) float64 {
	b.Helper()
	const boxes = 20
	before := map[int]bool{}
	for _, pid := range inits(b) {
		before[pid] = true
	}
	for range boxes {
		open(b, sandbox.Policy{Workspace: b.TempDir(), Init: program})
	}
	sum := 0
	for _, pid := range inits(b) {
		if before[pid] {
			continue
		}
		for line := range strings.Lines(read(b, fmt.Sprintf("/proc/%d/smaps_rollup", pid))) {
			var kB int
			if _, err := fmt.Sscanf(line, "Pss: %d kB", &kB); err == nil {
				sum += kB
			}
		}
	}
	return float64(sum) / boxes / 1024
}

// alone runs a program outside of a box and takes its output, as a box does, and no more.
func alone(ctx context.Context, dir string, env []string, argv ...string) (string, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", argv[0], err, out)
	}
	return string(out), nil
}

// BenchmarkWork prints how long work takes in a box, in times of how long it takes outside.
// Both take turns, on warm caches.
func BenchmarkWork(b *testing.B) {
	dir := project(b)
	box := open(b, sandbox.Policy{Workspace: dir, Writable: true, Init: tinyInit(b)})
	env := append(os.Environ(), hermetic...)
	outside, inside := map[string][]time.Duration{}, map[string][]time.Duration{}
	for b.Loop() {
		for _, j := range jobs {
			if _, err := exec.LookPath(j.program); err != nil {
				continue
			}
			for to, run := range map[*map[string][]time.Duration]func(context.Context) (string, error){
				&outside: func(ctx context.Context) (string, error) { return alone(ctx, dir, env, "bash", "-c", j.script) },
				&inside:  func(context.Context) (string, error) { return must(b, box, j.script, hermetic...), nil },
			} {
				(*to)[j.name] = append((*to)[j.name], timed(b, func(ctx context.Context) error {
					got, err := run(ctx)
					if err == nil && got != j.want {
						err = fmt.Errorf("%s = %q, want %q", j.script, got, j.want)
					}
					return err
				}))
			}
		}
	}
	b.StopTimer()
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "\nwork\toutside\tin a box\t\n")
	for _, j := range jobs {
		if inside[j.name] == nil {
			_, _ = fmt.Fprintf(w, "%s\t-\t-\tno %s here\n", j.name, j.program)
			continue
		}
		alone, in := median(outside[j.name]), median(inside[j.name])
		_, _ = fmt.Fprintf(w, "%s\t%v\t%v\t%.2f x\n", j.name, alone.Round(100*time.Microsecond), in.Round(100*time.Microsecond), float64(in)/float64(alone))
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	fmt.Print(table.String()) // a benchmark's own log is cut after ten lines
}
