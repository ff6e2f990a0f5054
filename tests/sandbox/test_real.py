"""Published servers in boxes, started as any other server is."""

import os
import sys

import msgspec
import pytest

from earnest.sandbox.box import Folder, Plan, changes
from earnest.sandbox.tiers import choose
from earnest.upstream.opening import ClientHello
from earnest.upstream.stdio import StdioLink

WRITES = {
    "filesystem": ("write_file", {"path": "{work}/new.txt", "content": "text"}, "new.txt"),
    "sqlite": ("create_table", {"query": "CREATE TABLE t (a INTEGER)"}, "test.db"),
}


@pytest.mark.real
@pytest.mark.parametrize("name", WRITES)
async def test_a_published_server_runs_and_what_its_tool_wrote_is_seen(mine, name, real_server):
    server = real_server(name)
    work = f"{mine.home}/work"
    argv = [word.replace(str(server.folder), work) for word in server.command]
    if name == "sqlite":
        argv = [*server.command[:1], "--db-path", f"{work}/test.db"]
    env = {"PATH": os.environ["PATH"], **{key: value.replace(str(server.folder), work) for key, value in server.env.items()}}
    (mine.folder / "fixture").mkdir()
    (mine.folder / "fixture" / "kept.txt").write_text("kept")
    plan = Plan(tuple(argv), env, work, mine.home, (Folder(work, str(mine.folder / "fixture")),), watch=True)
    box = choose(mine.tier).box(plan)
    said: list[str] = []
    link = StdioLink(name, box.argv, env=box.env, cwd=None, client=ClientHello(prefer_modern=False), log=said.append)
    try:
        await link.open()
        before = box.look()
        tool, arguments, file = WRITES[name]
        params = {"name": tool, "arguments": {key: value.replace("{work}", work) for key, value in arguments.items()}}
        reply = await link.ask("tools/call", msgspec.json.encode(params))
        assert b'"isError":true' not in reply.result and not reply.error, (reply, said)
        assert f"{work}/{file}" in {change.path for change in changes(before, box.look())}
    finally:
        await link.close()
        ended = box.close()
    assert ended.limit == "" and sys.executable in box.argv
    assert not os.path.exists(work)
