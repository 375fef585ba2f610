package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"skein/sandbox"
)

// BenchmarkExec compares a command in an open box with a bare one, at the median.
func BenchmarkExec(b *testing.B) {
	box, bare := open(b, sandbox.Policy{Workspace: b.TempDir(), Init: tinyInit(b)}), outside(b, b.TempDir())
	c := sandbox.Command{Argv: []string{"bash", "-c", "true"}}
	var in, out []time.Duration
	for b.Loop() {
		out = append(out, timed(b, func(ctx context.Context) error { _, err := bare.Run(ctx, c); return err }))
		in = append(in, timed(b, func(ctx context.Context) error { _, err := box.Run(ctx, c); return err }))
	}
	b.ReportMetric(float64(median(in))/float64(median(out)), "x-bare")
	b.ReportMetric(float64(median(in).Microseconds()), "µs-box")
	b.ReportMetric(float64(median(out).Microseconds()), "µs-bare")
}

// BenchmarkOpen opens and closes a box: its cost in bare commands, at the median, with
// the tiny init, with layers and with a user of every cache besides, and with this program
// as init.
func BenchmarkOpen(b *testing.B) {
	open(b, sandbox.Policy{Workspace: b.TempDir()}) // or skip
	tiny := tinyInit(b)
	home, env := bareHome(b)
	for folder := range caches {
		write(b, filepath.Join(home, folder, "f"), "")
	}
	for _, row := range []struct {
		name   string
		policy sandbox.Policy
	}{
		{"tiny", sandbox.Policy{Init: tiny}},
		{"layers", sandbox.Policy{Init: tiny, Writable: true, Layers: &sandbox.Layers{}}},
		{"caches", sandbox.Policy{Init: tiny, Env: env}},
		{"itself", sandbox.Policy{}},
	} {
		b.Run(row.name, func(b *testing.B) {
			bare := outside(b, b.TempDir())
			row.policy.Workspace = b.TempDir()
			var opened, closed, one []time.Duration
			for b.Loop() {
				one = append(one, timed(b, func(ctx context.Context) error {
					_, err := bare.Run(ctx, sandbox.Command{Argv: []string{"bash", "-c", "true"}})
					return err
				}))
				var box *sandbox.Box
				opened = append(opened, timed(b, func(ctx context.Context) (err error) {
					box, err = sandbox.Open(ctx, row.policy)
					return err
				}))
				closed = append(closed, timed(b, func(context.Context) error { return box.Close() }))
			}
			b.ReportMetric(float64(median(opened))/float64(median(one)), "x-bare")
			b.ReportMetric(float64(median(opened).Microseconds()), "µs-open")
			b.ReportMetric(float64(median(closed).Microseconds()), "µs-close")
		})
	}
}

// BenchmarkGuest runs the first command of a guest, and closes it, beside a command of its box's own.
func BenchmarkGuest(b *testing.B) {
	box := open(b, sandbox.Policy{Workspace: b.TempDir(), Init: tinyInit(b)})
	c := sandbox.Command{Argv: []string{"bash", "-c", "true"}}
	var own, first, closed []time.Duration
	for b.Loop() {
		own = append(own, timed(b, func(ctx context.Context) error { _, err := box.Run(ctx, c); return err }))
		g, err := box.Guest("g")
		if err != nil {
			b.Fatal(err)
		}
		first = append(first, timed(b, func(ctx context.Context) error { _, err := g.Run(ctx, c); return err }))
		closed = append(closed, timed(b, func(context.Context) error { return g.Close() }))
	}
	b.ReportMetric(float64(median(own).Microseconds()), "µs-box")
	b.ReportMetric(float64(median(first).Microseconds()), "µs-first")
	b.ReportMetric(float64(median(closed).Microseconds()), "µs-close")
}

// BenchmarkMemory opens boxes and tells how much memory each takes, PSS, once it has run a
// command, with the tiny init and with this program as init. As many as these share what of
// the program is read only: a lone one has all of it.
func BenchmarkMemory(b *testing.B) {
	open(b, sandbox.Policy{Workspace: b.TempDir()}) // or skip
	for name, program := range map[string]string{"tiny": tinyInit(b), "itself": ""} {
		b.Run(name, func(b *testing.B) {
			const boxes = 20
			for b.Loop() {
				before := initMemory(b)
				var all []*sandbox.Box
				for range boxes {
					all = append(all, open(b, sandbox.Policy{Workspace: b.TempDir(), Init: program}))
					must(b, all[len(all)-1], "true")
				}
				b.ReportMetric(float64(initMemory(b)-before)/boxes, "KiB/box")
				for _, box := range all {
					if err := box.Close(); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// initMemory adds up the memory of the inits that this program has started, KiB.
func initMemory(b *testing.B) (sum int) {
	b.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		b.Fatal(err)
	}
	for _, p := range paths {
		if text, err := os.ReadFile(p + "/cmdline"); err != nil || !strings.HasPrefix(string(text), "skein-init\x00") {
			continue
		}
		if text, err := os.ReadFile(p + "/status"); err != nil || !strings.Contains(string(text), fmt.Sprintf("PPid:\t%d\n", os.Getpid())) {
			continue
		}
		text, err := os.ReadFile(p + "/smaps_rollup")
		_, after, ok := strings.Cut(string(text), "\nPss:")
		if err != nil || !ok {
			b.Skipf("no figure of %s: %v", p, err)
		}
		kib, err := strconv.Atoi(strings.Fields(after)[0])
		if err != nil {
			b.Fatal(err)
		}
		sum += kib
	}
	return sum
}

func timed(b *testing.B, f func(context.Context) error) time.Duration {
	b.Helper()
	start := time.Now()
	if err := f(b.Context()); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// BenchmarkGuard opens a writable box in a tree of about as many entries as are looked through,
// runs a command that makes nothing, and asks what it made.
func BenchmarkGuard(b *testing.B) {
	dir, tiny := b.TempDir(), tinyInit(b)
	must(b, outside(b, dir), "for d in $(seq 300); do mkdir -p d$((d % 17))/d$d && (cd d$((d % 17))/d$d && seq 15 | xargs touch); done; git init -q .; sleep 0.3")
	var opened, asked, none []time.Duration
	for b.Loop() {
		none = append(none, timed(b, func(ctx context.Context) error {
			box, err := sandbox.Open(ctx, sandbox.Policy{Workspace: dir, Init: tiny})
			if err != nil {
				return err
			}
			return box.Close()
		}))
		var box *sandbox.Box
		opened = append(opened, timed(b, func(ctx context.Context) (err error) {
			box, err = sandbox.Open(ctx, sandbox.Policy{Workspace: dir, Writable: true, Init: tiny})
			return errors.Join(err, box.Close())
		}))
		asked = append(asked, timed(b, func(context.Context) error {
			if list := box.Planted(); len(list) > 0 {
				return fmt.Errorf("planted %q", list)
			}
			return nil
		}))
	}
	b.ReportMetric(float64(median(none).Microseconds()), "µs-reader")
	b.ReportMetric(float64(median(opened).Microseconds()), "µs-writer")
	b.ReportMetric(float64(median(asked).Microseconds()), "µs-planted")
}
