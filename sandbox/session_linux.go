package sandbox

import (
	"os"
	"strconv"
	"strings"
)

// descendants lists the living processes that are of the leader's session or come from
// one that is, as far as their parents still live.
func descendants(leader int) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	parent, member := map[int]int{}, map[int]bool{leader: true}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		state, ppid, session, ok := stat(pid)
		if !ok || state == "Z" || state == "X" {
			continue
		}
		parent[pid] = ppid
		if session == leader {
			member[pid] = true
		}
	}
	var list []int
	for pid := range parent {
		for at, hops := pid, 0; at > 1 && hops <= len(parent); at, hops = parent[at], hops+1 {
			if member[at] {
				list = append(list, pid)
				break
			}
		}
	}
	return list
}

// stat reads the state, parent and session of a process.
func stat(pid int) (state string, ppid, session int, ok bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", 0, 0, false
	}
	// The name stands in brackets and may hold anything, brackets too.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 4 {
		return "", 0, 0, false
	}
	ppid, err1 := strconv.Atoi(fields[1])
	session, err2 := strconv.Atoi(fields[3])
	return fields[0], ppid, session, err1 == nil && err2 == nil
}
