"""The seccomp program of a box, built by hand (man 2 seccomp; `linux/filter.h`).

A rule says what happens to one system call, at best by its arguments: `REFUSE` fails it, `TELL` hands it to the box's
listener (`listener.py`), which fails it, lets it go on, or does it itself. What no rule names is allowed: the namespaces or
Landlock hold what may be reached, this program what a process may do to the kernel and to the walls themselves.
"""

from __future__ import annotations

import ctypes
import errno
import struct
from typing import Final, NamedTuple

from earnest.sandbox.launch import kernel

ALLOW, TELL, REFUSE, ABSENT = 0x7FFF0000, 0x7FC00000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS

MOUNTS: Final = (
    "mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen", "fsconfig", "fsmount", "fspick",
    "mount_setattr", "quotactl", "quotactl_fd", "fanotify_init", "open_by_handle_at", "name_to_handle_at",
)  # fmt: skip
KERNEL: Final = (
    "swapon", "swapoff", "reboot", "sethostname", "setdomainname", "iopl", "ioperm", "init_module", "finit_module",
    "delete_module", "kexec_load", "kexec_file_load", "bpf", "perf_event_open", "userfaultfd", "add_key", "request_key",
    "keyctl", "acct", "settimeofday", "clock_settime", "adjtimex", "clock_adjtime", "syslog", "lookup_dcookie", "nfsservctl",
)  # fmt: skip
OTHERS: Final = ("ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd", "unshare", "setns")
"""What reaches into another process, or into other namespaces."""
RINGS: Final = ("io_uring_setup", "io_uring_enter", "io_uring_register")
"""Another way to make nearly every call, past this program: refused as if the kernel had none, which runtimes expect."""
NEW_NAMESPACE: Final = (
    kernel.CLONE_NEWNS | kernel.CLONE_NEWUTS | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUSER
    | kernel.CLONE_NEWPID | kernel.CLONE_NEWNET | kernel.CLONE_NEWCGROUP
)  # fmt: skip
FAMILIES: Final = (1, 2, 10, 16)
"""UNIX, IPv4, IPv6 and netlink. Not vsock, which no network namespace holds, nor the families that kernels load on demand."""
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C

_LOAD, _EQUAL, _AND_SET, _AT_LEAST, _RETURN, _AND = 0x20, 0x15, 0x45, 0x35, 0x06, 0x54
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16


class Step(NamedTuple):
    """One instruction: code, jumps if true and if false, operand."""

    code: int
    true: int
    false: int
    operand: int


Block = list[Step]

DOMAIN: Final = Step(_LOAD, 0, 0, _ARGUMENTS)
"""Loads a first argument, which is a domain for `socket`, and flags for `clone`."""
EQUAL, RETURN = _EQUAL, _RETURN


def always(action: int) -> Block:
    return [Step(_RETURN, 0, 0, action)]


def when_equal(argument: int, values: tuple[int, ...], action: int, otherwise: int = ALLOW, mask: int = 0xFFFFFFFF) -> Block:
    """By the lower half of an argument, under a mask."""
    block = [Step(_LOAD, 0, 0, _ARGUMENTS + 8 * argument)]
    if mask != 0xFFFFFFFF:
        block.append(Step(_AND, 0, 0, mask))
    for place, value in enumerate(values):
        block.append(Step(_EQUAL, len(values) - place, 0, value))
    return [*block, Step(_RETURN, 0, 0, otherwise), Step(_RETURN, 0, 0, action)]


def when_any(argument: int, bits: int, action: int, otherwise: int = ALLOW) -> Block:
    """By any of these bits in the lower half of an argument."""
    return [
        Step(_LOAD, 0, 0, _ARGUMENTS + 8 * argument),
        Step(_AND_SET, 1, 0, bits),
        Step(_RETURN, 0, 0, otherwise),
        Step(_RETURN, 0, 0, action),
    ]


def base(listened: bool) -> dict[str, Block]:
    """What every box refuses. `listened`: a listener records each refusal, and is told of programs and connections."""
    refused = TELL if listened else REFUSE
    rules = {name: always(refused) for name in (*MOUNTS, *KERNEL, *OTHERS)}
    rules |= {name: always(ABSENT if not listened else TELL) for name in RINGS}
    rules["clone3"] = always(ABSENT)  # its flags lie in memory; libraries then use clone
    rules["clone"] = [*_refusing(NEW_NAMESPACE, refused), *always(ALLOW)]
    rules["ioctl"] = when_equal(1, (_TIOCSTI, _TIOCLINUX), refused)
    rules["socket"] = when_equal(0, FAMILIES, ALLOW, refused)
    rules["fcntl"] = when_equal(1, LEASES, refused)
    if listened:
        rules |= {name: always(TELL) for name in ("execve", "execveat", "connect")}
    return rules


def counted() -> dict[str, Block]:
    """Rules for a user whose processes the kernel does not bound (root): the listener is asked for each new one."""
    thread = 0x00010000
    asked = when_any(0, thread, ALLOW, TELL)
    return {"fork": always(TELL), "vfork": always(TELL), "clone": [*_refusing(NEW_NAMESPACE, TELL), *asked]}


LOCKS: Final = (6, 7, 37, 38)
"""Commands of fcntl that take a lock."""
LEASES: Final = (1024, 1026)
"""Commands of fcntl that make others wait for who only reads a file, or tell of what they do in a folder (F_SETLEASE,
F_NOTIFY)."""
OWNERS: Final = (8, 10, 15)
"""Commands of fcntl that say whom the kernel is to signal, and how."""


def locks() -> dict[str, Block]:
    """Rules for a box with folders of the machine that it may only read: a lock there would make others wait."""
    return {"flock": always(TELL), "fcntl": when_equal(1, (*LOCKS, *LEASES), TELL)}


def no_setuid(listened: bool) -> dict[str, Block]:
    """Rules for a box that writes to folders of the machine: no file there runs as whom it belongs to (S_ISUID, S_ISGID)."""
    refused = TELL if listened else REFUSE
    modes = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1, "mknod": 1, "mknodat": 2}
    found = {name: when_any(place, SET_ID, refused) for name, place in modes.items()}
    found |= {name: _made_with(flags, SET_ID, refused) for name, flags in (("open", 1), ("openat", 2))}
    return found | {"openat2": always(ABSENT)}  # its mode lies in memory; libraries then use openat


def no_datagrams(listened: bool) -> dict[str, Block]:
    """Rules for a box that shows folders of the machine: a UNIX socket there could be sent to without a connection, which the
    listener is not asked about."""
    refused = TELL if listened else REFUSE
    unix = when_equal(1, (1, 5), ALLOW, refused, mask=0xF)
    return {"socket": [DOMAIN, Step(_EQUAL, 0, len(unix), 1), *unix, *when_equal(0, FAMILIES, ALLOW, refused)]}


SET_ID: Final = 0o6000


def _made_with(flags: int, bits: int, action: int) -> Block:
    """By these bits of the mode that a file is made with, which stands behind the flags of opening it."""
    makes = 0o100 | 0o20000000
    return [
        Step(_LOAD, 0, 0, _ARGUMENTS + 8 * flags),
        Step(_AND_SET, 1, 0, makes),
        Step(_RETURN, 0, 0, ALLOW),
        *when_any(flags + 1, bits, action),
    ]


def _refusing(bits: int, action: int) -> Block:
    """By any of these bits in a first argument; goes on behind itself where there is none."""
    return [DOMAIN, Step(_AND_SET, 0, 1, bits), Step(_RETURN, 0, 0, action)]


def program(rules: dict[str, Block]) -> bytes:
    """The instructions for these rules, by name of system call; names this machine does not have are left out."""
    steps = [
        Step(_LOAD, 0, 0, _ARCH),
        Step(_EQUAL, 1, 0, kernel.AUDIT_ARCH),
        Step(_RETURN, 0, 0, ABSENT),  # a 32-bit call: other numbers, so none of the rules would hold
        Step(_LOAD, 0, 0, _NUMBER),
        Step(_AT_LEAST, 0, 1, 0x40000000),  # x32: as before
        Step(_RETURN, 0, 0, ABSENT),
    ]
    for name, block in rules.items():
        if name in kernel.NUMBERS:
            steps += [Step(_EQUAL, 0, len(block), kernel.NUMBERS[name]), *block]
    steps.append(Step(_RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def install(rules: dict[str, Block], listened: bool) -> int:
    """Put this process and all it will start under the rules; the descriptor of their listener, or -1. Needs NO_NEW_PRIVS."""
    code = program(rules)
    held = ctypes.create_string_buffer(code, len(code))
    head = struct.pack("=HxxxxxxQ", len(code) // 8, ctypes.addressof(held))
    if not listened:
        return -1 + kernel.syscall("seccomp", 1, 0, head)
    new_listener, wait_killable = 1 << 3, 1 << 5
    try:
        return kernel.syscall("seccomp", 1, new_listener | wait_killable, head)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return kernel.syscall("seccomp", 1, new_listener, head)  # before Linux 5.19
