package sandbox

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// wanted tells what a command of the box that failed wanted; routes is what the kernel had
// counted when it was started. What other commands ask for at the same time is counted, too.
func (b *Box) wanted(c Command, o Output, routes int64) []Want {
	text := o.Stderr
	if c.Merge {
		text = o.Combined
	}
	list := wants(text, func(path string) bool { return b.policy.keeps(c.Dir, path) })
	network := func(w Want) bool { return w.Kind == wantNetwork }
	switch {
	case b.policy.Net:
		return slices.DeleteFunc(list, network)
	case b.routes() > routes && !slices.ContainsFunc(list, network):
		list = append(list, Want{Kind: wantNetwork})
	}
	return list
}

// routes is how often somebody in the box asked for an address to which no way leads: all but
// the box itself. 0 where that cannot be known.
func (b *Box) routes() int64 {
	if b.policy.Net {
		return 0
	}
	proc := fmt.Sprintf("/proc/%d/net/", b.init.Process.Pid)
	four, err := os.ReadFile(proc + "snmp")
	if err != nil {
		return 0
	}
	six, err := os.ReadFile(proc + "snmp6")
	if err != nil {
		six = nil // no such addresses at all
	}
	return count4(string(four)) + count6(string(six))
}

// count4 reads a table whose first line of a kind names the columns of the second.
func count4(text string) int64 {
	var names []string
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || fields[0] != "Ip:":
		case names == nil:
			names = fields
		default:
			if at := slices.Index(names, "OutNoRoutes"); at >= 0 && at < len(fields) {
				n, _ := strconv.ParseInt(fields[at], 10, 64) // 0 is what is not known
				return n
			}
		}
	}
	return 0
}

func count6(text string) int64 {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "Ip6OutNoRoutes"); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
			return n
		}
	}
	return 0
}
