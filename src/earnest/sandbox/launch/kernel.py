"""Calls to the Linux kernel that Python does not wrap, for x86-64 and arm64 (man 2 of each name).

`syscall` raises OSError like the functions of `os`. Numbers are those of `asm/unistd_64.h` and `asm-generic/unistd.h`.
"""

from __future__ import annotations

import ctypes
import os
from typing import Final

_OLD: Final = {
    # name: (x86-64, arm64); -1: arm64 never had it
    "open": (2, -1), "ioctl": (16, 29), "shmget": (29, 194), "socket": (41, 198), "connect": (42, 203), "sendto": (44, 206),
    "sendmsg": (46, 211), "bind": (49, 200), "listen": (50, 201), "socketpair": (53, 199), "clone": (56, 220),
    "execve": (59, 221), "kill": (62, 129), "semget": (64, 190), "msgget": (68, 186), "flock": (73, 32), "fcntl": (72, 25),
    "truncate": (76, 45), "rename": (82, -1), "mkdir": (83, -1), "rmdir": (84, -1), "creat": (85, -1), "link": (86, -1),
    "unlink": (87, -1), "symlink": (88, -1), "chmod": (90, -1), "chown": (92, -1), "lchown": (94, -1), "ptrace": (101, 117),
    "syslog": (103, 116), "rt_sigqueueinfo": (129, 138), "mknod": (133, -1), "personality": (135, 92),
    "pivot_root": (155, 41), "prctl": (157, 167), "adjtimex": (159, 171), "chroot": (161, 51), "acct": (163, 89),
    "settimeofday": (164, 170), "mount": (165, 40), "umount2": (166, 39), "swapon": (167, 224), "swapoff": (168, 225),
    "reboot": (169, 142), "sethostname": (170, 161), "setdomainname": (171, 162), "iopl": (172, -1), "ioperm": (173, -1),
    "init_module": (175, 105), "delete_module": (176, 106), "quotactl": (179, 60), "nfsservctl": (180, 42),
    "utime": (132, -1), "utimes": (235, -1), "futimesat": (261, -1), "fchmod": (91, 52), "fchown": (93, 55),
    "fsetxattr": (190, 7), "fremovexattr": (199, 16), "fork": (57, -1), "vfork": (58, -1), "setxattr": (188, 5),
    "lsetxattr": (189, 6), "removexattr": (197, 14), "lremovexattr": (198, 15), "tkill": (200, 130),
    "lookup_dcookie": (212, 18), "clock_settime": (227, 112), "tgkill": (234, 131), "mq_open": (240, 180),
    "kexec_load": (246, 104), "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "openat": (257, 56),
    "mkdirat": (258, 34), "mknodat": (259, 33), "fchownat": (260, 54), "unlinkat": (263, 35), "renameat": (264, 38),
    "linkat": (265, 37), "symlinkat": (266, 36), "fchmodat": (268, 53), "unshare": (272, 97), "utimensat": (280, 88),
    "rt_tgsigqueueinfo": (297, 240), "perf_event_open": (298, 241), "fanotify_init": (300, 262), "prlimit64": (302, 261),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "clock_adjtime": (305, 266), "sendmmsg": (307, 269),
    "setns": (308, 268), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "finit_module": (313, 273), "renameat2": (316, 276), "seccomp": (317, 277), "kexec_file_load": (320, 294),
    "bpf": (321, 280), "execveat": (322, 281), "userfaultfd": (323, 282),
}  # fmt: skip
_NEW: Final = {
    # The same number on both.
    "pidfd_send_signal": 424, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "pidfd_open": 434, "clone3": 435,
    "openat2": 437, "pidfd_getfd": 438, "mount_setattr": 442, "quotactl_fd": 443, "landlock_create_ruleset": 444,
    "landlock_add_rule": 445, "landlock_restrict_self": 446, "fchmodat2": 452,
}  # fmt: skip
MACHINE: Final = os.uname().machine
AUDIT_ARCH: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}.get(MACHINE, 0)
"""How a seccomp program knows this machine's own system calls (`linux/audit.h`); 0: a machine earnest has no tables for."""
_COLUMN: Final = 1 if MACHINE == "aarch64" else 0
NUMBERS: Final[dict[str, int]] = {name: pair[_COLUMN] for name, pair in _OLD.items() if pair[_COLUMN] >= 0} | _NEW

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWCGROUP, CLONE_NEWTIME = 0x10000000, 0x20000000, 0x40000000, 0x02000000, 0x80
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
MNT_DETACH: Final = 2
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 4, 24, 36, 38

_libc = ctypes.CDLL(None, use_errno=True)
_syscall = _libc.syscall
_syscall.restype = ctypes.c_long


def syscall(name: str, *args: int | bytes | ctypes.Array[ctypes.c_char] | None) -> int:
    """The result of a system call; raises OSError."""
    done = _syscall(ctypes.c_long(NUMBERS[name]), *(ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args))
    if done < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return int(done)


def unshare(flags: int) -> None:
    syscall("unshare", flags)


def mount(source: str, target: str, kind: str, flags: int = 0, data: str = "") -> None:
    """mount(2); the error names both ends."""
    try:
        syscall("mount", source.encode(), os.fsencode(target), kind.encode() or None, flags, os.fsencode(data) or None)
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror} ({kind or 'bind'} {source} on {target} {data[:200]})") from None


_AT_RECURSIVE, _AT_EMPTY_PATH, _ATTR_RDONLY, _ATTR_NOSUID = 0x8000, 0x1000, 1, 2


def bind(source: str, target: str, *, read_only: bool) -> None:
    """A folder or file at another place, with what is mounted below it."""
    mount(source, target, "", MS_BIND | MS_REC)
    attributes = _ATTR_NOSUID | (_ATTR_RDONLY if read_only else 0)
    wanted = attributes.to_bytes(8, "little") + bytes(24)
    syscall("mount_setattr", -100, os.fsencode(target), _AT_RECURSIVE, wanted, len(wanted))


def pivot(root: str) -> None:
    """Make a mounted folder the root of this mount namespace, and let go of the old one (man 2 pivot_root)."""
    os.chdir(root)
    syscall("pivot_root", b".", b".")
    syscall("umount2", b".", MNT_DETACH)
    os.chdir("/")


def prctl(option: int, value: int = 0) -> None:
    syscall("prctl", option, value, 0, 0, 0)


def die_with(parent: int) -> None:
    """End this process when its parent ends; at once if that has happened."""
    prctl(PR_SET_PDEATHSIG, 9)
    if os.getppid() != parent:
        os._exit(127)


def drop_capabilities() -> None:
    """No capability now, none after any exec: not by being uid 0, not by a file."""
    for capability in range(64):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:  # EINVAL: past the last there is; EPERM: there was none to drop
            break
    header, none = (0x20080522).to_bytes(4, "little") + bytes(4), bytes(24)
    if _libc.capset(header, none) != 0:
        raise OSError(ctypes.get_errno(), "capset")
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def become_itself_in_a_user_namespace(name: int = 0) -> None:
    """A fresh user namespace with this user and group alone, under their own numbers, or root under `name`. For root as root,
    with all there are, so that overlays can keep whose a file is: the namespace gives no power over them to who has no
    capability in it."""
    user, group = os.geteuid(), os.getegid()
    name = name if user == 0 else 0
    everyone = _Mapper() if user == 0 and not name else None
    unshare(CLONE_NEWUSER)
    if everyone is None or not everyone.write():
        _write("setgroups", "deny")
        _write("uid_map", f"{name or user} {user} 1")
        _write("gid_map", f"{name or group} {group} 1")


class _Mapper:
    """A process that stays in the namespace we leave, whose root alone may say who all is known in the new one."""

    def __init__(self) -> None:
        maps = {}
        for name in ("uid_map", "gid_map"):
            with open(f"/proc/self/{name}") as file:
                ranges = [line.split() for line in file]
            maps[name] = "".join(f"{first} {first} {count}\n" for first, _, count in ranges)
        parent = os.getpid()
        start, self._go = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            status = 1
            try:
                os.close(self._go)
                if os.read(start, 1):
                    for name, text in maps.items():
                        with open(f"/proc/{parent}/{name}", "w") as file:
                            file.write(text)
                    status = 0
            finally:
                os._exit(status)
        os.close(start)

    def write(self) -> bool:
        """Whether it could."""
        os.write(self._go, b".")
        os.close(self._go)
        return os.waitpid(self._child, 0)[1] == 0


def _write(name: str, text: str) -> None:
    with open(f"/proc/self/{name}", "w") as file:
        file.write(text)


def descriptor_of(pid: int, number: int) -> int:
    """A copy of another process's descriptor (pidfd_getfd)."""
    process = syscall("pidfd_open", pid, 0)
    try:
        return syscall("pidfd_getfd", process, number, 0)
    finally:
        os.close(process)
