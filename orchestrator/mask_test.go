package orchestrator_test

import (
	"strings"
	"testing"

	"skein/agent/journal"
	"skein/orchestrator"
	"skein/tools/mask"
)

// A secret that the harness knows is in no result that the model is shown, and in nothing that
// is written; what the model itself said is sent back as it was.
func TestSecretsAreMaskedInResultsAndInTheJournal(t *testing.T) {
	const secret = `hunter"2\of mine`
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  call: {read_file: {path: secret.txt}}
- when: {agent: "0", turn: 2}
  say: 'I say hunter"2\of mine'
  call: {delegate_task: {task: "read secret.txt", access: read}}
- when: {agent: "0.1", turn: 1}
  call: {read_file: {path: secret.txt}}
- when: {agent: "0.1"}
  say: 'it is hunter"2\of mine'
- say: 'the answer is hunter"2\of mine'
`)
	r.write(map[string]string{"secret.txt": "password: " + secret + "\n"})
	out := r.run(func(o *orchestrator.Options) { o.Mask = mask.New([]string{secret}) })
	if !strings.Contains(out.Answer, secret) {
		t.Errorf("Answer = %q, want the model's own words", out.Answer)
	}
	results, _, _ := of[journal.Result](r)
	if len(results) != 3 {
		t.Fatalf("%d results, want 3", len(results))
	}
	for _, e := range results {
		if !e.OK || !strings.Contains(e.Text, mask.Marker) {
			t.Errorf("result of %s = %v %q, want it masked", e.Tool, e.OK, e.Text)
		}
	}
	for _, e := range r.events {
		if strings.Contains(string(e.Data), "hunter") {
			t.Errorf("event %s holds the secret: %s", e.Kind, e.Data)
		}
	}
	if text := r.read(".skein/sessions/s1/journal.jsonl"); strings.Contains(text, "hunter") || !strings.Contains(text, mask.Marker) {
		t.Errorf("the journal holds the secret, or nothing masked")
	}
	// Once in the parent's conversation: its own words.
	last := r.bodies("0")[len(r.bodies("0"))-1]
	if got := strings.Count(string(last), "hunter"); got != 1 {
		t.Errorf("the model was sent the secret %d times, want once, in its own words:\n%s", got, last)
	}
}
