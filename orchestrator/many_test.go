package orchestrator_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"skein/agent"
	"skein/agent/journal"
	"skein/agent/model"
	"skein/agent/model/pace"
	"skein/agent/model/retry"
	"skein/orchestrator"
	"skein/tools/gate"
)

// grow runs a forest in a folder with a file, without boxes and without git.
func grow(t testing.TB, f *forest, edit func(*orchestrator.Options)) (r *rig, wall time.Duration) {
	t.Helper()
	r = &rig{dir: t.TempDir()}
	if tt, ok := t.(*testing.T); ok {
		r.t = tt
	}
	if err := os.WriteFile(r.dir+"/a.txt", []byte("a\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	o := orchestrator.Options{
		Dir: r.dir, Client: f, Access: gate.Auto, Boxes: orchestrator.Boxes{NoSandbox: true}, Cache: t.TempDir(), Session: "s1",
		Watch: func(e journal.Event) { r.events = append(r.events, e) },
	}
	edit(&o)
	out, err := orchestrator.Run(t.Context(), o, "go")
	if err != nil || out.Stop != agent.Completed {
		t.Fatalf("Run = %+v, %v", out, err)
	}
	r.out = out
	return r, time.Since(began)
}

// waits counts, at most at one time, the children that are queued and have no slot yet.
func waits(events []journal.Event) (most int) {
	waiting := 0
	for _, e := range events {
		switch {
		case e.Kind == "agent-queued":
			waiting++
		case e.Kind == "agent-started" && e.Agent != "0":
			waiting--
		}
		most = max(most, waiting)
	}
	return most
}

// Fifty delegations on four slots: those without a slot wait, none is refused, and the
// reports come in the order in which they were asked for.
func TestFiftyDelegationsOnFourSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := &grove{}
		var turn reply
		for i := range 50 { // the later ones are the quicker ones
			turn = append(turn, ask{child: &grove{thinks: time.Duration(60-i) * time.Second, turns: []reply{looks("a.txt")}}})
		}
		root.turns = []reply{turn}
		f := plant(root)
		r, _ := grow(t, f, func(o *orchestrator.Options) { o.Jobs = 4 })
		settled, _, _ := of[journal.Settled](r)
		var order []string
		for _, s := range settled {
			order = append(order, s.Child)
			if !strings.Contains(s.Report, "· completed ·") {
				t.Errorf("%s was refused or failed: %s", s.Child, s.Report)
			}
		}
		var want []string
		for i := range 50 {
			want = append(want, fmt.Sprintf("0.%d", i+1))
		}
		if !slices.Equal(order, want) {
			t.Errorf("reports in the order %v", order)
		}
		if f.peak != 4 {
			t.Errorf("%d models were asked at once, want 4", f.peak)
		}
		// All fifty are queued before the first starts; then the first four leave the line.
		if most := waits(r.events); most != 50 {
			t.Errorf("at most %d waited, want all 50 before the first slot is given", most)
		}
		if first := startedBefore(r.events); first != 4 {
			t.Errorf("%d had a slot before the first ended, want 4: 46 wait", first)
		}
	})
}

// startedBefore counts the children that started before the first of them ended.
func startedBefore(events []journal.Event) (n int) {
	for _, e := range events {
		switch {
		case e.Agent == "0":
		case e.Kind == "agent-started":
			n++
		case e.Kind == "agent-ended":
			return n
		}
	}
	return n
}

// Eight children with eight children each share two slots: a parent that waits holds none, so
// they all come to their end, and nobody works beyond the slots.
func TestEightTimesEightOnTwoSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leaf := &grove{thinks: time.Second, turns: []reply{looks("a.txt")}}
		root := &grove{turns: []reply{crowd(8, &grove{thinks: time.Second, turns: []reply{crowd(8, leaf)}})}}
		f := plant(root)
		r, _ := grow(t, f, func(o *orchestrator.Options) { o.Jobs, o.MaxDepth, o.MaxChildren = 2, 2, 100 })
		settled, _, _ := of[journal.Settled](r)
		if len(settled) != 72 {
			t.Errorf("%d children settled, want 72", len(settled))
		}
		if f.peak != 2 {
			t.Errorf("%d models were asked at once, want 2", f.peak)
		}
	})
}

// A run's children are counted: fan-out that runs away ends with a clear result.
func TestMaxChildrenRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := plant(&grove{turns: []reply{crowd(5, &grove{turns: []reply{looks("a.txt")}})}})
		r, _ := grow(t, f, func(o *orchestrator.Options) { o.MaxChildren = 3 })
		results, _, _ := of[journal.Result](r)
		refused := 0
		for _, res := range results {
			if strings.Contains(res.Text, "this run may have 3 subagents. Do the task yourself.") {
				refused++
			}
		}
		if refused != 2 {
			t.Errorf("%d delegations were refused, want 2", refused)
		}
	})
}

// A full provider refuses whoever is one too many.
type full struct {
	*forest
	most int

	mu            sync.Mutex
	open, refused int
}

// Exchange implements [model.Client].
func (f *full) Exchange(ctx context.Context, req model.Request) (model.Reply, error) {
	f.mu.Lock()
	if f.open >= f.most {
		f.refused++
		f.mu.Unlock()
		return model.Reply{}, &model.Error{Provider: "full", Status: 429, Message: "too many", Again: true}
	}
	f.open++
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.open--
	}()
	return f.forest.Exchange(ctx, req)
}

// A storm of refusals lowers how many exchanges are under way, and every child comes to its end.
func TestFullProviderSlowsARunDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &full{forest: plant(&grove{turns: []reply{crowd(50, &grove{thinks: time.Second, turns: []reply{looks("a.txt")}})}}), most: 3}
		r, _ := grow(t, f.forest, func(o *orchestrator.Options) {
			o.Jobs, o.MaxChildren = 50, 50
			o.Client = retry.Client(pace.Client(f, 50, 50), retry.Options{For: time.Hour})
		})
		settled, _, _ := of[journal.Settled](r)
		done := 0
		for _, s := range settled {
			if strings.Contains(s.Report, "· completed ·") {
				done++
			}
		}
		if done != 50 {
			t.Errorf("%d of 50 children came to their end", done)
		}
		// Fifty that tried again each by itself were refused hundreds of times.
		t.Logf("%d exchanges were refused", f.refused)
		if f.refused < 10 || f.refused > 100 {
			t.Errorf("%d exchanges were refused, want the first burst and few more", f.refused)
		}
	})
}
