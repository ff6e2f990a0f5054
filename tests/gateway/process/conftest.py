"""A checkout of earnest with a small application in place of the real one, and instances that end with their
test."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest

SOURCE = pathlib.Path(__file__).parents[3] / "src" / "earnest"


class Rig:
    """One home, one configuration: shims by `shim`, the daemon's process by `daemon`."""

    def __init__(self, folder: pathlib.Path, settings: dict) -> None:
        self.root = folder / "root"
        self.home = folder / "home"
        self.home.mkdir(mode=0o700)
        self.effects = folder / "effects"
        self.config = folder / "config.json"
        self.config.write_text(json.dumps({"effects": str(self.effects), **settings}))
        package = self.root / "earnest"
        (package / "gateway").mkdir(parents=True)
        for one in SOURCE.iterdir():
            if one.name not in ("gateway", "__pycache__"):
                (package / one.name).symlink_to(one)
        (package / "gateway" / "__init__.py").write_text('"""Stands in."""\n')
        (package / "gateway" / "process").symlink_to(SOURCE / "gateway" / "process")
        shutil.copy(pathlib.Path(__file__).with_name("echo_app.py"), package / "gateway" / "app.py")
        self.env = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "EARNEST_HOME": str(self.home / "e"),
            "EARNEST_CONFIG": str(self.config),
        }
        self._shims: list[subprocess.Popen] = []

    def changed(self, room: str, file: str, old: str, new: str) -> None:
        """From now on this checkout has a line of its own in one file."""
        place = self.root / "earnest" / room
        source = place.resolve()
        place.unlink()
        shutil.copytree(source, place, ignore=shutil.ignore_patterns("__pycache__"))
        text = (place / file).read_text()
        assert text.count(old) == 1
        (place / file).write_text(text.replace(old, new))

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-I", "-S", str(self.root / "earnest/shim/boot.py"), *(words or ("stdio", "x"))]

    def shim(self, *words: str, env: dict | None = None, **more) -> subprocess.Popen:
        more = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
        one = subprocess.Popen(self.command(*words), env={**self.env, **(env or {})}, **more)
        self._shims.append(one)
        return one

    @property
    def instance(self) -> pathlib.Path:
        (only,) = (self.home / "e").iterdir()
        return only

    def daemons(self) -> list[int]:
        """Numbers of the daemons of this home that run."""
        found = []
        for one in os.listdir("/proc"):
            if one.isdigit():
                try:
                    with open(f"/proc/{one}/cmdline", "rb") as f:
                        words = f.read().split(b"\0")
                    with open(f"/proc/{one}/stat", "rb") as f:
                        dead = f.read().rpartition(b")")[2].split()[0] == b"Z"
                except OSError:
                    continue
                ours = b"earnest.daemon" in words and os.fsencode(self.home) in b" ".join(words)
                if ours and not dead:
                    found.append(int(one))
        return found

    def rests(self) -> int:
        """The daemon, once it has done all there is to do and sleeps: an answer that was read here may not be
        crossed out there yet, and a kill just then gives its id an error as well."""
        (one,) = self.daemons()

        def sleeps() -> bool:
            with open(f"/proc/{one}/stat", "rb") as f:
                return f.read().rpartition(b")")[2].split()[0] == b"S"

        self.wait(lambda: all(sleeps() for _ in range(3)))
        return one

    def kill(self) -> int:
        one = self.rests()
        os.kill(one, signal.SIGKILL)
        return one

    def kill_any(self) -> bool:
        """Kills the daemon if there is one just now."""
        for one in self.daemons():
            os.kill(one, signal.SIGKILL)
            return True
        return False

    def wait(self, condition, limit_s: float = 60.0):
        """What the condition gives, once it is true."""
        end = time.monotonic() + limit_s
        while not (value := condition()):
            assert time.monotonic() < end, f"never came true; the log: {self.log()}"
            time.sleep(0.01)
        return value

    def log(self) -> str:
        try:
            return (self.instance / "daemon.log").read_text()
        except (OSError, ValueError):
            return "(none)"

    def done(self) -> list[str]:
        return self.effects.read_text().splitlines() if self.effects.exists() else []

    def clean(self) -> None:
        for one in self._shims:
            if one.poll() is None:
                one.kill()
            one.wait()
            for stream in (one.stdin, one.stdout, one.stderr):
                if stream is not None:
                    try:
                        stream.close()
                    except OSError:
                        pass
        for one in self.daemons():
            os.kill(one, signal.SIGKILL)


@pytest.fixture
def make_rig(tmp_path):
    made = []

    def make(**settings) -> Rig:
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(Rig(folder, settings))
        return made[-1]

    yield make
    for one in made:
        one.clean()


@pytest.fixture
def rig(make_rig) -> Rig:
    return make_rig()


def _ask(id: object, method: str = "tools/call", **params: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode() + b"\n"


@pytest.fixture
def ask():
    """A request as a line."""
    return _ask


@pytest.fixture
def talk():
    """Sends one request to a shim by its pipes and returns the answer's line."""

    def one(shim, id: object, method: str = "tools/call", **params: object) -> dict:
        shim.stdin.write(_ask(id, method, **params))
        shim.stdin.flush()
        return json.loads(shim.stdout.readline())

    return one
