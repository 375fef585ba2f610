package boxinit

// Targets is what the self-test tries from inside a box, given as JSON.
type Targets struct {
	Existing string // a file to change and to chmod
	New      string // a file to create
	TCP, UDP int    // ports of 127.0.0.1 outside the box
}

// Outcome tells what worked: "" for what did, else why not.
type Outcome struct {
	Write, Create, Chmod, TCP, UDP string
}
