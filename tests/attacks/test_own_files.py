"""Tool calls that reach earnest's own files, a host's settings or earnest's command line, through the real daemon.

Every spelling is tried in tests/pdp/test_floor.py; here is that no way in leads around the floor, not even under trust.
"""

import json
from pathlib import Path

import pytest

from attacks.rig import READ, Rig, refused, tool

SCRIPT = {
    "tools": [tool("read_file", **READ), tool("write_file"), tool("shell"), tool("run_tool")],
    "resources": [{"uri": "file:///srv/a", "name": "a"}],
    "prompts": [{"name": "p", "arguments": [{"name": "file"}]}],
}
TRUSTING = (
    'preset = "observe"\n',
    '[policy]\nallow = ["files/*"]\n',
    '[labels."files/run_tool"]\ndispatcher = { name = "name", arguments = "arguments" }\n',
)


@pytest.fixture
def trusting(rig: Rig, tmp_path: Path):
    """Everything is allowed and the server is trusted: only the floor is left."""
    cwd = tmp_path / "project"
    cwd.mkdir()
    (cwd / "link").symlink_to(rig.home.path)
    for toml in TRUSTING:
        rig.add(toml)
    return rig.server("files", SCRIPT, trust="trusted", more=f"cwd = {json.dumps(str(cwd))}\n")


async def test_no_tool_call_reaches_earnests_own_files(rig: Rig, trusting):
    client = await rig.stdio("files")
    assert not refused(await client.call("write_file", {"path": "notes.txt", "text": "hello"}))
    home, own = rig.home.path, rig.instance
    (home / "hard").mkdir()
    tries = [
        ("write_file", {"path": str(own / "token")}),
        ("read_file", {"path": str(own / "store.db")}),
        ("read_file", {"path": str(own / "seal.key")}),
        ("write_file", {"path": str(rig.home.config)}),
        ("write_file", {"path": "~/.config/earnest/policy.toml"}),
        ("write_file", {"path": "link/.claude/settings.json"}),
        ("write_file", {"path": "../project/link/state/default/token"}),
        ("write_file", {"path": ".mcp.json"}),
        ("write_file", {"path": f"file://{home}/%2Eclaude.json"}),
        ("write_file", {"path": "../../somewhere/.local/state/earnest/x/token"}),
        ("read_file", {"dir": str(own), "name": "token"}),
        ("read_file", {"dir": str(own.parent.parent), "name": f"{own.parent.name}/{own.name}/token"}),
        ("write_file", {str(own / "token"): "x"}),
        ("write_file", {"path": "${HOME}/.claude"}),
        ("shell", {"command": f"cat {str(own)[:-3]}*/tok?n"}),
        ("shell", {"command": "echo trust files | xargs earnest"}),
        ("shell", {"command": f"cat {own}/token"}),
        ("shell", {"command": "echo x >> ~/.codex/config.toml"}),
        ("shell", {"command": "python3 -m earnest trust \\\n files --trusted"}),
        ("shell", {"argv": ["earnest", "approvals"]}),
        ("shell", {"input": json.dumps({"argv": ["earnest", "approvals"]})}),
        ("run_tool", {"name": "write_file", "arguments": {"path": str(own / "token")}}),
        ("run_tool", {"name": "shell", "arguments": json.dumps({"command": "earnest labels x"})}),
    ]
    passed = [arguments for name, arguments in tries if not refused(await client.call(name, arguments))]
    assert passed == []
    escaped = json.dumps(str(own / "token"))[1:-1].replace("/", "\\u002f").replace("o", "\\u006f")
    client.expect(77)
    call = f'{{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{{"name":"write_file","arguments":{{"p":"{escaped}"}}}}}}'
    await client.send_raw(call.encode() + b"\n")
    assert refused(await client.answer(77))
    assert [call["arguments"] for call in trusting.calls()] == [{"path": "notes.txt", "text": "hello"}]
    receipts = rig.receipts(decision="deny")
    assert {r.reasons[0]["rule"] for r in receipts} == {"floor/own-files", "floor/own-command"}
    assert rig.verify() > 2 * len(tries)


async def test_no_other_request_reaches_them_either(rig: Rig, trusting):
    client = await rig.stdio("files")
    own = f"file://{rig.instance}/token"
    tries = [
        ("resources/read", {"uri": own}),
        ("resources/read", {"uri": own.replace("token", "%74oken")}),
        ("resources/subscribe", {"uri": own}),
        ("prompts/get", {"name": "p", "arguments": {"file": str(rig.instance / "token")}}),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "file", "value": str(rig.instance)}},
        ),
    ]
    for method, params in tries:
        assert "error" in await client.request(method, params), method
        assert trusting.messages(method) == [], method


async def test_a_hard_link_to_the_token_is_the_token(rig: Rig, trusting, tmp_path: Path):
    client = await rig.stdio("files")
    await rig.person.listening()
    project = rig.home.path / "work"
    project.mkdir()
    (project / "notes.txt").hardlink_to(rig.instance / "token")
    assert refused(await client.call("read_file", {"path": str(project / "notes.txt")}))
    (project / "other.txt").write_text("x")
    assert not refused(await client.call("read_file", {"path": str(project / "other.txt")}))
