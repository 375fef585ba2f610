package journal

import "skein/agent/model"

// RunStarted opens a run.
type RunStarted struct {
	Instruction string       `json:"instruction"`
	Dir         string       `json:"dir"`
	Model       string       `json:"model"`
	Delegate    string       `json:"delegate"` // full, no-tools, task-only or off
	Access      string       `json:"access"`
	Sandbox     string       `json:"sandbox"` // auto or off
	Net         bool         `json:"net"`     // commands have the network that the user has
	Jobs        int          `json:"jobs"`
	Params      model.Params `json:"params"` // as given to the provider
}

// Notice is something the user is told once: what had to be given up and why, for one.
type Notice struct {
	Text string `json:"text"`
	Hint string `json:"hint,omitempty"`
}

// AgentQueued says that a child was asked for; its ordinal is fixed from here on.
type AgentQueued struct {
	Title  string `json:"title"`
	Task   string `json:"task"`
	Access string `json:"access"` // read or write
	Index  int    `json:"index"`  // which delegation of its reply, from 1
	Of     int    `json:"of"`     // how many that reply asked for

	Role  string   `json:"role,omitempty"`
	Model string   `json:"model,omitempty"` // another one than its parent's
	Paths []string `json:"paths,omitempty"` // globs of what alone it may change

	// What its first request is expected to read.
	Cached model.Count `json:"cached_tokens"` // tokens that the provider's cache should hold
	New    model.Count `json:"new_tokens"`    // the others
}

// AgentStarted says that an agent got its slot and works.
type AgentStarted struct {
	Workspace string `json:"workspace"` // the path it is shown
	Context   int    `json:"context"`   // messages of its first request
}

// Message is a message that the harness added to an agent's conversation. Results of tool
// calls are not among them unless they differ from their [Result].
type Message struct {
	Message model.Message `json:"message"`
}

// Reply is what the model answered.
type Reply struct {
	Turn    int           `json:"turn"`
	Message model.Message `json:"message"`
	Finish  model.Finish  `json:"finish"`
	Usage   model.Usage   `json:"usage"`
	Dropped bool          `json:"dropped,omitempty"` // it did not enter the conversation
}

// Attempt is a model call that failed and is tried again after a wait.
type Attempt struct {
	Turn   int     `json:"turn"`
	Number int     `json:"number"` // of the attempt, from 1
	Error  string  `json:"error"`
	Wait   float64 `json:"wait_seconds"`
}

// Call is a tool call and what the gate decided on it.
type Call struct {
	ID       string `json:"id"`
	Tool     string `json:"tool"`
	Args     string `json:"args"`
	Effect   string `json:"effect"`
	Decision string `json:"decision"` // allow, ask, deny or invalid
	Reason   string `json:"reason,omitempty"`
}

// Approval is the answer to a question: of the gate for a call, or before a merge.
type Approval struct {
	About   string `json:"about"`
	For     string `json:"for"` // the agent whose call or change it is
	By      string `json:"by"`  // user; user, earlier; or nobody
	Granted bool   `json:"granted"`
	Again   bool   `json:"again,omitempty"` // the same is granted for the rest of the run
	Reason  string `json:"reason,omitempty"`
}

// Result is what a call gave back.
type Result struct {
	ID      string `json:"id"`
	Tool    string `json:"tool"`
	OK      bool   `json:"ok"`
	Text    string `json:"text"`
	Command string `json:"command,omitempty"` // the command line, if one ran
	Exit    int    `json:"exit,omitempty"`
}

// Checked is a check that was run: before an agent may finish, or of a merge.
type Checked struct {
	Command string `json:"command"`
	Exit    int    `json:"exit"`
	Killed  string `json:"killed,omitempty"` // why it was ended, such as timeout
	Merge   string `json:"merge,omitempty"`  // the commit it was run on, for a merge
	Text    string `json:"text"`             // the end of its output
}

// Snapshot says from which state of the workspace the writers of a batch start.
type Snapshot struct {
	Commit      string   `json:"commit"`
	Branch      string   `json:"branch,omitempty"`
	Uncommitted int      `json:"uncommitted"`
	Left        []string `json:"left,omitempty"` // what is not in it, with the reason
}

// Copied says that a writer's copy is ready.
type Copied struct {
	Backend string `json:"backend"`       // overlay or fresh
	Why     string `json:"why,omitempty"` // it was not made in a better way
	Path    string `json:"path"`          // what the writer writes
}

// Collected is what a writer changed.
type Collected struct {
	Commit string   `json:"commit"`
	Files  []string `json:"files"`
	Left   []string `json:"left,omitempty"`
	Bare   string   `json:"bare,omitempty"` // why git read it outside of a box; "" if it was in one
}

// Settled is the last word on a child, in request order among its siblings.
type Settled struct {
	Child     string   `json:"child"`
	Change    string   `json:"change"` // "" for a reader; none, merged, conflict, kept, lost, in place
	Commit    string   `json:"commit,omitempty"`
	Files     []string `json:"files,omitempty"`
	Added     int      `json:"added,omitempty"`
	Removed   int      `json:"removed,omitempty"`
	Conflicts []string `json:"conflicts,omitempty"` // path and kind
	Stale     []string `json:"stale,omitempty"`     // of a reader: files that changed since it read them
	Resolved  string   `json:"resolved,omitempty"`  // who resolved the conflicts of a merged change
	Ref       string   `json:"ref,omitempty"`       // where an unmerged change is kept
	Show      string   `json:"show,omitempty"`      // a command that shows it
	Cause     string   `json:"cause,omitempty"`     // why it was not merged
	Report    string   `json:"report"`              // as the parent's model is shown it
	People    string   `json:"people"`              // the same for people, in one line
}

// Resolved is what became of one try to resolve the conflicts of a child's change.
type Resolved struct {
	Child     string   `json:"child"`            // whose change it is
	Resolver  string   `json:"resolver"`         // the child that tried
	Conflicts []string `json:"conflicts"`        // path and kind
	Commit    string   `json:"commit,omitempty"` // what it made, merged; not applied yet
	Cause     string   `json:"cause,omitempty"`  // why it was refused
}

// AgentEnded closes an agent.
type AgentEnded struct {
	Stop  string      `json:"stop"`
	Cause string      `json:"cause,omitempty"`
	Text  string      `json:"text"`
	Turns int         `json:"turns"`
	Usage model.Usage `json:"usage"`
	Peak  model.Count `json:"peak_context"` // tokens of the largest input of a call
	Last  model.Count `json:"last_context"` // of the last call

	Counted model.Usage `json:"counted"` // of the calls of which input and output are known: usage is no less
}

// Fault is a panic or another failure of the harness itself.
type Fault struct {
	Text  string `json:"text"`
	Stack string `json:"stack,omitempty"`
}

// RunEnded closes a run; it is its receipt.
type RunEnded struct {
	Stop     string `json:"stop"`
	Cause    string `json:"cause,omitempty"`
	Answer   string `json:"answer"`
	Unasked  bool   `json:"unasked,omitempty"` // something was refused because nobody answered
	Children int    `json:"children"`
	Merged   int    `json:"merged"`
	Kept     int    `json:"kept"`

	Cancelled  int `json:"cancelled"`  // children
	Unfinished int `json:"unfinished"` // children that failed, ended at a limit, or whose work was lost

	Usage   model.Usage `json:"usage"`
	Counted model.Usage `json:"counted"`     // of the calls of which input and output are known: usage is no less
	Cost    *float64    `json:"cost_usd"`    // null: unknown
	AtLeast *float64    `json:"counted_usd"` // what is known of the cost; null: nothing
	Seconds float64     `json:"seconds"`
	Busy    float64     `json:"busy_seconds"` // sum of the children's times
}

func (*RunStarted) class() class   { return class{"run-started", false} }
func (*Notice) class() class       { return class{"notice", false} }
func (*AgentQueued) class() class  { return class{"agent-queued", false} }
func (*AgentStarted) class() class { return class{"agent-started", false} }
func (*Message) class() class      { return class{"message", false} }
func (*Reply) class() class        { return class{"reply", true} }
func (*Attempt) class() class      { return class{"attempt", false} }
func (*Call) class() class         { return class{"call", false} }
func (*Approval) class() class     { return class{"approval", true} }
func (*Result) class() class       { return class{"result", true} }
func (*Checked) class() class      { return class{"checked", false} }
func (*Snapshot) class() class     { return class{"snapshot", false} }
func (*Copied) class() class       { return class{"copied", false} }
func (*Collected) class() class    { return class{"collected", true} }
func (*Resolved) class() class     { return class{"resolved", true} }
func (*Settled) class() class      { return class{"settled", true} }
func (*AgentEnded) class() class   { return class{"agent-ended", false} }
func (*Fault) class() class        { return class{"fault", false} }
func (*RunEnded) class() class     { return class{"run-ended", false} }
