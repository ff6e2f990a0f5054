"""Published servers, read from their source and asked alive: the same tools with the same hints."""

import asyncio
import os
from pathlib import Path

import msgspec
import pytest

from earnest.gateway.glance import glance
from earnest.gateway.served import Launch
from earnest.lint.model import WIRE, Server, tool_of
from earnest.lint.run import Selection, lint
from earnest.lint.sources import read_source

pytestmark = pytest.mark.real


def source_of(program: str) -> Path:
    """The script behind a program of npm, or the package behind one of PyPI."""
    real = Path(os.path.realpath(program))
    if real.suffix == ".js":
        return real
    package = Path(program).name.replace("-", "_")
    [found] = (Path(program).parent.parent / "lib").glob(f"python3*/site-packages/{package}")
    return found


@pytest.mark.parametrize("name", ["filesystem", "memory", "git", "time", "fetch"])
def test_source_and_server_say_the_same(real_server, name):
    server = real_server(name)
    if name == "filesystem" or name == "memory":
        pytest.importorskip("tree_sitter_typescript")
    seen = asyncio.run(
        glance(name, Launch(argv=tuple(server.command), env={**os.environ, **server.env}, cwd=str(server.folder)), 30)
    )
    live = {tool.name: tool.raw for tool in seen.tools}
    read = read_source(source_of(server.command[0]))
    assert read is not None
    found = {tool.name: tool.raw for tool in read.tools}
    assert found.keys() == live.keys()
    for tool, raw in found.items():
        for hint, wire in WIRE.items():
            assert wire in raw.malformed or raw.get(hint) is live[tool].get(hint), (tool, hint)


def test_servers_that_are_annotated_with_care_have_no_error(real_server):
    for name in ("filesystem", "memory", "time"):
        server = real_server(name)
        seen = asyncio.run(
            glance(name, Launch(argv=tuple(server.command), env={**os.environ, **server.env}, cwd=str(server.folder)), 30)
        )
        tools = tuple(tool_of(msgspec.json.decode(tool.definition)) for tool in seen.tools)
        assert lint([Server(name, tools)], Selection(severity="warning", confidence="high")) == []
