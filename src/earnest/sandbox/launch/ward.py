"""What the listener of a box without namespaces does itself: whatever Landlock does not hold.

Signals: by process numbers, which are in registers. Modes and times of files: on what was found to lie in the box's folders.
Connections: in `sockets.py`. Where Landlock holds a call (opening, making, removing), it is let go on, and reported if it will
fail.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Callable
from typing import Final

from earnest.sandbox.launch import changing, family, kernel
from earnest.sandbox.launch import filter as rules
from earnest.sandbox.launch.layers import DEVICES
from earnest.sandbox.launch.listener import Answer, Call, Handler, signed
from earnest.sandbox.launch.report import Report
from earnest.sandbox.launch.sockets import Folders

_AT_CWD: Final = -100
_TERMINALS: Final = ("/dev/pts/", "/dev/ptmx", *(f"/dev/{name}" for name in DEVICES))
_FASTOPEN: Final = 0x20000000
_MODES: Final[dict[str, tuple[int, int, int]]] = {
    # Path, folder, mode.
    "chmod": (0, -1, 1), "fchmodat": (1, 0, 2), "fchmodat2": (1, 0, 2),
}  # fmt: skip
_NEVER: Final = (
    "shmget", "semget", "msgget", "mq_open",
    "setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr",
    "chown", "lchown", "fchown", "fchownat", "utime", "utimes", "futimesat",
)  # fmt: skip


def wanted(watched: bool, landlock: int) -> dict[str, rules.Block]:
    """Rules for a box without namespaces, besides those of every box."""
    tell, allow = rules.TELL, rules.ALLOW
    found = rules.base(listened=True)
    found |= {name: rules.always(tell) for name in (*_NEVER, *_MODES, "fchmod", "utimensat", "connect", "bind", "listen")}
    found |= {name: rules.always(tell) for name in ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")}
    if landlock < 6:
        found["pidfd_send_signal"] = rules.always(tell)
    found["prlimit64"] = rules.when_equal(0, (0,), allow, tell)
    # What may be sent to an address without a connection: only netlink is left of that. But for a connection in disguise.
    found["sendto"] = rules.when_any(3, _FASTOPEN, tell)
    found["sendmsg"] = rules.when_any(2, _FASTOPEN, tell)
    found["sendmmsg"] = rules.when_any(3, _FASTOPEN, tell)
    found["socket"] = _sockets(tell)
    found["socketpair"] = rules.when_equal(1, (1, 5), allow, tell, mask=0xF)
    if landlock < 3:
        found["truncate"] = rules.always(tell)
    found |= {name: block for name, block in rules.no_setuid(listened=True).items() if name not in found}
    if watched:
        found |= changing.told(tell)
    return found


def _sockets(tell: int) -> rules.Block:
    """Streams of the internet and of UNIX, netlink for routes; no datagrams: they go anywhere without a connection."""
    stream = rules.when_equal(1, (1,), rules.ALLOW, tell, mask=0xF)
    protocol = rules.when_equal(2, (0, 6), 0, tell)[:-1]
    internet = [*protocol, *stream]
    netlink = rules.when_equal(2, (0,), rules.ALLOW, tell)
    unix = rules.when_equal(1, (1, 5), rules.ALLOW, tell, mask=0xF)
    step = rules.Step
    domain, equal, give = rules.DOMAIN, rules.EQUAL, rules.RETURN
    return [
        domain,
        step(equal, 0, len(netlink), 16), *netlink,
        domain, step(equal, 0, len(unix), 1), *unix,
        domain, step(equal, 1, 0, 2), step(equal, 0, len(internet), 10), *internet,
        step(give, 0, 0, tell),
    ]  # fmt: skip


class Ward:
    """Handlers of one box for files and processes. `root` is the process all of it descends from, `landlock` the version of it
    that there is."""

    def __init__(self, report: Report, folders: Folders, root: int, landlock: int) -> None:
        self._report = report
        self._folders = folders
        self._root = root
        self._landlock = landlock

    def handlers(self, lock: Handler) -> dict[str, Handler]:
        """By name of system call. `lock` answers the commands of fcntl that take one."""

        def fcntl(call: Call) -> Answer:
            if call.args[1] & 0xFFFFFFFF in rules.OWNERS:  # whom the kernel signals is who may be outside
                return self._refused(call.name, call, errno.EPERM)
            return lock(call)

        found: dict[str, Handler] = {name: self._changes for name in changing.PATHS}
        if self._landlock < 3:
            found.pop("truncate")
        found |= {name: self._mode for name in _MODES}
        found |= {"fchmod": self._mode_of_open, "utimensat": self._times}
        found |= {"fcntl": fcntl, "prlimit64": self._signal}
        found |= {name: self._signal for name in ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")}
        found |= {name: (lambda call: errno.EOPNOTSUPP) for name in _NEVER if "xattr" in name}
        found |= {name: self._chown for name in ("chown", "lchown", "fchown", "fchownat")}
        return found

    # files

    def _refused(self, subject: str, call: Call, answer: int = errno.EACCES) -> int:
        self._report.say("refused", subject, detail=f"{call.name} by process {call.thread}")
        return answer

    def _changes(self, call: Call) -> Answer:
        path = changing.means(call)
        if changing.sets_id(call):
            return self._refused(path, call, errno.EPERM)
        if path and not self._folders.is_writable(os.path.dirname(path)) and not path.startswith(_TERMINALS):
            changing.refused(self._report, path, call)
        return None  # Landlock holds it

    def _held(self, call: Call, place: int, folder: int, follow: bool = True) -> int:
        """A descriptor of a file in the box's folders that a path names; raises PermissionError for any other."""
        path = call.path(call.args[place], signed(call.args[folder]) if folder >= 0 else _AT_CWD)
        held = os.open(path, os.O_PATH | (0 if follow else os.O_NOFOLLOW))
        if not self._folders.is_writable(os.readlink(f"/proc/self/fd/{held}")):
            os.close(held)
            self._refused(path, call)
            raise PermissionError(errno.EPERM, path)
        return held

    def _mode(self, call: Call) -> Answer:
        place, folder, mode = _MODES[call.name]
        if call.args[mode] & rules.SET_ID:
            return self._refused(call.name, call, errno.EPERM)
        return self._do(lambda: self._held(call, place, folder), lambda held: os.chmod(held, call.args[mode] & 0o7777))

    def _mode_of_open(self, call: Call) -> Answer:
        if call.args[1] & rules.SET_ID:
            return self._refused(call.name, call, errno.EPERM)
        return self._do(lambda: self._own_descriptor(call), lambda held: os.chmod(held, call.args[1] & 0o7777))

    def _own_descriptor(self, call: Call) -> int:
        copy = call.descriptor(call.args[0])
        path = os.readlink(f"/proc/self/fd/{copy}")
        if not self._folders.is_writable(path.removesuffix(" (deleted)")):
            os.close(copy)
            self._refused(path, call)
            raise PermissionError(errno.EPERM, path)
        return copy

    def _times(self, call: Call) -> Answer:
        times: list[int] | None = None
        if call.args[2]:
            seconds, nanos, seconds2, nanos2 = struct.unpack("=4q", call.memory(call.args[2], 32))
            now, omit = 0x3FFFFFFF, 0x3FFFFFFE
            if nanos in (now, omit) or nanos2 in (now, omit):
                return self._do(lambda: self._timed(call), lambda held: _some_times(held, seconds, nanos, seconds2, nanos2))
            times = [seconds * 10**9 + nanos, seconds2 * 10**9 + nanos2]
        return self._do(
            lambda: self._timed(call), lambda held: os.utime(held, ns=(times[0], times[1])) if times else os.utime(held)
        )

    def _timed(self, call: Call) -> int:
        no_follow = 0x100
        return self._held(call, 1, 0, follow=not call.args[3] & no_follow) if call.args[1] else self._own_descriptor(call)

    def _do(self, find: Callable[[], int], act: Callable[[str], None]) -> Answer:
        try:
            held = find()
        except OSError as error:
            return error.errno
        try:
            act(f"/proc/self/fd/{held}")
        except OSError as error:
            return error.errno
        finally:
            os.close(held)
        return 0

    def _chown(self, call: Call) -> Answer:
        shift = {"fchownat": 2}.get(call.name, 1)
        keep = 0xFFFFFFFF
        user, group = (value & keep for value in call.args[shift : shift + 2])
        # To give what is ours to ourselves is a habit of archivers; anything else is refused.
        if user in (os.geteuid(), keep) and group in (os.getegid(), keep):
            return 0
        return self._refused(call.name, call, errno.EPERM)

    # processes

    def _signal(self, call: Call) -> Answer:
        target = signed(call.args[0])
        members = family.below(self._root)
        if target == 0:
            return None
        if target > 0:
            inside = target in members or _leader(target) in members
        else:
            inside = target != -1 and -target in members.values()
        if inside:
            return None
        self._report.say("refused", call.name, detail=f"process {target}, outside the box")
        return errno.EPERM


def _some_times(path: str, seconds: int, nanos: int, seconds2: int, nanos2: int) -> None:
    times = struct.pack("=4q", seconds, nanos, seconds2, nanos2)
    kernel.syscall("utimensat", _AT_CWD, os.fsencode(path), times, 0)


def _leader(thread: int) -> int:
    try:
        with open(f"/proc/{thread}/status") as file:
            return next(int(line[5:]) for line in file if line.startswith("Tgid:"))
    except (OSError, StopIteration):
        return 0
