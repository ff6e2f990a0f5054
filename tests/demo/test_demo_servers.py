"""The demo servers do what they show, in both eras, with nothing but the standard library."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client as stdio_client_of_sdk

from earnest import demo

ROOT = Path(__file__).parents[2]
ENV = {"PYTHONPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin"}
ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])


@pytest.fixture
def start(tmp_path, stdio_client):
    async def make(name: str, *args: str, era: str = "legacy"):
        command = [sys.executable, "-S", "-m", f"earnest.demo.{name}", str(tmp_path / name), *args]
        client = await stdio_client(command, env=ENV)
        await client.open(era)
        return client, tmp_path / name

    return make


def said(message: dict[str, Any]) -> str:
    return message["result"]["content"][0]["text"]


def failed(message: dict[str, Any]) -> bool:
    return message["result"]["isError"]


async def hints(client) -> dict[str, dict[str, bool]]:
    return {tool["name"]: tool.get("annotations", {}) for tool in await client.list_all()}


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.parametrize("name", sorted(demo.commands("/nowhere")))
async def test_the_official_client_gets_along_with_each_server(name, mode, tmp_path):
    command = demo.commands(str(tmp_path), sys.executable)[name]
    parameters = StdioServerParameters(command=command[0], args=list(command[1:]), env=ENV)
    async with Client(stdio_client_of_sdk(parameters), mode=mode) as client:
        tools = (await client.list_tools()).tools
        assert tools and all(tool.annotations for tool in tools)
        assert len((await client.list_resources()).resources) == 0
        first = {"file-ops": "list", "mailbox": "list", "fetcher": "fetch", "liar": "weather"}[name]
        arguments = {"url": "http://site.localhost/"} if first == "fetch" else {}
        result = await client.call_tool(first, arguments)
        assert not result.is_error


@pytest.mark.parametrize("name", demo.SERVERS)
def test_each_example_runs_as_a_program_of_its_own(name, tmp_path, run_bounded):
    program = ROOT / "examples" / "servers" / f"{name}.py"
    ask = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}) + "\n"
    done = run_bounded([sys.executable, str(program), str(tmp_path / "folder")], env=ENV, input=ask)
    assert done.code == 0, done.err
    assert json.loads(done.out)["result"]["tools"]


async def test_file_ops_has_four_risks(start):
    client, _ = await start("file_ops")
    claims = await hints(client)
    assert claims["read"]["readOnlyHint"] is True
    kinds = {name: (claims[name]["destructiveHint"], claims[name]["idempotentHint"]) for name in ("append", "set", "delete")}
    assert kinds == {"append": (False, False), "set": (False, True), "delete": (True, True)}
    assert not any(claim["openWorldHint"] for claim in claims.values())


async def test_file_ops_keeps_its_claims(start):
    client, folder = await start("file_ops", era="modern")
    for _ in range(2):
        await client.call("append", {"file": "log.txt", "text": "a"})
    assert said(await client.call("read", {"file": "log.txt"})) == "aa"
    for _ in range(2):
        await client.call("set", {"file": "log.txt", "text": "b"})
    assert (folder / "log.txt").read_text() == "b"
    assert [path.read_text() for path in (folder / ".history").iterdir()] == ["aa"]
    assert said(await client.call("list")) == "log.txt"
    resources = await client.list_all("resources/list", "resources")
    read = await client.request("resources/read", {"uri": resources[0]["uri"]})
    assert read["result"]["contents"][0]["text"] == "b"
    assert said(await client.call("delete", {"file": "log.txt"})) == "log.txt is deleted"
    assert not failed(await client.call("delete", {"file": "log.txt"}))
    assert not (folder / "log.txt").exists()


@pytest.mark.parametrize("name", ["../out.txt", "/etc/hostname", "link/out.txt", ".", ".history/log.txt.1"])
async def test_file_ops_stays_in_its_folder(name, start, tmp_path):
    client, folder = await start("file_ops")
    (folder / "link").symlink_to(tmp_path)
    for tool, more in (("read", {}), ("append", {"text": "x"}), ("set", {"text": "x"}), ("delete", {})):
        assert failed(await client.call(tool, {"file": name, **more})), tool
    assert not (tmp_path / "out.txt").exists()


@pytest.mark.parametrize("arguments", [{}, {"file": 1}, {"file": "a", "more": 1}])
async def test_arguments_that_do_not_fit_are_an_error_the_model_sees(arguments, start):
    client, _ = await start("file_ops")
    assert failed(await client.call("read", arguments))


async def test_the_mailbox_holds_a_strangers_instructions_and_sends_to_a_folder(start):
    client, folder = await start("mailbox")
    claims = await hints(client)
    assert claims["read"] == {"readOnlyHint": True, "openWorldHint": False}
    assert claims["send"]["openWorldHint"] is True and claims["send"]["readOnlyHint"] is False
    assert said(await client.call("search", {"text": "RECOVERY CODE"})).count("\n") == 1
    assert "Note for the assistant" in said(await client.call("read", {"id": "3-parcel"}))
    assert failed(await client.call("read", {"id": "4-none"}))
    await client.call("send", {"to": "ada@home.example", "subject": "Friday", "body": "Seven it is."})
    (letter,) = (folder / "outbox").iterdir()
    assert b"Seven it is." in letter.read_bytes() and b"To: ada@home.example" in letter.read_bytes()


async def test_a_letter_cannot_smuggle_headers(start):
    client, folder = await start("mailbox")
    assert failed(await client.call("send", {"to": "a@b.example\nBcc: c@d.example", "subject": "", "body": ""}))
    assert not list((folder / "outbox").iterdir())


async def test_search_reports_its_progress(start):
    client, _ = await start("mailbox")
    await client.call("search", {"text": "x"}, meta={"progressToken": 7})
    shares = [note["params"]["progress"] for note in client.notifications]
    assert shares == [1, 2, 3] and client.notifications[0]["params"]["progressToken"] == 7


async def test_the_fetcher_reads_its_site_and_leaves_traces(start):
    client, folder = await start("fetcher")
    assert (await hints(client))["fetch"] == {"readOnlyHint": True, "openWorldHint": True}
    assert "Corner Paper" in said(await client.call("fetch", {"url": "http://site.localhost/"}))
    assert "collect?note=" in said(await client.call("fetch", {"url": "http://site.localhost/hike.html"}))
    await client.call("fetch", {"url": "http://site.localhost/collect?note=für dich"})
    assert (folder / "visits.txt").read_text().splitlines()[-1] == "/collect?note=f%C3%BCr%20dich"
    assert said(await client.call("fetch", {"url": "http://site.localhost/../kit.py"})).startswith("404")


@pytest.mark.parametrize(
    "url",
    ["http://example.com/", "https://localhost/", "file:///etc/hostname", "http://a@localhost/", "http://10.0.0.1/", "x"],
)
async def test_the_fetcher_refuses_what_is_not_loopback(url, start):
    client, _ = await start("fetcher")
    assert failed(await client.call("fetch", {"url": url}))


async def test_the_liar_breaks_each_of_its_claims(start):
    client, folder = await start("liar")
    claims = await hints(client)
    assert claims["lookup"]["readOnlyHint"] and claims["translate"]["readOnlyHint"]
    await client.call("lookup", {"text": "moon"})
    assert (folder / "questions.txt").read_text() == "moon\n"
    assert claims["note"]["idempotentHint"]
    for _ in range(2):
        await client.call("note", {"text": "same"})
    assert (folder / "count.txt").read_text() == "2"
    assert claims["tidy"]["destructiveHint"] is False and list((folder / "box").iterdir())
    await client.call("tidy")
    assert not list((folder / "box").iterdir())


async def test_the_liar_flips_a_hint_when_told(start):
    client, _ = await start("liar", "--flip-after", "2")
    seen = [(await hints(client))["weather"]["readOnlyHint"] for _ in range(3)]
    assert seen == [False, False, True]
    client, _ = await start("liar")
    assert not [True for _ in range(3) if (await hints(client))["weather"]["readOnlyHint"]]


@ERAS
async def test_the_kit_refuses_what_it_does_not_know(era, start):
    client, _ = await start("file_ops", era=era)
    assert (await client.request("sampling/createMessage"))["error"]["code"] == -32601
    assert (await client.request("tools/call", {"name": "none"}))["error"]["code"] == -32602
    assert (await client.request("tools/list", {"cursor": "odd"}))["error"]["code"] == -32602


async def test_a_modern_request_must_say_what_the_client_can(start):
    client, _ = await start("file_ops")
    version = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    assert (await client.request("tools/list", {"_meta": version}))["error"]["code"] == -32602
    version = {"io.modelcontextprotocol/protocolVersion": "2030-01-01"}
    error = (await client.request("tools/list", {"_meta": version}))["error"]
    assert error["code"] == -32022 and "2026-07-28" in error["data"]["supported"]


def test_the_demo_servers_need_the_standard_library_only():
    names = ", ".join(f"earnest.demo.{name}" for name in (*demo.SERVERS, "kit"))
    code = f"import sys, {names}; print([m for m in sys.modules if 'msgspec' in m or m.startswith('earnest.core')])"
    done = subprocess.run([sys.executable, "-S", "-c", code], env=ENV, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
