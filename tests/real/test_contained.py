"""The published filesystem server in lanes: its reads need nobody's yes, its writes run where the folder may be changed."""

from pathlib import Path
from typing import Any

import pytest

from gateway.live import gateways, text_of

pytestmark = pytest.mark.real


@pytest.mark.parametrize("tier", ["A", "B"])
async def test_reads_go_unasked_in_observe_and_a_write_runs_in_act_once_it_is_allowed(
    tier: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, real_server: Any
) -> None:
    found = real_server("filesystem")
    (found.folder / "notes.txt").write_text("milk")
    (tmp_path / "outside.txt").write_text("not granted")
    table = {"command": [*found.command, str(tmp_path)], "contain": {"write": [str(found.folder)], "tier": tier}}
    async with gateways(tmp_path, monkeypatch) as start:
        live = await start({"files": table}, preset="balanced", more="[asking]\nhold_s = 0")
        client = await live.opened("/s/files/mcp")
        tools = {tool["name"]: tool["_meta"]["dev.earnest/profile"] for tool in await client.list_all()}
        readers = {name for name, profile in tools.items() if profile["lane"] == "observe"}
        assert {"read_text_file", "list_directory", "search_files", "get_file_info", "directory_tree"} <= readers
        assert not readers & {"write_file", "edit_file", "move_file", "create_directory"}
        assert all(tools[name]["read_only"] == {"value": True, "basis": "enforced"} for name in readers)
        listed = await client.call("list_directory", {"path": str(found.folder)})
        assert "[FILE] notes.txt" in text_of(listed) and not listed["result"].get("isError")
        assert text_of(await client.call("read_text_file", {"path": str(found.folder / "notes.txt")})) == "milk"
        outside = await client.call("read_text_file", {"path": str(tmp_path / "outside.txt")})
        assert outside["result"]["isError"]
        write = {"path": str(found.folder / "new.txt"), "content": "eggs"}
        asked = await client.call("write_file", write)
        assert "waiting" in text_of(asked) and not (found.folder / "new.txt").exists()
        (waiting,) = live.app.approvals.listed()
        live.app.approvals.decide(waiting.id, True, channel="terminal", valid_s=600, by="test")
        done = await client.call("write_file", write)
        assert not done["result"].get("isError") and (found.folder / "new.txt").read_text() == "eggs"
        assert text_of(await client.call("read_text_file", {"path": str(found.folder / "new.txt")})) == "eggs"
        assert not [line for line in live.lines if "stopped" in line], live.lines
