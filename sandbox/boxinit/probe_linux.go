package boxinit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// probe tries what [Targets] in args names and prints the [Outcome]. It is run as a
// command of the box, so it has what commands have.
func probe(args []string, out io.Writer) int {
	var t Targets
	if len(args) != 1 || json.Unmarshal([]byte(args[0]), &t) != nil {
		fmt.Fprintln(os.Stderr, "skein-init: probe: want the targets as JSON")
		return 2
	}
	o := Outcome{
		Write:  why(put(t.Existing, unix.O_APPEND)),
		Create: why(put(t.New, unix.O_CREAT|unix.O_EXCL)),
		Chmod:  why(os.Chmod(t.Existing, 0o600)),
		TCP:    why(knock(unix.SOCK_STREAM, t.TCP)),
		UDP:    why(knock(unix.SOCK_DGRAM, t.UDP)),
	}
	if json.NewEncoder(out).Encode(o) != nil {
		return 1
	}
	return 0
}

func why(err error) string {
	if err == nil {
		return ""
	}
	if errno := unix.Errno(0); errors.As(err, &errno) {
		return errno.Error() // what was tried is known
	}
	return err.Error()
}

func put(path string, flags int) error {
	f, err := os.OpenFile(path, os.O_WRONLY|flags, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString("probe\n")
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

func knock(kind, port int) error {
	fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	_, err = unix.Write(fd, []byte("probe"))
	return err
}
