// Package demo is the main job on a small real repository, with a scripted model: no key, no
// network. Three readers look at it at the same time, three writers change it in copies of
// their own, their changes are merged in the order asked, and the tests pass.
//
// Nothing in it pretends: the repository is under git, the tools are the real ones, the model
// is asked over HTTP, and what is shown comes from the run's events. Only the model's words
// are written down beforehand.
package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"skein/agent"
	"skein/agent/journal"
	"skein/agent/model/openai"
	"skein/agent/model/script"
	"skein/cmd/internal/face"
	"skein/delegate"
	"skein/orchestrator"
	"skein/tools/gate"
)

//go:embed delegated.yaml
var delegated []byte

//go:embed alone.yaml
var alone []byte

// instruction is what the demo's user asks for.
const instruction = "I have begun to rename Store.Get to Store.Fetch, see my uncommitted changes. Finish it in every package and keep the tests green."

// Options configures [Run].
type Options struct {
	Out, Err  io.Writer     // the account of the run, and its progress
	Colour    bool          // Out shows colours
	Keep      bool          // leave the project on disk
	Mode      delegate.Mode // delegate.Off has one agent do everything
	NoSandbox bool          // commands run without a box
	Verbose   bool
}

// A BrokenError tells that the run did not keep what the demo promises.
type BrokenError struct{ Promises []string }

func (e *BrokenError) Error() string {
	return fmt.Sprintf("demo: %d of the promises were not kept: %s", len(e.Promises), strings.Join(e.Promises, "; "))
}

// Hint says how to look closer.
func (e *BrokenError) Hint() string {
	return "skein demo --keep --verbose leaves the project and shows every result"
}

// A missingError tells that a program is not there.
type missingError struct{ program string }

func (e *missingError) Error() string { return "demo: no program " + e.program + " on the PATH" }

// Hint says where to get it.
func (e *missingError) Hint() string { return "install Go from https://go.dev/dl, its tests are run" }

// Run runs the demo. It returns an error if the demo could not be run or did not keep what it
// promises.
func Run(ctx context.Context, o Options) (err error) {
	if _, err := exec.LookPath("go"); err != nil {
		return &missingError{"go"}
	}
	folder, err := os.MkdirTemp("", "skein-demo-")
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	if !o.Keep {
		defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	}
	dir := filepath.Join(folder, "pantry")
	p, err := unpack(ctx, dir)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(o.Err, "made a project half way through a rename; its tests run once before anything is done")
	if text, err := p.test(ctx); err != nil {
		return fmt.Errorf("demo: the project's tests fail before anything was done: %w: %s", err, strings.TrimSpace(text))
	}
	done, err := p.work(ctx, o, folder)
	if err != nil {
		return err
	}
	return errors.Join(account(o, done), place(o, dir))
}

// work has the job done and gathers what came of it.
func (p project) work(ctx context.Context, o Options, folder string) (done outcome, err error) {
	done.delegated = o.Mode != delegate.Off
	if done.before, err = p.files(); err != nil {
		return done, err
	}
	if done.index[0], err = p.index(); err != nil {
		return done, err
	}
	var events []journal.Event
	progress := face.NewProgress(o.Err, o.Verbose)
	done.run, err = p.orchestrate(ctx, o, folder, func(e journal.Event) {
		events = append(events, e)
		progress.Watch(e)
	})
	if err != nil {
		return done, fmt.Errorf("demo: %w", err)
	}
	if done.run.Stop == agent.Cancelled {
		return done, context.Canceled
	}
	if done.history, err = read(events); err != nil {
		return done, err
	}
	if done.index[1], err = p.index(); err != nil {
		return done, err
	}
	if done.after, err = p.files(); err != nil {
		return done, err
	}
	text, err := p.test(ctx)
	if done.tests = err; err != nil {
		_, _ = fmt.Fprintln(o.Err, text)
	}
	return done, nil
}

// orchestrate is the run itself, against the scripted model.
func (p project) orchestrate(ctx context.Context, o Options, folder string, watch func(journal.Event)) (out orchestrator.Outcome, err error) {
	rules := delegated
	if o.Mode == delegate.Off {
		rules = alone
	}
	s, err := script.Parse(rules)
	if err != nil {
		return out, err
	}
	server, err := script.Listen(ctx, s, "127.0.0.1:0")
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	client, err := openai.New(openai.Options{BaseURL: server.URL(), Model: "scripted", Name: "script", Scripted: true})
	if err != nil {
		return out, err
	}
	defer client.Close()
	return orchestrator.Run(ctx, orchestrator.Options{
		Dir: p.dir, Client: client, ModelName: "script/demo", Mode: o.Mode, Access: gate.Auto,
		Boxes: orchestrator.Boxes{NoSandbox: o.NoSandbox, Environ: environ()}, Cache: filepath.Join(folder, "cache"), Watch: watch,
	}, instruction)
}

// account shows what happened, and returns an error if a promise was broken.
func account(o Options, done outcome) error {
	h := done.history
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(o.Out, format, args...) }
	say("\nAsked: %s\nAnswer: %s\n\n", h.instruction, face.Visible(done.run.Answer))
	if err := timeline(o.Out, h); err != nil {
		return err
	}
	say("\n")
	if err := costs(o.Out, h); err != nil {
		return err
	}
	say("\nWhat the run changed\n")
	if err := diff(o.Out, done.before, done.after, o.Colour); err != nil {
		return err
	}
	say("\nWhat was promised\n")
	var broken []string
	for _, p := range done.promises() {
		mark := "ok    "
		if !p.kept {
			mark = "BROKEN"
			broken = append(broken, p.text)
		}
		say("  %s  %s\n", mark, face.Line(p.text, 160))
	}
	if len(broken) > 0 {
		return &BrokenError{broken}
	}
	return nil
}

// place says where the project is, if it stays.
func place(o Options, dir string) error {
	if !o.Keep {
		return nil
	}
	_, err := fmt.Fprintln(o.Out, "\nThe project is at "+dir)
	return err
}
