"""Programs that try to get out of their boxes, in each tier, as root and as an ordinary user."""

import contextlib
import json
import os
import shutil
import socket
import sys
import threading
import time
from pathlib import Path

import pytest

from earnest.sandbox.box import Folder, Limits
from sandbox.rig import HERE, Rig

SECRET = "the-secret-of-this-machine"
HELD_BY_THE_BOX = {
    # What succeeds in the box's own view, and does not leave it: the files outside are looked at afterwards.
    "namespaces": (
        "write", "truncate", "mode of", "times of", "attribute of", "remove", "link to", "rename onto", "folder outside",
    ),
    "confined": (),
}


class Outside:
    """What a machine has that no box may reach: files, sockets, a process."""

    def __init__(self, rig: Rig) -> None:
        self.folder = rig.folder / "outside"
        self.socket_path = self.folder / "socket"
        self.folder.mkdir()
        keys = self.folder / ".ssh"
        keys.mkdir()
        self.secret = keys / "id_ed25519"
        self.secret.write_text(SECRET)
        self.file = self.folder / "file"
        self.file.write_text("untouched")
        os.utime(self.file, (1000, 1000))
        self.granted, self.written = rig.folder / "granted", rig.folder / "written"
        for folder in (self.granted, self.written):
            folder.mkdir()
            (folder / "file").write_text("untouched")
            os.utime(folder / "file", (1000, 1000))
        (self.written / "planted").symlink_to(self.secret)
        if rig.user == "ordinary":
            for path in (rig.folder, *rig.folder.rglob("*")):
                os.chown(path, 64321, 64321, follow_symlinks=False)
        self.reached: list[str] = []
        self._open: list[socket.socket] = []
        self.port = self._listen("loopback", socket.AF_INET, ("127.0.0.1", 0))[1]
        self.datagrams = self._listen("datagram", socket.AF_INET, ("127.0.0.1", 0), socket.SOCK_DGRAM)[1]
        self.abstract = f"earnest-test-{rig.folder.name}"
        self._listen("abstract", socket.AF_UNIX, "\0" + self.abstract)
        for name, path in (("socket", self.folder / "socket"), ("granted socket", self.granted / "socket")):
            self._listen(name, socket.AF_UNIX, str(path))
            os.chmod(path, 0o777)
        self._listen("granted datagrams", socket.AF_UNIX, str(self.granted / "datagrams"), socket.SOCK_DGRAM)
        os.chmod(self.granted / "datagrams", 0o777)
        os.mkfifo(self.granted / "pipe")
        os.chmod(self.granted / "pipe", 0o777)
        self.pipe = os.open(self.granted / "pipe", os.O_RDONLY | os.O_NONBLOCK)

    def _listen(self, name, family, address, kind=socket.SOCK_STREAM):
        line = socket.socket(family, kind)
        line.bind(address)
        self._open.append(line)
        if kind == socket.SOCK_STREAM:
            line.listen()

        def wait() -> None:
            with contextlib.suppress(OSError):
                if kind == socket.SOCK_DGRAM:
                    line.recvfrom(100)
                else:
                    line.accept()[0].sendall(b"you are out")
                self.reached.append(name)

        threading.Thread(target=wait, daemon=True).start()
        return line.getsockname()

    def close(self) -> None:
        os.close(self.pipe)
        for line in self._open:
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
            line.close()

    def told(self, rig: Rig) -> dict[str, object]:
        return {
            "secret": SECRET, "secret_path": str(self.secret), "real_home": os.path.expanduser("~"), "home": rig.home,
            "outside": {"file": str(self.file), "key": str(self.secret)}, "outside_folder": str(self.folder),
            "granted": str(self.granted), "written": str(self.written), "pid": os.getpid(), "group": os.getpgrp(),
            "port": self.port, "datagrams": self.datagrams, "address": "127.0.0.2", "abstract": self.abstract,
            "socket": str(self.folder / "socket"), "known": sys.base_prefix.split("/"),
        }  # fmt: skip


@pytest.fixture
def outside(rig):
    found = Outside(rig)
    yield found
    found.close()


def test_a_hostile_program_reaches_nothing_outside(rig, outside, monkeypatch):
    monkeypatch.setenv("EARNEST_TEST_SECRET", SECRET)
    program = rig.folder / "program"
    program.mkdir()
    shutil.copy(HERE / "hostile.py", program)
    folders = (
        Folder(str(program), str(program), "read"),
        Folder(str(outside.granted), str(outside.granted), "read"),
        Folder(str(outside.written), str(outside.written), "write"),
    )
    done = rig.run(sys.executable, "-I", str(program / "hostile.py"), json.dumps(outside.told(rig)), folders=folders)
    assert done.status == 0, done.err
    told = json.loads(done.out)
    allowed = HELD_BY_THE_BOX[rig.tier]
    escaped = {name: what for name, what in told["found"].items() if what.startswith("ESCAPED")}
    escaped = {name: what for name, what in escaped.items() if not any(name.startswith(start) for start in allowed)}
    assert escaped == {}
    assert len(told["found"]) > 90
    effective, bounding, no_new = told["caps"]
    assert (effective, no_new) == ("0" * 16, "1")
    assert bounding == "0" * 16 or (rig.tier, rig.user) == ("confined", "ordinary")  # not in its power, and without effect
    # And outside nothing moved.
    assert outside.reached == []
    assert os.read(outside.pipe, 100) == b""
    assert outside.secret.read_text() == SECRET
    for path in (outside.file, outside.granted / "file", outside.written / "file"):
        status = path.stat()
        assert (path.read_text(), status.st_mtime, status.st_mode & 0o777) == ("untouched", 1000, 0o644)
        assert os.listxattr(path) == []
    assert sorted(os.listdir(outside.folder)) == [".ssh", "file", "socket"]
    assert sorted(os.listdir(outside.granted)) == ["datagrams", "file", "pipe", "socket"]
    # What was stopped is told.
    calls = "mount ptrace keyctl bpf io_uring_setup unshare setns perf_event_open userfaultfd chroot kexec_load init_module"
    assert done.refused() >= {*calls.split(), "reboot", "process_vm_readv", "socket"}
    assert {"169.254.169.254", "192.0.2.1", f"{outside.granted}/socket"} <= done.refused()
    if rig.tier == "confined":
        assert {"127.0.0.1", str(outside.file), str(outside.socket_path), "kill"} <= done.refused()


def test_what_a_program_leaves_behind_ends_with_its_box(rig):
    script = """
(setsid sh -c 'sleep 300 & sleep 300' &) ; (sh -c 'trap "" TERM HUP INT; sleep 301' &) ; nohup sleep 302 >/dev/null 2>&1 &
"$PYTHON" -Ic 'import os,time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 50)
        time.sleep(303)
    os._exit(0)'
echo started
"""
    done = rig.run("/bin/sh", "-c", f"PYTHON={sys.executable}; {script}", env={**rig.env(), "PYTHONPATH": sys.base_prefix})
    assert (done.status, done.out, done.ended.status) == (0, "started\n", 0)
    assert rig.gone()


@pytest.mark.parametrize("victim", ["owner", "box"])
def test_all_ends_when_whoever_started_it_is_killed(mine, victim):
    process = mine.start(mine.plan("/bin/sh", "-c", "setsid sleep 300 & echo up; sleep 300"))
    box = int(process.stderr.readline())
    while len(mine.left()) < 3:
        assert process.poll() is None
    os.kill(process.pid if victim == "owner" else box, 9)
    assert mine.gone()
    process.communicate(timeout=30)
    if victim == "owner":
        # And nothing of the box is left, a moment later.
        for _ in range(400):
            states = [path for path in Path("/tmp").glob("earnest-box-*") if _says(path / "plan", mine.folder.name)]
            if not states and not os.path.exists(mine.home):
                break
            time.sleep(0.05)
        assert states == [] and not os.path.exists(mine.home)


def _says(path: Path, text: str) -> bool:
    try:
        return text in path.read_text()
    except OSError:
        return False


def test_a_fork_bomb_is_bounded_and_ended(rig):
    bomb = """
import os, time
for _ in range(7):
    try:
        os.fork()
    except OSError:
        pass
if os.getpid() % 7 == 0:
    print("made", flush=True)
time.sleep(2)
"""
    done = rig.run(sys.executable, "-I", "-c", bomb, limits=Limits(processes=40, wall_s=50))
    assert "processes" in done.refused()
    assert done.ended.limit == "processes"
    assert rig.gone()


def test_memory_is_bounded_over_all_processes_together(rig):
    hungry = "import os, time\nfor _ in range(3):\n    os.fork()\ndata = b'x' * (30 << 20)\ntime.sleep(50)\n"
    done = rig.run(sys.executable, "-I", "-c", hungry, limits=Limits(memory=100 << 20, wall_s=50))
    assert done.ended.limit == "memory" and "memory" in done.refused()
    done = rig.run(sys.executable, "-I", "-c", "b'x' * (300 << 20)", limits=Limits(memory=100 << 20))
    assert "MemoryError" in done.err and done.ended.status == 1


def test_the_disk_is_bounded(rig):
    script = "i=0; while [ $i -lt 40 ]; do head -c 1000000 /dev/zero > ~/f$i || exit 9; i=$((i+1)); sleep 0.02; done; sleep 50"
    done = rig.sh(script, limits=Limits(disk=8 << 20, wall_s=50))
    assert done.ended.limit == "disk" or done.ended.status == 9
    assert sum(entry.now.size for entry in done.look.entries.values() if entry.now) < 30 << 20


def test_time_is_bounded(mine):
    done = mine.sh("sleep 30", limits=Limits(wall_s=1))
    assert done.ended.limit == "wall" and "wall" in done.refused()
    done = mine.sh("while :; do :; done", limits=Limits(cpu_s=1, wall_s=55))
    assert done.ended.limit == "cpu"
    assert mine.gone()
