"""Who is at the other end of the socket, as the kernel says: user, process, its ancestors, the host process.

Nothing is taken from what the other side says of itself. A process of the same user can still leave its
ancestry by forking twice: the socket proves the user, and the ancestry only ever takes rights away.
"""

import os
import select
import socket
import struct
import sys
from collections.abc import Callable, Sequence

import msgspec

SO_PEERPIDFD = 77  # Linux 6.5; not in the socket module before Python 3.14
_DEPTH = 64

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ash", "ksh", "busybox", "fish"})
_WRAPPERS = frozenset(
    {"npx", "npm", "pnpm", "yarn", "bunx", "uvx", "uv", "pipx", "env", "timeout", "nice", "nohup", "setsid", "stdbuf",
     "ionice", "time", "xargs", "sudo", "tini", "dumb-init"}
)  # fmt: skip
_JS_LAUNCHERS = ("npx-cli.js", "npm-cli.js", "npx", "npm", "pnpm.cjs", "yarn.js")
# Everything a person runs descends from these; taking one for a host would take every terminal for a client.
_SESSION = frozenset({"systemd", "init", "launchd", "sshd", "sshd-session", "login", "tmux", "screen", "containerd-shim"})


class Process(msgspec.Struct, frozen=True):
    """A process that cannot be mistaken for a later one of the same number: `start` is its start in clock
    ticks."""

    pid: int
    start: int
    parent: int
    name: str
    argv: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[int, int]:
        """What identifies it on this machine until the next boot."""
        return self.pid, self.start


class Credentials(msgspec.Struct, frozen=True):
    """What the kernel says of a connected process; `pid` is 0 where it does not say."""

    pid: int
    uid: int
    chain: tuple[Process, ...]
    """The process, its parent, and so on; empty where it cannot be known, and when it ended meanwhile."""


def credentials(sock: socket.socket) -> Credentials:
    """Of the process that connected."""
    if hasattr(socket, "SO_PEERCRED"):
        pid, uid, _ = struct.unpack("iII", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return Credentials(pid, uid, _pinned_chain(sock, pid))
    return Credentials(_bsd_pid(sock), _bsd_uid(sock), ())


def _pinned_chain(sock: socket.socket, pid: int) -> tuple[Process, ...]:
    """The chain of ancestors, dropped if the process ended while it was read: its number may be another's by
    now."""
    try:
        pidfd = struct.unpack("i", sock.getsockopt(socket.SOL_SOCKET, SO_PEERPIDFD, 4))[0]
    except OSError:
        return ancestry(pid)
    try:
        chain = ancestry(pid)
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        return () if poll.poll(0) else chain
    finally:
        os.close(pidfd)


def process(pid: int) -> Process | None:
    """What runs under this number now; None if nothing does."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            head, _, tail = f.read().rpartition(b")")  # the name may hold anything, parentheses too
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            argv = f.read(1 << 16).split(b"\0")[:-1]
    except OSError:
        return None
    fields = tail.split()
    return Process(
        pid=pid,
        start=int(fields[19]),
        parent=int(fields[1]),
        name=os.fsdecode(head.partition(b"(")[2]),
        argv=tuple(os.fsdecode(word) for word in argv[:64]),
    )


def ancestry(pid: int) -> tuple[Process, ...]:
    """The process and its ancestors, nearest first."""
    chain: list[Process] = []
    while pid > 0 and len(chain) < _DEPTH:
        one = process(pid)
        if one is None or (chain and one.start > chain[-1].start):
            break  # a parent is older than its child: this number was given anew
        chain.append(one)
        pid = one.parent
    return tuple(chain)


def host_process(chain: Sequence[Process]) -> Process | None:
    """The nearest ancestor that is no wrapper: the program that started the shim for its own ends.

    `chain[0]` is the shim. None where the ancestors lead to the session without one.
    """
    found = host_chain(chain)
    return found[0] if found else None


def host_chain(chain: Sequence[Process]) -> tuple[Process, ...]:
    """The host, then its ancestors; empty where there is no host."""
    for at, one in enumerate(chain[1:], 1):
        if is_wrapper(one):
            continue
        return () if in_session(one) else tuple(chain[at:])
    return ()


def nesting(chain: Sequence[Process], known: Callable[[Process], bool]) -> tuple[Process, ...]:
    """Whose conversation that of a host is: itself, or where ancestors of its are `known` as hosts the outermost of them, and
    the one below that. `chain` is the host, then its ancestors. A shell that a person types into is nobody's host.
    """
    outward = [chain[0], *(one for one in chain[1:] if known(one) and not is_shell(one))]
    return (outward[-1], outward[-2]) if len(outward) > 1 else (outward[0],)


def in_session(one: Process) -> bool:
    """Whether it is one of those that everything a person runs descends from."""
    return one.pid == 1 or _base(one.name) in _SESSION


def is_wrapper(one: Process) -> bool:
    """Whether it only starts something else: a shell given a command (a person's own shell is none), npx,
    uvx, env."""
    command = [word for word in one.argv if word]
    base = _base(command[0]) if command else one.name
    if base.lstrip("-") in _SHELLS:
        return any(not word.startswith("-") or word == "-c" or _short_c(word) for word in command[1:])
    if base in _WRAPPERS:
        return True
    words = [_base(word) for word in command[1:4]]
    if base in ("node", "bun", "deno"):
        return any(word in _JS_LAUNCHERS for word in words[:1])
    if base.startswith("python"):
        # our own shim, wherever a client put it between
        return any(word.endswith("/earnest/shim/boot.py") for word in command[1:5])
    return False


def is_shell(one: Process) -> bool:
    """Whether it is a shell that a person types into: one that was given no command."""
    command = [word for word in one.argv if word]
    base = _base(command[0]) if command else one.name
    return base.lstrip("-") in _SHELLS and not is_wrapper(one)


def _short_c(word: str) -> bool:
    return word.startswith("-") and not word.startswith("--") and word.endswith("c")


def _base(word: str) -> str:
    return word.rsplit("/", 1)[-1].partition(" ")[0].rstrip(":")


def _bsd_uid(sock: socket.socket) -> int:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = ctypes.c_uint32(), ctypes.c_uint32()
    if libc.getpeereid(sock.fileno(), ctypes.byref(uid), ctypes.byref(gid)) != 0:
        return -1
    return uid.value


def _bsd_pid(sock: socket.socket) -> int:
    if sys.platform != "darwin":
        return 0
    try:  # SOL_LOCAL, LOCAL_PEERPID
        return int.from_bytes(sock.getsockopt(0, 2, 4), "little")
    except OSError:
        return 0
