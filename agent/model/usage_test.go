package model_test

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"skein/agent/model"
)

func count(t *rapid.T, name string) model.Count {
	if !rapid.Bool().Draw(t, name+" known") {
		return model.Count{}
	}
	return model.Tokens(rapid.Int64Range(0, 1_000_000).Draw(t, name))
}

func TestPromptOfSumIsSumOfPrompts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sum, want := model.NoUsage(), model.Tokens(0)
		reads := model.Tokens(0)
		for range rapid.IntRange(1, 5).Draw(t, "exchanges") {
			u := model.Usage{Input: count(t, "input"), CacheRead: count(t, "read"), CacheWrite: count(t, "write")}
			sum, want, reads = sum.Plus(u), want.Plus(u.Prompt()), reads.Plus(u.CacheRead)
		}
		if got := sum.Prompt(); got != want {
			t.Fatalf("Prompt of sum = %v, want %v", got, want)
		}
		if sum.CacheRead != reads {
			t.Fatalf("CacheRead of sum = %v, want %v", sum.CacheRead, reads)
		}
	})
}

func TestUnknownCountIsNull(t *testing.T) {
	for _, c := range []model.Count{{}, model.Tokens(0), model.Tokens(462)} {
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var back model.Count
		if err := json.Unmarshal(b, &back); err != nil || back != c {
			t.Errorf("Unmarshal(%s) = %v, %v, want %v", b, back, err, c)
		}
	}
	if got := (model.Count{}).Plus(model.Tokens(3)).String(); got != "unavailable" {
		t.Errorf("unknown + 3 = %s, want unavailable", got)
	}
}

func TestTokensThatCannotBeAreUnknown(t *testing.T) {
	for n, known := range map[int64]bool{0: true, 1 << 30: true, -1: false, 1<<63 - 1: false} {
		if got := model.Tokens(n); got.Known != known {
			t.Errorf("Tokens(%d) = %+v", n, got)
		}
	}
}
