"""Contained servers of the real daemon: what becomes of their boxes when it is killed."""

import os
import signal
from pathlib import Path
from typing import Any

from gateway.test_contained import SERVER, until
from servers.client import StdioClient


def words(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def above(pid: int) -> int:
    """The process that started one; 0 where it is gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


async def test_a_killed_daemon_takes_its_boxes_along_and_the_next_one_goes_on(home: Any, earnest_cmd: list[str]) -> None:
    data = home.path / "data"
    data.mkdir()
    (data / "notes.txt").write_text("milk")
    command = f'["{SERVER[0]}", "{SERVER[1]}"]'
    text = f'[servers.s]\ncommand = {command}\ncontain = {{ read = ["{data}"] }}\n'
    (home.path / ".config" / "earnest" / "earnest.toml").write_text(text)
    client = await StdioClient.start([*earnest_cmd, "stdio", "s"], home.env)
    try:
        await client.open("legacy")
        call = {"do": "read", "path": str(data / "notes.txt")}
        assert (await client.call("look", call))["result"]["content"][0]["text"] == "milk"
        boxed = [int(name) for name in os.listdir("/proc") if name.isdigit() and "launch/" in words(int(name))]
        line = next(chain for pid in boxed if (chain := lineage(pid, str(home.path))))
        place = os.path.dirname(words(line[0]).split()[-1])
        assert os.path.isdir(place)
        os.kill(line[-1], signal.SIGKILL)  # this test's own daemon, as its command line says
        await until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in line[:-1]) and not os.path.exists(place))
        assert (await client.call("look", call))["result"]["content"][0]["text"] == "milk"
    finally:
        await client.close()


async def test_a_server_makes_files_as_whoever_started_its_client_would(home: Any, earnest_cmd: list[str]) -> None:
    data = home.path / "data"
    data.mkdir()
    told = "\n".join(
        f'[servers.{name}]\ncommand = ["{SERVER[0]}", "{SERVER[1]}"]\n{more}\n'
        for name, more in {
            "bare": "", "boxed": f'contain = {{ write = ["{data}"], preview = false }}', "shared": "shared = true",
        }.items()
    )  # fmt: skip
    (home.path / ".config" / "earnest" / "earnest.toml").write_text(f'preset = "observe"\n{told}')
    for first, umask in enumerate((0o027, 0o002)):
        for name in ("bare", "boxed", "shared"):
            shell = ["/bin/sh", "-c", f'umask {umask:o}; exec "$@"', "sh"]
            client = await StdioClient.start([*shell, *earnest_cmd, "stdio", name], home.env)
            try:
                await client.open("legacy")
                path = data / f"{name}{first}"
                assert "error" not in await client.call("act", {"do": "write", "path": str(path)})
                # What several clients share goes by the umask of whoever started the daemon: the first.
                assert path.stat().st_mode & 0o777 == 0o666 & ~(0o027 if name == "shared" else umask), name
            finally:
                await client.close()
    kept = [path for path in (home.path / "state").rglob("*") if not path.is_socket()]
    assert kept and not [path for path in kept if path.stat().st_mode & 0o077]


def lineage(pid: int, home: str) -> list[int]:
    """A box's process and those above it up to the daemon of this home; empty where it belongs to none."""
    found = [pid]
    while found[-1] > 1 and "earnest.daemon" not in words(found[-1]):
        found.append(above(found[-1]))
    return found if home in words(found[-1]) else []
