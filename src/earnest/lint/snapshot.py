"""For authors of servers: their tools held to a file, in a test.

    from earnest.lint.snapshot import assert_annotations_snapshot

    def test_annotations():
        assert_annotations_snapshot([sys.executable, "-m", "my_server"])

The first run (or one with `EARNEST_SNAPSHOT=write`) writes the file, and fails, so that somebody looks at it; later runs
compare. A tool without explicit hints, or one whose description contradicts them, fails whatever the file says.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from earnest.core.errors import EarnestError
from earnest.lint.model import WIRE, Hint, Server, tool_of
from earnest.lint.run import Selection, lint
from earnest.upstream.http import HttpLink
from earnest.upstream.opening import ClientHello, pages
from earnest.upstream.stdio import StdioLink

DEFAULT: Final = Path("tests") / "annotations.json"
VARIABLE: Final = "EARNEST_SNAPSHOT"
_ALWAYS: Final[tuple[Hint, ...]] = ("read_only", "open_world")
_OF_WRITES: Final[tuple[Hint, ...]] = ("destructive", "idempotent")


def assert_annotations_snapshot(
    server: Sequence[str] | str | Sequence[Mapping[str, Any]],
    path: str | os.PathLike[str] = DEFAULT,
    *,
    update: bool | None = None,
    env: Mapping[str, str] | None = None,
    timeout_s: float = 30.0,
) -> None:
    """Fails (AssertionError) unless each tool has explicit hints, none is contradicted with high confidence, and all are as in
    `path`.

    `server`: a command, an address, or tools as listed (dictionaries). `update` writes the file; None asks the environment.
    Raises EarnestError if the server cannot be asked.
    """
    given = asyncio.run(_listed(server, env, timeout_s))
    seen = Server("server", tuple(tool_of(one) for one in given))
    wrong = _implicit(seen) + _contradicted(seen)
    assert not wrong, "annotations need attention:\n" + "\n".join(f"  {line}" for line in wrong)
    now = _snapshot(seen)
    file = Path(path)
    if update if update is not None else os.environ.get(VARIABLE) == "write":
        file.write_text(now, "utf-8")
        return
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(now, "utf-8")
        raise AssertionError(f"{file} was written: look at it, commit it, and run the test again")
    before = file.read_text("utf-8")
    assert now == before, f"annotations differ from {file} ({VARIABLE}=write takes them over):\n{_differences(before, now)}"


def _implicit(server: Server) -> list[str]:
    lines: list[str] = []
    for tool in server.tools:
        wanted = _ALWAYS + (() if tool.raw.read_only is True else _OF_WRITES)
        absent = [WIRE[hint] for hint in wanted if tool.raw.get(hint) is None]
        if absent:
            lines.append(f"{tool.name}: say {', '.join(absent)} explicitly")
    return lines


def _contradicted(server: Server) -> list[str]:
    found = lint([server], Selection(confidence="high", severity="warning"))
    return [f"{f.tool}: {f.message} (fix: {f.fix})" for f in found if f.hint is not None and f.tool is not None]


def _snapshot(server: Server) -> str:
    rows = {
        tool.name: {wire: tool.raw.get(hint) for hint, wire in WIRE.items() if tool.raw.get(hint) is not None}
        for tool in server.tools
    }
    return msgspec.json.format(msgspec.json.encode(dict(sorted(rows.items()))), indent=1).decode() + "\n"


def _differences(before: str, now: str) -> str:
    try:
        old: dict[str, Any] = msgspec.json.decode(before, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        return "  the file is no snapshot"
    new: dict[str, Any] = msgspec.json.decode(now, type=dict[str, Any])
    lines = [
        f"  {name}: {old.get(name, 'not there')} → {new.get(name, 'not there')}"
        for name in sorted(old | new)
        if old.get(name) != new.get(name)
    ]
    return "\n".join(lines)


async def _listed(
    server: Sequence[str] | str | Sequence[Mapping[str, Any]], env: Mapping[str, str] | None, timeout_s: float
) -> list[Mapping[str, Any]]:
    link: StdioLink | HttpLink
    words: deque[str] = deque(maxlen=5)
    if isinstance(server, str):
        if not server.startswith(("http://", "https://")):
            raise EarnestError("E1018", f"{server!r} is no address", "Give a command as a list of words.")
        link = HttpLink("server", server, client=ClientHello(), log=words.append, headers={}, open_timeout=timeout_s)
    else:
        commands = [one for one in server if isinstance(one, str)]
        if len(commands) != len(server):
            return [one for one in server if isinstance(one, Mapping)]
        given = dict(os.environ if env is None else env)
        link = StdioLink(
            "server", commands, env=given, cwd=os.getcwd(), client=ClientHello(), log=words.append, open_timeout=timeout_s
        )
    try:
        await link.open()
        return [msgspec.json.decode(raw, type=dict[str, Any]) async for raw in pages(link, "tools/list")]
    except EarnestError as error:
        last = f"; its last words: {' / '.join(words)}" if words else ""
        raise EarnestError(error.code, f"{error.message}{last}", error.remedy, exit_code=error.exit_code) from None
    finally:
        await link.close()
