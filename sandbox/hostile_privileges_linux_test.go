package sandbox_test

import (
	"os"
	"path/filepath"
	"testing"
)

// A command has no privilege and gets none, and the kernel's rarer doors are closed to it.
func TestHostilePrivileges(t *testing.T) {
	const as = "unshare -Urm " // as root of a user namespace, where anybody may do these outside
	hostile(t, []attempt{
		{name: "user namespace", want: "EPERM", script: "unshare -Ur true"},
		{name: "user namespace by clone", want: "EPERM", script: "try clone 0x10000000"},
		{name: "mount namespace", want: "EPERM", script: "try unshare 0x00020000", root: caps},
		{name: "network namespace", want: "EPERM", script: "try unshare 0x40000000", root: caps},
		{name: "process namespace by clone", want: "EPERM", script: "try clone 0x20000000", root: caps},
		{name: "file system of one's own", want: "EPERM", script: as + "mount -t tmpfs none /mnt"},
		{name: "mount", want: "EACCES superuser", script: "mount -t tmpfs none /opt", control: as + "mount -t tmpfs none /opt"},
		{name: "mount by call", want: "EPERM", script: "try mount", control: as + `bash -c "try mount"`},
		{name: "mount by the newer call", want: "EPERM", script: "try filesystem", control: as + `bash -c "try filesystem"`},
		{name: "mount, cloned", want: "EPERM", script: "try tree $OUT", control: as + `bash -c "try tree $OUT"`},
		{name: "mount over the workspace", want: "EACCES superuser", script: "mount --bind $OUT .", control: as + "mount --bind $OUT ."},
		{name: "mount made writable", want: "EACCES superuser", script: "mount -o remount,rw $OUT", control: as + "bash -c 'mount --bind $OUT $OUT && mount -o remount,bind,ro $OUT && mount -o remount,bind,rw $OUT'"},
		{name: "mount's attributes", want: "EPERM", script: "try attributes /proc", control: as + `bash -c "mount --bind $OUT $OUT; try attributes $OUT"`},
		{name: "unmount", want: "superuser", script: "umount -l $PWD", control: as + "bash -c 'mount --bind $OUT $OUT; umount -l $OUT'"},
		{name: "unmount what hides", want: "superuser ENOENT", script: "umount -l $PLANTED/.ssh", control: as + "bash -c 'mount -t tmpfs none $PLANTED/.ssh; umount -l $PLANTED/.ssh'"},
		{name: "unmount processes", want: "EPERM", script: "try umount /proc", control: as + `bash -c "mount --bind $OUT $OUT; try umount $OUT"`},
		{name: "root of one's own", want: "EPERM", script: "try chroot $OUT", control: as + `bash -c "try chroot $OUT"`},
		{name: "root turned", want: "EPERM", script: "try pivot $OUT", control: as + `bash -c "mount --bind $OUT $OUT; cd $OUT; try pivot ."`},
		{name: "join a network", want: "EPERM", script: "try setns /proc/self/ns/net", root: caps},
		{name: "join pid 1's mounts", want: "EPERM", script: "try setns /proc/1/ns/mnt", control: "try setns /proc/self/ns/mnt", root: caps},
		{name: "join a network elsewhere", want: "EPERM", script: "try setns /proc/$PPID/ns/net", root: caps},
		{name: "kernel program", want: "EPERM", script: "try bpf", root: caps},
		{name: "ring", want: "ENOSYS", script: "try ring", absent: noRing()},
		{name: "secret memory", want: "ENOSYS", script: "try secretmemory", absent: noSecretMemory()},
		{name: "room on the disk", want: "EOPNOTSUPP", script: "f=$(mktemp) && try allocate $f"},
		{name: "room on the disk, beside", want: "EOPNOTSUPP", script: "f=$(mktemp) && try reserve $f"},
		{name: "counter", want: "EPERM", script: "try perf", root: "counting is closed to ordinary users in places"},
		{name: "key", want: "EPERM", script: "try addkey"},
		{name: "keyring", want: "EPERM", script: "try session"},
		{name: "page faults", want: "EPERM", script: "try userfault", root: "handling page faults is closed to ordinary users in places"},
		{name: "file events of all", want: "EPERM", script: "try fanotify", root: caps},
		{name: "hostname", want: "EPERM", script: "try hostname", root: caps},
		{name: "kernel setting", want: "EROFS", script: "cat /proc/sys/kernel/core_pattern > /proc/sys/kernel/core_pattern", root: caps},
		{name: "namespaces allowed again", want: "EROFS", script: "echo 9 > /proc/sys/user/max_user_namespaces", control: as + "bash -c 'echo 9 > /proc/sys/user/max_user_namespaces'"},
		{name: "most processes", want: "EROFS", script: "cat /proc/sys/kernel/pid_max > /proc/sys/kernel/pid_max", root: caps},
		{name: "system request", want: "EROFS", script: "echo h > /proc/sysrq-trigger", root: caps, absent: missing("/proc/sysrq-trigger")},
		{name: "device setting", want: "EROFS", script: "f=/sys/kernel/mm/transparent_hugepage/enabled; echo madvise > $f", control: "f=/sys/kernel/mm/transparent_hugepage/enabled; grep -o '\\[.*\\]' $f | tr -d '[]' > $f", root: caps, absent: missing("/sys/kernel/mm/transparent_hugepage/enabled")},
		{name: "control group", want: "EROFS", script: "mkdir /sys/fs/cgroup/skein-test", control: "mkdir /sys/fs/cgroup/skein-test && rmdir /sys/fs/cgroup/skein-test", root: caps, absent: noCgroups()},
		{name: "memory of the machine", want: "ENOENT", script: "head -c 1 /dev/mem", root: caps, absent: missing("/dev/mem")},
		{name: "kernel's log", want: "EROFS", script: "echo x > /dev/kmsg", root: caps, absent: missing("/dev/kmsg")},
		{name: "disk", want: "ENOENT", script: "head -c 1 " + disk(), root: caps, absent: missing(disk())},
		{name: "disk made", want: "EPERM", script: "d=$(mktemp -d); mknod $d/b b 7 0 && head -c 0 $d/b", root: caps},
		{name: "terminal of another", want: "nothing", script: "ls /dev/pts/ | grep -v ptmx || { echo found nothing; exit 1; }", control: "ls /dev/pts/"},
	})
}

func noRing() string {
	if text, err := os.ReadFile("/proc/sys/kernel/io_uring_disabled"); err == nil && text[0] != '0' {
		return "this machine has no rings: io_uring_disabled is " + string(text[:1])
	}
	return ""
}

func noSecretMemory() string {
	if err := secretMemory(nil); err != nil {
		return "this machine has no secret memory: " + err.Error()
	}
	return ""
}

// noCgroups says so where groups are not root's to make, as in containers.
func noCgroups() string {
	if os.Geteuid() != 0 {
		return ""
	}
	if err := os.Mkdir("/sys/fs/cgroup/skein-test", 0o755); err != nil {
		return "this machine makes no control groups: " + err.Error()
	}
	_ = os.Remove("/sys/fs/cgroup/skein-test")
	return ""
}

// disk is a block device of this machine.
func disk() string {
	list, err := filepath.Glob("/sys/class/block/*")
	if err != nil {
		return "/dev/no-disk"
	}
	for _, d := range list {
		path := filepath.Join("/dev", filepath.Base(d))
		if f, err := os.Open(path); err == nil {
			_ = f.Close()
			return path
		}
	}
	return "/dev/no-disk"
}
