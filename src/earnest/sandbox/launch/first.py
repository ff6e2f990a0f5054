"""The first process of a box's pid namespace: makes the root, starts the command, reaps, listens, watches the limits.

When it ends the kernel ends all that runs in the namespace, so nothing outlives it. It keeps its capabilities (over this
user namespace alone), so no process of the box may look into it or signal it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import time
from typing import Any, Final

from earnest.sandbox.launch import above, changing, kernel, landlock, limits
from earnest.sandbox.launch import filter as rules
from earnest.sandbox.launch.layers import DEVICES, SECRETS, SYSTEM, Layers, within
from earnest.sandbox.launch.listener import Handler, connections, forks, locks, starts
from earnest.sandbox.launch.report import Report

_READ_ONLY_PROC: Final = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "kcore", "keys", "timer_list")
_SCRATCH: Final = ("/tmp", "/var/tmp", "/run", "/dev", "/proc")
"""Where a box may write whatever its plan says: all of it is its own."""


def run(plan: dict[str, Any], report: Report, status: int, control: socket.socket, ready: int) -> None:
    """All of it; ends this process. `status`: where to write how it went, `ready`: to wait for before the command starts."""
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    os.setsid()
    layers, on_disk = _make_root(plan, control)
    if ready >= 0:
        os.read(ready, 1)
    command = above.start(plan, lambda: _ruled(plan))
    _First(plan, report, status, command, layers, on_disk).serve()


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
    plan["asked"] = plan["root"] and not _bounded(
        f"{root}/proc/sys/kernel/pid_max", limits.threads(plan["limits"]["processes"])
    )
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


def _bounded(path: str, most: int) -> bool:
    """Bound the numbers that processes and threads have in this namespace. Before Linux 6.14 they were the machine's."""
    release = os.uname().release.split("-")[0].split(".")
    if tuple(int(part) for part in release[:2] if part.isdigit()) < (6, 14):
        return False
    try:
        with open(path, "w") as file:
            file.write(str(max(most, 1) + 301))  # the first 300 are used once
    except OSError:
        return False
    return True


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
        # An overlay does not show what is mounted below a folder, which then is there to be read.
        copied = watched and os.path.isdir(path) and not layers.mounted_below(path)
        layers.grant(path, path, "copy" if copied else "read")
    layers.folder(plan["home"], 0o700)
    for folder in plan["folders"]:
        layers.grant(folder["target"], folder["source"], folder["access"])
    for path, text in plan["links"]:
        layers.link(path, text)
    layers.folder(plan["cwd"], 0o755)
    if os.geteuid() != 0:
        for path in ("/", "/dev", "/home", "/run", "/mnt", "/srv"):
            os.chmod(layers.made_path(path), 0o555)


def _ruled(plan: dict[str, Any]) -> int:
    """Put the rules on; the number of the listener, or -1."""
    listened = _listened(plan)
    held = rules.base(listened) | (rules.counted() if plan["asked"] else {})
    if above.read_only(plan):
        held |= rules.locks() | changing.written(rules.TELL)
    if any(folder["access"] in ("read", "write") for folder in plan["folders"]):
        held |= rules.no_datagrams(listened)
    if any(folder["access"] == "write" for folder in plan["folders"]):
        held |= {name: block for name, block in rules.no_setuid(listened).items() if name not in held}
    if plan["strict"]:
        held |= changing.told(rules.TELL)
        if landlock.version():
            # A pipe with a name can be written to in a folder that is mounted to be read.
            landlock.restrict(["/"], [path for path, changes in _places(plan).items() if changes], (), tcp=False)
    return rules.install(held, listened)


def _places(plan: dict[str, Any]) -> dict[str, bool]:
    """Where a strict box may change something, and where, within that, it may not."""
    folders = {folder["target"]: folder["access"] != "read" for folder in plan["folders"]}
    return dict.fromkeys((plan["home"], *_SCRATCH), True) | folders


def _listened(plan: dict[str, Any]) -> bool:
    granted = any(folder["access"] in ("read", "write") for folder in plan["folders"])
    return bool(plan["watch"] or plan["root"] or plan["strict"] or granted)


class _First(above.Above):
    def __init__(
        self, plan: dict[str, Any], report: Report, status: int, command: above.Command, layers: Layers, on_disk: int
    ) -> None:
        super().__init__(plan, report, status, command)
        self._on_disk = on_disk
        self._granted = [layer.target for layer in layers.all if not layer.is_own]
        self._copied = [layer.target for layer in layers.all if layer.is_own]

    def members(self) -> list[int]:
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and name != "1"]

    def on_disk(self) -> int:
        return limits.size_below(f"/proc/self/fd/{self._on_disk}/up") if self._on_disk >= 0 else 0

    def handlers(self) -> dict[str, Handler]:
        watched = self._plan["watch"]
        found = starts(self._report) if watched else {name: (lambda call: None) for name in ("execve", "execveat")}
        own = self._is_own if self._granted else None
        found |= connections(self._report, outside=self._plan["reach"] != "none", own=own)
        if self._plan["asked"]:
            found |= forks(self._report, self._plan["limits"]["processes"], lambda: len(self.members()))
        found |= locks(self._report, above.read_only(self._plan))
        found |= changing.no_pipes(self._report, above.read_only(self._plan))
        if self._plan["strict"]:
            found |= changing.held(self._report, self._is_writable)
        return found

    def _is_writable(self, path: str) -> bool:
        places = _places(self._plan)
        deepest = max((place for place in places if within(path, place)), key=len, default="")
        return places.get(deepest, False)

    def _is_own(self, path: str) -> bool:
        deepest = max((target for target in (*self._granted, *self._copied) if within(path, target)), key=len)
        return deepest not in self._granted
