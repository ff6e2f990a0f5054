"""Law 9: no command that raises trust, writes a label, accepts a pin or approves a file works for a model."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from cli.person import run_at_terminal
from conftest import Finished, Home
from earnest.core.errors import EarnestError
from earnest.gateway.process.control import connect_control
from servers.client import StdioClient
from servers.record import Record

READ = {"name": "read", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
RAISING = [
    ["trust", "books", "--trusted"],
    ["trust", "books", "--verified"],
    ["labels", "set", "books/read", "read_only=true"],
    ["labels", "unset", "books/read"],
    ["pins", "accept", "books"],
    ["pins", "noise", "books", "/home/[a-z]+"],
    ["config", "approve"],
]
OPERATIONS: list[tuple[str, dict[str, Any]]] = [
    ("trust", {"server": "books", "trust": "trusted"}),
    ("label", {"server": "books", "tool": "read", "values": {"read_only": True}}),
    ("pins-accept", {"server": "books"}),
    ("noise", {"server": "books", "pattern": "/home/[a-z]+"}),
    ("assay-keep", {"server": "books", "support": True, "tools": []}),
    ("undo", {"id": "gateway.1"}),
    ("approve-config", {"path": "/x/earnest.toml", "sha256": "0" * 64}),
]


@pytest.fixture
def changed(home: Home, scripted: Callable[..., tuple[list[str], Record]], run_bounded: Callable[..., Finished],
            earnest_cmd: list[str]) -> list[str]:  # fmt: skip
    """A server whose tool changed since it was seen, and an unapproved file in the folder; the server's command."""
    command, _ = scripted({"tools": [READ]})
    home.config.write_text(f"[servers.books]\ncommand = {json.dumps(command)}\n")
    run_bounded([*earnest_cmd, "pins", "list", "books"], home.env, cwd=home.path)
    scripted({"tools": [{**READ, "description": "Changed."}]})
    (home.path / "earnest.toml").write_text('[servers.gift]\ncommand = ["true"]\n')
    return command


def standing(home: Home, earnest_cmd: list[str], run_bounded: Callable[..., Finished]) -> list[object]:
    """All that the raising commands could have changed."""
    ask = [["trust", "books", "--json"], ["labels", "--json"], ["pins", "list", "books", "--json"], ["tools", "gift", "--json"]]
    return [json.loads(run_bounded([*earnest_cmd, *words], home.env, cwd=home.path).out) for words in ask]


def test_without_a_terminal_nothing_is_raised(
    home: Home, earnest_cmd: list[str], run_bounded: Callable[..., Finished], changed: list[str]
) -> None:
    before = standing(home, earnest_cmd, run_bounded)
    for words in RAISING:
        done = run_bounded([*earnest_cmd, *words], home.env, input="y\ny\n", cwd=home.path)
        assert done.code == 2 and "E1610" in done.err, (words, done)
    assert standing(home, earnest_cmd, run_bounded) == before


async def test_below_a_connected_client_a_terminal_of_its_own_helps_nobody(
    home: Home,
    earnest_cmd: list[str],
    run_bounded: Callable[..., Finished],
    changed: list[str],
    stdio_client: Callable[..., Awaitable[StdioClient]],
) -> None:
    """This test's process is the client's host, so whatever it starts may have been typed by that client's model."""
    client = await stdio_client([*earnest_cmd, "stdio", "books"], env=home.env, cwd=str(home.path))
    await client.open("modern")
    before = standing(home, earnest_cmd, run_bounded)
    for words in RAISING:
        done = run_at_terminal([*earnest_cmd, *words], ["y"], home.env, home.path)
        assert done.code == 1 and "E1604" in done.shown, (words, done)
    assert standing(home, earnest_cmd, run_bounded) == before


async def test_the_daemon_itself_refuses_whoever_descends_from_a_client(
    home: Home, earnest_cmd: list[str], changed: list[str], stdio_client: Callable[..., Awaitable[StdioClient]]
) -> None:
    client = await stdio_client([*earnest_cmd, "stdio", "books"], env=home.env, cwd=str(home.path))
    await client.open("modern")
    control = connect_control(home.env)
    assert control is not None
    with control:
        for name, members in OPERATIONS:
            with pytest.raises(EarnestError) as caught:
                control.call(name, **members)
            assert caught.value.code == "E1604", name
