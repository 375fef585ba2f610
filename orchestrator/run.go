package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"skein/agent"
	"skein/agent/journal"
	"skein/agent/model"
	"skein/agent/window"
	"skein/delegate"
	"skein/sandbox"
	"skein/scheduler"
	"skein/tools"
	"skein/tools/gate"
	"skein/worktree"
)

// A run is what all agents of one instruction share.
type run struct {
	o       Options
	dir     string    // the workspace, absolute and without symlinks
	user    [2]string // whose commits these are, name and address
	journal *journal.Journal
	sched   *scheduler.Scheduler
	repo    *worktree.Repo // nil: no isolation by git here
	noBox   error          // why there is no box; nil if there is one, or none is wanted
	engines []*engine      // the first is the run's own model
	offered delegate.Offer // what delegate_task can do
	budget  budget
	control *Control
	inbox   *inbox
	clock   *clock // nil: no limit

	processes *semaphore.Weighted   // places of commands
	shared    map[string]tools.Tool // see [run.share]

	children *semaphore.Weighted // how many the run may still have
	unasked  atomic.Bool
	told     sync.Map // what [run.warn] told of

	sum *tally
}

// Run carries out one instruction. It returns an error if the run could not begin or the
// harness failed; everything that the model or a limit did is in the Outcome, and a child's
// failure is a result that its parent saw.
func Run(ctx context.Context, o Options, instruction string) (out Outcome, err error) {
	o = o.withDefaults()
	r := &run{o: o, control: o.Control, inbox: newInbox(o.Asker, o.AskTime), sched: scheduler.New(scheduler.Options{Slots: o.Jobs}), processes: semaphore.NewWeighted(int64(o.ProcessJobs)), children: semaphore.NewWeighted(int64(o.MaxChildren)), budget: budget{whose: runs, tokens: o.Budget, usd: o.BudgetUSD}, sum: newTally()}
	if r.engines, err = o.engines(); err != nil {
		return Outcome{}, err
	}
	if err := checkOwn(o.Own); err != nil {
		return Outcome{}, err
	}
	r.share()
	if r.dir, err = workspace(o.Dir); err != nil {
		return Outcome{}, err
	}
	written := journal.Options{Session: o.Session, Now: o.Now, Watch: o.Watch}
	if o.Mask != nil {
		written.Mask = o.Mask.Written
	}
	r.journal = journal.New(filepath.Join(r.dir, ".skein"), written)
	defer func() { err = errors.Join(err, r.journal.Close()) }()
	if o.Timeout > 0 {
		var stop func()
		ctx, r.clock, stop = startClock(ctx, runs, o.Timeout)
		defer stop()
	}
	r.journal.Append("0", &journal.RunStarted{
		Instruction: instruction, Dir: r.dir, Model: o.ModelName, Delegate: string(o.Mode), Access: string(o.Access),
		Sandbox: o.sandbox(), Net: o.AllowNet || o.NoSandbox, Jobs: o.Jobs, Params: o.Params,
	})
	started := o.Now()
	var ended agent.Outcome
	if err = r.prepare(ctx); err == nil {
		ended, err = r.drive(ctx, instruction)
	}
	if ended.Stop == "" && err != nil && ctx.Err() != nil {
		ended, err = early(ctx), nil
	}
	r.tidy(ctx)
	if err != nil {
		ended.Stop, ended.Cause = agent.Failed, err.Error()
	}
	receipt := r.receipt(ended, r.since(started))
	r.journal.Append("0", receipt)
	return Outcome{
		Stop: ended.Stop, Cause: ended.Cause, Err: ended.Err, Answer: ended.Text, Unasked: r.unasked.Load(), Kept: receipt.Kept, Session: o.Session, Dir: r.dir,
		Unmerged: r.sum.unmerged, // no child is left that could add to it
	}, err
}

// workspace resolves the directory that a run works in.
func workspace(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("open workspace %s: %w", dir, err)
	}
	dir, err = filepath.EvalSymlinks(abs)
	if err != nil {
		return "", fmt.Errorf("open workspace %s: %w", dir, err)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", fmt.Errorf("open workspace %s: not a directory", dir)
	}
	return dir, nil
}

// prepare finds out what can be had here: git, a box. What cannot is said once.
func (r *run) prepare(ctx context.Context) error {
	var repo *worktree.Repo
	var noRepo error
	var both errgroup.Group // each starts processes, and neither needs the other
	both.Go(func() error {
		repo, noRepo = worktree.Open(ctx, r.dir, worktree.Options{
			Cache: r.o.Cache, Session: r.o.Session, Run: "1", Backend: r.o.Copies, Layers: r.showsLayers,
			Closed: sandbox.Obeyed, Box: r.reading,
		})
		return nil
	})
	both.Go(func() error {
		r.user = worktree.User(ctx, r.dir)
		return nil
	})
	both.Go(func() error {
		if !r.o.NoSandbox {
			r.noBox = r.o.Probe(ctx, r.o.AllowNet)
		}
		return nil
	})
	_ = both.Wait()
	r.repo = repo
	if ctx.Err() != nil {
		return ctx.Err() // what was found then means nothing
	}
	switch {
	case errors.Is(r.noBox, sandbox.ErrNoNet):
		return r.noBox // without the network that it was promised no command would be of use
	case r.o.NoSandbox:
		r.notice("the sandbox is off: commands reach everything that you can reach", "leave --sandbox off away to have them in a box")
	case r.noBox == nil && r.o.AllowNet:
		r.notice("commands reach the network, as you do", "leave --allow-net away to have them without")
	case r.noBox != nil:
		r.notice(r.noBox.Error(), "readers run no commands; for the others allow them with --sandbox off")
	}
	switch {
	case errors.Is(noRepo, worktree.ErrUnavailable):
		r.inPlace(noRepo.Error(), "put the folder under git (2.38 or newer)")
	case noRepo != nil:
		return noRepo
	default:
		recovered, err := repo.Recover(ctx)
		for _, what := range recovered {
			r.recovered(what)
		}
		if err != nil {
			return err
		}
		ignored, err := repo.Ignored(ctx)
		if err != nil {
			return err
		}
		if ignored { // copies would be empty, and what is made in them not taken
			r.repo = nil
			r.inPlace("git ignores this folder", "work in a folder that git does not ignore")
		}
	}
	return r.tellOfChecks()
}

// inPlace tells what is given up where no copies can be had, and what to do for them.
func (r *run) inPlace(why, instead string) {
	if !r.delegates() {
		return
	}
	if r.o.Readers == Frozen {
		r.notice(why+": readers work in the live tree", instead+" to give them a snapshot")
	}
	r.notice(why+": writers work one after another in place", "readers still run at the same time; "+instead+" for isolated writers")
}

// offer encodes the tools, once for all agents. Files are those of the workspace.
func (r *run) offer(files tools.FS) error {
	r.offered.Mode = r.o.Mode
	for _, m := range r.o.ChildModels {
		r.offered.Models = append(r.offered.Models, m.Name)
	}
	if r.delegates() {
		r.offered.Roles = r.readRoles(files)
	}
	var specs []model.Tool
	kit := r.kit(nil)
	for _, name := range r.names() {
		if name == delegate.Name {
			specs = append(specs, model.Tool(r.offered.Spec()))
		} else {
			specs = append(specs, model.Tool(kit[name].Spec()))
		}
	}
	if len(specs) == 0 {
		return nil
	}
	return r.encode(specs)
}

// drive runs the parent.
func (r *run) drive(ctx context.Context, instruction string) (out agent.Outcome, err error) {
	s := site{root: r.dir, view: r.dir, offset: "."}
	if r.repo != nil {
		s.tree = r.repo.Tree()
	}
	p, err := r.open(ctx, s, "0", r.o.Access != gate.ReadOnly, nil)
	if err != nil {
		return out, err
	}
	defer func() {
		err = errors.Join(err, p.Close())
		r.warn(p.planted())
	}()
	if err := r.offer(p.ws.FS); err != nil {
		return out, err
	}
	n := r.newNode("0", 0, p, gate.Policy{Access: r.o.Access, Each: r.o.Each})
	n.clocks.run = r.clock
	env := window.Env{OS: runtime.GOOS, Arch: runtime.GOARCH, Dir: p.ws.Path, Date: r.o.Date}
	if r.offers("bash") {
		env.Shell = "bash"
	}
	if r.repo != nil {
		if p.branch, err = r.repo.Tree().Branch(ctx); err != nil {
			return out, err
		}
		env.Branch = p.branch
	}
	err = n.begin(nil,
		model.Message{Role: model.System, Text: window.System(env)},
		model.Message{Role: model.User, Text: instruction})
	if err != nil {
		return out, err
	}
	err = r.sched.Hold(ctx, func(ctx context.Context) (err error) {
		out, err = n.work(ctx, r.o.MaxTurns, r.o.Form)
		return err
	})
	return out, err
}

// early is the outcome of a run whose context ended before its model was asked.
func early(ctx context.Context) agent.Outcome {
	if errors.Is(context.Cause(ctx), agent.ErrTimeout) {
		return agent.Outcome{Stop: agent.Timeout, Cause: context.Cause(ctx).Error() + " before it began"}
	}
	return agent.Outcome{Stop: agent.Cancelled, Cause: "before it began"}
}

// tidy ends what the run has made, whatever ended the run. What fails here changes nothing
// of what the run did: the user is told.
func (r *run) tidy(ctx context.Context) {
	if r.repo == nil {
		return
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	kept, err := r.repo.Close(after)
	for _, what := range kept {
		r.recovered(what)
	}
	if gone, ok := errors.AsType[*worktree.GoneError](err); ok {
		r.notice("the run was not cleaned up after: "+err.Error(), gone.Hint())
	} else if err != nil {
		r.notice("the run was not cleaned up after: "+err.Error(), "it is tried again at the next start")
	}
	r.collect(after)
}

// collect removes what runs kept long ago, and says so of work that went.
func (r *run) collect(ctx context.Context) {
	gone, err := r.repo.GCDaily(ctx, worktree.KeptFor)
	days := int(worktree.KeptFor.Hours() / 24)
	for _, k := range gone.Dropped {
		r.notice(fmt.Sprintf("the kept change %s of run %s is dropped after %d days; its commit was %s", k.Name, k.Session, days, k.Commit), "")
	}
	for _, folder := range gone.Left {
		r.notice(fmt.Sprintf("files that were left out of a change are removed after %d days: %s", days, folder), "")
	}
	if err != nil {
		r.notice(err.Error(), "try it with: skein worktrees gc")
	}
}

// delegates reports whether delegate_task is offered.
func (r *run) delegates() bool { return r.offers(delegate.Name) }

// names lists the tools offered, in their fixed order.
func (r *run) names() []string {
	var names []string
	for _, name := range ToolNames() {
		if r.offers(name) {
			names = append(names, name)
		}
	}
	for _, t := range r.o.Own {
		names = append(names, t.Spec().Name)
	}
	return names
}

// offers reports whether a tool is offered to the model.
func (r *run) offers(name string) bool {
	if name == delegate.Name && r.o.Mode == delegate.Off {
		return false
	}
	return r.o.Tools == nil || slices.Contains(r.o.Tools, name)
}

// admit counts a child and reports whether the run may have it.
func (r *run) admit() bool { return r.children.TryAcquire(1) }

// notice tells the user something once.
func (r *run) notice(text, hint string) {
	r.journal.Append("0", &journal.Notice{Text: text, Hint: hint})
}

// warn tells of what commands made in the user's own tree that other programs obey, once each.
func (r *run) warn(planted []string) {
	planted = slices.DeleteFunc(planted, func(path string) bool {
		_, told := r.told.LoadOrStore(path, true)
		return told
	})
	if len(planted) > 0 {
		r.notice("commands made what programs outside of boxes obey: "+strings.Join(planted, ", "),
			"look at what it holds before you use git, an editor or an agent there")
	}
}

// recovered tells what an earlier run, or this one at its end, had left and what became of it.
func (r *run) recovered(w worktree.Recovered) { r.notice(w.Describe()) }
