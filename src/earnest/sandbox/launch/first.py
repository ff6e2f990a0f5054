"""The first process of a box's pid namespace: makes the root, starts the command, reaps, listens, watches the limits.

When it ends the kernel ends all that runs in the namespace, so nothing outlives it. It keeps its capabilities (over this
user namespace alone), so no process of the box may look into it or signal it.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import struct
import sys
import time
from typing import Any, Final

from earnest.sandbox.launch import filter as rules
from earnest.sandbox.launch import kernel, limits
from earnest.sandbox.launch.keeper import FORWARDED
from earnest.sandbox.launch.layers import DEVICES, SECRETS, SYSTEM, Layers, within
from earnest.sandbox.launch.listener import Listener, connections, forks, locks, starts
from earnest.sandbox.launch.report import Report

_READ_ONLY_PROC: Final = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "kcore", "keys", "timer_list")


def run(plan: dict[str, Any], report: Report, status: int, control: socket.socket, ready: int) -> None:
    """All of it; ends this process. `status`: where to write how it went, `ready`: to wait for before the command starts."""
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    os.setsid()
    layers, on_disk = _make_root(plan, control)
    if ready >= 0:
        os.read(ready, 1)
    own, other = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(own)
        _command(plan, other)
    os.close(other)
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):  # the command's alone, so that its closing them is seen
        os.dup2(null, number)
    _First(plan, report, status, child, own, layers, on_disk).serve()


def _make_root(plan: dict[str, Any], control: socket.socket) -> tuple[Layers, int]:
    """Make the root and enter it; the layers, and a descriptor of their folder where it is on disk, else -1."""
    kernel.unshare(kernel.CLONE_NEWNS)
    kernel.mount("", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    folder = f"{plan['state']}/layers"
    kernel.mount("box", folder, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, f"mode=700,size={plan['limits']['disk']}")
    on_disk = not plan["in_memory"] or not _has_attributes(folder)
    if on_disk:
        kernel.syscall("umount2", os.fsencode(folder), 0)
        folder = f"{folder}/{time.monotonic_ns()}"  # it may have been started before
        os.mkdir(folder)
    for name in ("made", "up", "work", "root"):
        os.mkdir(f"{folder}/{name}")
    layers = Layers(f"{folder}/made")
    _furnish(layers, plan)
    root = f"{folder}/root"
    layers.mount(root, f"{folder}/up", f"{folder}/work")
    calm = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
    try:
        kernel.mount("proc", f"{root}/proc", "proc", calm, "hidepid=2")  # the box sees its own processes, not us
    except OSError:  # for one mount alone since Linux 5.8
        kernel.mount("proc", f"{root}/proc", "proc", calm)
    for name in _READ_ONLY_PROC:
        # A uid that is root's own may write there without any capability.
        if os.path.lexists(f"{root}/proc/{name}"):
            kernel.bind(f"{root}/proc/{name}", f"{root}/proc/{name}", read_only=True)
    for name in DEVICES:
        with contextlib.suppress(OSError):  # a terminal is not there for everyone
            kernel.mount(f"/dev/{name}", f"{root}/dev/{name}", "", kernel.MS_BIND)
    with contextlib.suppress(OSError):  # without, there are no pseudo-terminals
        options = "newinstance,ptmxmode=0666,mode=0620"
        kernel.mount("devpts", f"{root}/dev/pts", "devpts", kernel.MS_NOSUID | kernel.MS_NOEXEC, options)
    held = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    told = [[layer.target, layer.access, layer.number, layer.lowers] for layer in layers.all]
    message = json.dumps({"layers": told}).encode()
    socket.send_fds(control, [struct.pack("=I", len(message)) + message], [held])
    kernel.pivot(root)
    if not on_disk:
        os.close(held)
    return layers, held if on_disk else -1


def _has_attributes(folder: str) -> bool:
    """Whether an overlay may lie over memory: since Linux 6.6."""
    try:
        os.setxattr(folder, "user.overlay.try", b"y")
    except OSError:
        return False
    return True


def _furnish(layers: Layers, plan: dict[str, Any]) -> None:
    """Say what is in the box, in the order in which one thing lies over another."""
    watched = plan["watch"]
    for path, mode in (
        ("/proc", 0o555), ("/sys", 0o555), ("/dev", 0o755), ("/dev/pts", 0o755), ("/dev/shm", 0o1777), ("/tmp", 0o1777),
        ("/run", 0o755), ("/run/lock", 0o755), ("/home", 0o755), ("/root", 0o700), ("/mnt", 0o755), ("/srv", 0o755),
    ):  # fmt: skip
        layers.folder(path, mode)
    for name in DEVICES:
        layers.file(f"/dev/{name}", b"", 0o666)
    for name, text in (
        ("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2"), ("ptmx", "pts/ptmx")
    ):  # fmt: skip
        layers.link(f"/dev/{name}", text)
    for name in SYSTEM:
        if os.path.islink(f"/{name}"):
            layers.link(f"/{name}", os.readlink(f"/{name}"))
        elif os.path.isdir(f"/{name}"):
            layers.system(f"/{name}")
    for path in SECRETS:
        layers.hide(path)
    for path, content in plan["files"].items():
        layers.file(path, content.encode())
    layers.folder(plan["account"], 0o700)
    for path in plan["runtimes"]:
        layers.grant(path, path, "copy" if watched and os.path.isdir(path) else "read")
    layers.folder(plan["home"], 0o700)
    for folder in plan["folders"]:
        layers.grant(folder["target"], folder["source"], folder["access"])
    for path, text in plan["links"]:
        layers.link(path, text)
    layers.folder(plan["cwd"], 0o755)
    if os.geteuid() != 0:
        for path in ("/", "/dev", "/home", "/run", "/mnt", "/srv"):
            os.chmod(layers.made_path(path), 0o555)


def _command(plan: dict[str, Any], other: int) -> None:
    """Become the command, under the rules. `other`: where the listener's number is told."""
    try:
        os.setsid()
        os.setpriority(os.PRIO_PROCESS, 0, 0)
        for forwarded in (*FORWARDED, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(forwarded, signal.SIG_DFL)
        os.chdir(plan["cwd"])
        bounds = plan["limits"]
        limits.hold(bounds["memory"], bounds["processes"], bounds["disk"], bounds["cpu_s"])
        program = find(plan["argv"][0], plan["env"])
        kernel.drop_capabilities()
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # so that the listener may read what is asked
        listened = _listened(plan)
        held = rules.base(listened) | (rules.counted() if plan["root"] else {})
        held |= rules.locks() if _read_only(plan) else {}
        if any(folder["access"] == "write" for folder in plan["folders"]):
            held |= rules.no_setuid(listened)
        number = rules.install(held, listened)
        os.write(other, struct.pack("=i", number))
        os.execve(program, plan["argv"], plan["env"])
    except OSError as error:
        print(f"earnest: {plan['argv'][0]}: {error}", file=sys.stderr)
    os._exit(127)


def _listened(plan: dict[str, Any]) -> bool:
    return bool(plan["watch"] or plan["root"] or any(folder["access"] in ("read", "write") for folder in plan["folders"]))


def _read_only(plan: dict[str, Any]) -> list[str]:
    return [folder["target"] for folder in plan["folders"] if folder["access"] == "read"]


def find(command: str, env: dict[str, str]) -> str:
    """The file that a command means, by PATH."""
    if "/" in command:
        return command
    for folder in env.get("PATH", os.defpath).split(":"):
        path = os.path.join(folder or ".", command)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise FileNotFoundError(2, "there is no such command in the box's PATH")


class _First:
    """The loop of the first process."""

    def __init__(
        self, plan: dict[str, Any], report: Report, status: int, child: int, own: int, layers: Layers, on_disk: int
    ) -> None:
        self._plan = plan
        self._report = report
        self._status = status
        self._child = child
        self._on_disk = on_disk
        self._said = -1
        self._number = own
        self._listener: Listener | None = None
        self._granted = [layer.target for layer in layers.all if not layer.is_own]
        self._copied = [layer.target for layer in layers.all if layer.is_own]

    def serve(self) -> None:
        bounds = self._plan["limits"]
        woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        for number in FORWARDED:
            signal.signal(number, self._forward)
        poll = select.poll()
        poll.register(woken, select.POLLIN)
        poll.register(self._number, select.POLLIN)
        next_look = time.monotonic() + limits.PERIOD_S
        while True:
            for descriptor, _ in poll.poll(max(0.0, next_look - time.monotonic()) * 1000):
                if descriptor == woken:
                    os.read(woken, 512)
                    self._reap()
                elif descriptor == self._number:
                    poll.unregister(descriptor)
                    self._listen(poll)
                elif self._listener is not None and not self._listener.serve():
                    poll.unregister(descriptor)
            if time.monotonic() >= next_look:
                passed = limits.passed(self._pids(), bounds["memory"], bounds["processes"], bounds["cpu_s"])
                if self._on_disk >= 0 and limits.size_below(f"/proc/self/fd/{self._on_disk}/up") > bounds["disk"]:
                    passed = passed or "disk"
                if passed:
                    self._end(-1, passed)
                next_look = time.monotonic() + limits.PERIOD_S

    def _pids(self) -> list[int]:
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and name != "1"]

    def _listen(self, poll: select.poll) -> None:
        told = os.read(self._number, 4)
        if len(told) < 4 or (number := struct.unpack("=i", told)[0]) < 0:
            return
        watched = self._plan["watch"]
        handlers = starts(self._report) if watched else {name: (lambda call: None) for name in ("execve", "execveat")}
        own = self._is_own if self._granted else None
        handlers |= connections(self._report, outside=self._plan["reach"] != "none", own=own)
        handlers |= forks(self._report, self._plan["limits"]["processes"], lambda: len(self._pids()))
        handlers |= locks(self._report, _read_only(self._plan))
        self._listener = Listener(kernel.descriptor_of(self._child, number), self._report, handlers)
        self._listener.aside(handlers["connect"])
        poll.register(self._listener.descriptor, select.POLLIN)

    def _is_own(self, path: str) -> bool:
        deepest = max((target for target in (*self._granted, *self._copied) if within(path, target)), key=len)
        return deepest not in self._granted

    def _forward(self, number: int, frame: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._child, number)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self._child:
                    self._end(status, "")

    def _end(self, status: int, limit: str) -> None:
        if limit:
            self._report.say("refused", limit, detail="limit of the box")
        os.write(self._status, json.dumps({"status": status, "limit": limit}).encode())
        os._exit(0)
