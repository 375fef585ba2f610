package gate_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"skein/scheduler"
	"skein/tools/gate"
)

// What a tool of the embedding program does is held by no box and no copy.
func TestDecideOnWhatIsOutside(t *testing.T) {
	for _, tt := range []struct {
		policy               gate.Policy
		write, execute, copy gate.Verdict
	}{
		{gate.Policy{Access: gate.ReadOnly}, gate.Deny, gate.Deny, gate.Deny},
		{gate.Policy{Access: gate.Auto, Reader: true}, gate.Deny, gate.Deny, gate.Deny},
		{gate.Policy{Access: gate.Confirm, Isolated: true}, gate.Ask, gate.Ask, gate.Ask},
		{gate.Policy{Access: gate.Auto, Isolated: true}, gate.Allow, gate.Allow, gate.Allow},
	} {
		for effect, want := range map[scheduler.Effect]gate.Verdict{
			scheduler.Read: gate.Allow, scheduler.Write: tt.write, scheduler.Execute: tt.execute, scheduler.Isolated: tt.copy,
		} {
			if got := tt.policy.Decide(gate.Call{Tool: "own", Effect: effect, Boxed: true, Outside: true}); got.Verdict != want {
				t.Errorf("%+v: Decide(%v) = %v, want %v", tt.policy, effect, got.Verdict, want)
			}
		}
	}
}

func TestDecide(t *testing.T) {
	const read, write, execute, isolated = scheduler.Read, scheduler.Write, scheduler.Execute, scheduler.Isolated
	const allow, ask, deny = gate.Allow, gate.Ask, gate.Deny
	parent := func(a gate.Access) gate.Policy { return gate.Policy{Access: a} }
	reader := func(a gate.Access) gate.Policy { return gate.Policy{Access: a, Reader: true} }
	writer := func(a gate.Access) gate.Policy { return gate.Policy{Access: a, Isolated: true} }
	type row map[scheduler.Effect]gate.Verdict
	for _, tt := range []struct {
		name   string
		policy gate.Policy
		boxed  bool
		want   row
	}{
		{"read-only", parent(gate.ReadOnly), true, row{read: allow, write: deny, execute: allow, isolated: deny}},
		{"read-only, no box", parent(gate.ReadOnly), false, row{read: allow, write: deny, execute: deny, isolated: deny}},
		{"confirm", parent(gate.Confirm), true, row{read: allow, write: ask, execute: ask, isolated: allow}},
		{"confirm, no box", parent(gate.Confirm), false, row{read: allow, write: ask, execute: ask, isolated: allow}},
		{"auto", parent(gate.Auto), true, row{read: allow, write: allow, execute: allow, isolated: allow}},
		{"auto, no box", parent(gate.Auto), false, row{read: allow, write: allow, execute: allow, isolated: allow}},
		{"no level", parent(""), true, row{read: allow, write: deny, execute: deny, isolated: deny}},
		{"unknown level", parent("all"), true, row{read: allow, write: deny, execute: deny, isolated: deny}},
		{"reader in read-only", reader(gate.ReadOnly), true, row{read: allow, write: deny, execute: allow, isolated: deny}},
		{"reader in confirm", reader(gate.Confirm), true, row{read: allow, write: deny, execute: allow, isolated: deny}},
		{"reader in auto", reader(gate.Auto), true, row{read: allow, write: deny, execute: allow, isolated: deny}},
		{"reader, no box", reader(gate.Auto), false, row{read: allow, write: deny, execute: deny, isolated: deny}},
		{"writer in read-only", writer(gate.ReadOnly), true, row{read: allow, write: deny, execute: allow, isolated: deny}},
		{"writer in confirm", writer(gate.Confirm), true, row{read: allow, write: allow, execute: allow, isolated: allow}},
		{"writer in confirm, no box", writer(gate.Confirm), false, row{read: allow, write: allow, execute: ask, isolated: allow}},
		{"writer in confirm, each", gate.Policy{Access: gate.Confirm, Isolated: true, Each: true}, true, row{read: allow, write: ask, execute: ask, isolated: allow}},
		{"writer in auto, each", gate.Policy{Access: gate.Auto, Isolated: true, Each: true}, true, row{read: allow, write: allow, execute: allow, isolated: allow}},
		{"writer in auto", writer(gate.Auto), true, row{read: allow, write: allow, execute: allow, isolated: allow}},
		{"a reader is one in a copy, too", gate.Policy{Access: gate.Auto, Reader: true, Isolated: true}, false, row{read: allow, write: deny, execute: deny, isolated: deny}},
	} {
		for _, effect := range slices.Sorted(maps.Keys(tt.want)) {
			got := tt.policy.Decide(gate.Call{Tool: "a_tool", Effect: effect, Boxed: tt.boxed})
			if got.Verdict != tt.want[effect] {
				t.Errorf("%s: Decide(%v) = %v, want %v", tt.name, effect, got.Verdict, tt.want[effect])
			}
			if explained := strings.HasPrefix(got.Reason, "a_tool refused: "); explained != (got.Verdict == deny) {
				t.Errorf("%s: Decide(%v) = %v because %q, want a reason for a denial only", tt.name, effect, got.Verdict, got.Reason)
			}
		}
	}
}

// A child, which is a reader or works in a copy, gets nothing by itself that its parent would
// be denied.
func TestChildHasNoMoreThanItsParent(t *testing.T) {
	for _, access := range []gate.Access{gate.ReadOnly, gate.Confirm, gate.Auto, "", "all"} {
		for _, effect := range []scheduler.Effect{scheduler.Read, scheduler.Write, scheduler.Execute, scheduler.Isolated} {
			for _, boxed := range []bool{true, false} {
				call := gate.Call{Tool: "a_tool", Effect: effect, Boxed: boxed}
				if (gate.Policy{Access: access}).Decide(call).Verdict != gate.Deny {
					continue
				}
				reader := gate.Policy{Access: access, Reader: true}.Decide(call).Verdict
				writer := gate.Policy{Access: access, Isolated: true}.Decide(call).Verdict
				// Commands of a reader in its box are reading, whatever the level.
				if reader != gate.Deny && (effect != scheduler.Execute || !boxed) || writer != gate.Deny {
					t.Errorf("access %q, %v: parent denied, reader %v, writer %v", access, effect, reader, writer)
				}
			}
		}
	}
}
