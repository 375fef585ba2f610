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
	}{
		{"of itself", []model.Reply{say(`{"n":1}`), say("words")}, Completed, `{"n":1}`, 1},
		{"at once", []model.Reply{say("free words"), say(`{"n":1}`)}, Completed, `{"n":1}`, 2},
		{"at the third time", []model.Reply{say("words"), say("no"), reply("", model.FinishToolCalls, "a {}"), say(`{"n":1}`)}, Completed, `{"n":1}`, 4},
		{"never", []model.Reply{say("words"), say("no")}, Stuck, "no", 4},
		{"never, and nothing in the end", []model.Reply{say("words"), say("no"), say("")}, Stuck, "no", 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &replies{list: tt.list}
			talk := model.NewTranscript(m)
			out, err := Run(t.Context(), Options{Client: m, Batch: ok, MaxTurns: 9, Tools: []byte(`[]`), Form: &Form{Schema: []byte(`{"type":"object"}`), Check: valid}, Record: func(journal.Payload) {}}, talk)
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
