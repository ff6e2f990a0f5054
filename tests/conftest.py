"""Fixtures that every part of the suite shares. Each test has a home of its own, and runs beside others."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from servers.client import StdioClient
from servers.record import Record

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background of a shell: children would inherit the deafness, and some tests interrupt theirs.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# In the suite properties are held to the same examples each time, however busy the machine is. To look for more:
# HYPOTHESIS_PROFILE=search make test TESTS=tests/core
settings.register_profile("suite", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))

ROOT = Path(__file__).resolve().parent.parent
SERVERS = ROOT / "tests" / "servers"
INSTALLED = ROOT / ".servers"

# Python programs that tests start find this tree as the tests do, installed or not.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))


@dataclass(frozen=True)
class Home:
    """A person's home for one test."""

    path: Path
    env: dict[str, str]

    @property
    def earnest(self) -> Path:
        """The folder that `$EARNEST_HOME` names."""
        return Path(self.env["EARNEST_HOME"])

    @property
    def config(self) -> Path:
        """Where `earnest.toml` is looked for; the folder exists."""
        return self.path / ".config" / "earnest" / "earnest.toml"


@dataclass(frozen=True)
class RealServer:
    """A published MCP server with a folder of its own."""

    name: str
    command: list[str]
    env: dict[str, str]
    folder: Path
    eras: tuple[str, ...]


@dataclass(frozen=True)
class Finished:
    """A command that has ended."""

    code: int
    out: str
    err: str
    seconds: float


@dataclass
class ScriptedHttp:
    """A scripted server over HTTP that is running."""

    url: str
    record: Record
    process: subprocess.Popen[bytes] = field(repr=False)


@contextlib.contextmanager
def new_home() -> Iterator[Home]:
    """An empty home and the environment that goes with it, and the end of what runs in it. Its path is short, because socket
    paths are."""
    folder = Path(tempfile.mkdtemp(prefix="e-", dir="/tmp" if os.path.isdir("/tmp") else None))
    (folder / ".config" / "earnest").mkdir(parents=True)
    env = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TMPDIR") if name in os.environ}
    env |= {"HOME": str(folder), "EARNEST_HOME": str(folder / "state")}
    env |= {"PYTHONPATH": str(ROOT / "src"), "TERM": "dumb", "NO_COLOR": "1"}
    try:
        yield Home(folder, env)
    finally:
        end_daemons(folder)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def home() -> Iterator[Home]:
    """See `new_home`."""
    with new_home() as made:
        yield made


def end_daemons(folder: Path) -> None:
    """End every process that was started with this home and is still there: daemons outlive their shims."""
    processes = Path("/proc")
    if not processes.is_dir():
        return
    mark = f"HOME={folder}".encode()
    for entry in processes.iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                named = str(folder).encode() in (entry / "cmdline").read_bytes()
                if named or mark in (entry / "environ").read_bytes():
                    os.kill(int(entry.name), signal.SIGKILL)


@pytest.fixture
def earnest_cmd() -> list[str]:
    """The command `earnest` of this tree, in this interpreter; give it `home.env`."""
    return [sys.executable, "-m", "earnest"]


@pytest.fixture
def run_bounded() -> Callable[..., Finished]:
    """`run_bounded(command, env, timeout=90, input="", cwd=None)`: runs to its end; a hang fails the test."""

    def run(
        command: Sequence[str],
        env: Mapping[str, str] | None = None,
        timeout: float = 90.0,
        input: str = "",
        cwd: Path | str | None = None,
    ) -> Finished:
        begun = time.monotonic()
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env) if env is not None else None,
            cwd=cwd,
            start_new_session=True,
        )
        try:
            out, err = process.communicate(input.encode(), timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            pytest.fail(f"{command} did not end within {timeout} s\nstdout: {out!r}\nstderr: {err!r}")
        seconds = time.monotonic() - begun
        return Finished(
            process.returncode, out.decode(errors="replace"), err.decode(errors="replace"), seconds
        )

    return run


@pytest.fixture
def scripted(tmp_path: Path) -> Callable[..., tuple[list[str], Record]]:
    """`scripted(script, name="scripted")`: a scripted stdio server's command and its record."""

    def make(script: Mapping[str, Any], name: str = "scripted") -> tuple[list[str], Record]:
        file, record = _script_files(tmp_path, script, name)
        return [sys.executable, "-S", str(SERVERS / "scripted.py"), str(file)], Record(record)

    return make


@pytest.fixture
def scripted_http(tmp_path: Path) -> Iterator[Callable[..., ScriptedHttp]]:
    """`scripted_http(script, name="http")`: a scripted server over HTTP, started; ended with the test."""
    started: list[subprocess.Popen[bytes]] = []

    def make(script: Mapping[str, Any], name: str = "http", port: int = 0) -> ScriptedHttp:
        file, record = _script_files(tmp_path, script, name)
        command = [sys.executable, "-S", str(SERVERS / "scripted_http.py"), str(file), str(port)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started.append(process)
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first, "the scripted HTTP server did not start"
        return ScriptedHttp(json.loads(first)["url"], Record(record), process)

    yield make
    for process in started:
        process.kill()
        process.communicate()


def _script_files(folder: Path, script: Mapping[str, Any], name: str) -> tuple[Path, Path]:
    record = folder / f"{name}.record.jsonl"
    file = folder / f"{name}.script.json"
    file.write_text(json.dumps({**script, "record": str(record)}))
    return file, record


@pytest.fixture
async def stdio_client() -> AsyncIterator[Callable[..., Awaitable[StdioClient]]]:
    """`await stdio_client(command, env=None, cwd=None)`: a raw client of a command, closed with the test."""
    clients: list[StdioClient] = []

    async def start(
        command: Sequence[str], env: Mapping[str, str] | None = None, cwd: str | None = None
    ) -> StdioClient:
        client = await StdioClient.start(command, env=env, cwd=cwd)
        clients.append(client)
        return client

    yield start
    await asyncio.gather(*(client.close(timeout=3) for client in clients))


@pytest.fixture
def real_server(tmp_path: Path) -> Callable[[str], RealServer]:
    """`real_server(name)`: a server of scripts/servers.toml, not started, with a fresh folder.

    Without an installation the test is skipped, or fails where `make test` promised one.
    """

    def make(name: str) -> RealServer:
        pins = tomllib.loads((ROOT / "scripts" / "servers.toml").read_text())
        pin = pins[name]
        program = (
            INSTALLED / ("npm/node_modules/.bin" if "npm" in pin else f"{pin['venv']}/bin") / pin["program"]
        )
        if not (INSTALLED / "manifest.json").exists():
            say = pytest.fail if os.environ.get("EARNEST_REQUIRE_REAL") else pytest.skip
            say("real servers are not installed; run scripts/setup-servers")
        folder = tmp_path / f"{name}-folder"
        folder.mkdir()
        args = [arg.replace("{folder}", str(folder)) for arg in pin.get("args", [])]
        env = {key: value.replace("{folder}", str(folder)) for key, value in pin.get("env", {}).items()}
        return RealServer(name, [str(program), *args], env, folder, tuple(pin["eras"]))

    return make
