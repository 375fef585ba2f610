package agent

import (
	"errors"
	"testing"

	"skein/agent/journal"
	"skein/agent/model"
)

func TestFinalAnswerInItsForm(t *testing.T) {
	valid := func(s string) error {
		if s == `{"n":1}` {
			return nil
		}
		return errors.New("n is missing")
	}
	for _, tt := range []struct {
		name  string
		list  []model.Reply
		want  Stop
		text  string
		asked int
		told  bool
	}{
		{"by chance", []model.Reply{say(`{"n":2}`), say(`{"n":1}`)}, Completed, `{"n":1}`, 2, false},
		{"as it was told", []model.Reply{say(`{"n":1}`), say("words")}, Completed, `{"n":1}`, 1, true},
		{"not as it was told", []model.Reply{say("words"), say(`{"n":1}`)}, Completed, `{"n":1}`, 2, true},
		{"at once", []model.Reply{say("free words"), say(`{"n":1}`)}, Completed, `{"n":1}`, 2, false},
		{"at the third time", []model.Reply{say("words"), say("no"), reply("", model.FinishToolCalls, "a {}"), say(`{"n":1}`)}, Completed, `{"n":1}`, 4, false},
		{"never", []model.Reply{say("words"), say("no")}, Stuck, "no", 4, false},
		{"never, and nothing in the end", []model.Reply{say("words"), say("no"), say("")}, Stuck, "no", 4, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &replies{list: tt.list}
			talk := model.NewTranscript(m)
			out, err := Run(t.Context(), Options{Client: m, Batch: ok, MaxTurns: 9, Tools: []byte(`[]`), Form: &Form{Schema: []byte(`{"type":"object"}`), Check: valid, Told: tt.told}, Record: func(journal.Payload) {}}, talk)
			if err != nil || out.Stop != tt.want || out.Text != tt.text || len(m.asked) != tt.asked {
				t.Fatalf("Run = %s %q after %d requests, %v; want %s %q after %d", out.Stop, out.Text, len(m.asked), err, tt.want, tt.text, tt.asked)
			}
			for i, req := range m.asked[1:] {
				if !req.NoCalls || string(req.Schema) != `{"type":"object"}` {
					t.Errorf("request %d may call: %v, schema %s; want no calls and the schema", i+2, !req.NoCalls, req.Schema)
				}
			}
			paired(t, talk.Messages())
		})
	}
}
