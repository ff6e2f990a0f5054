"""Contained servers, in each tier: a gateway with boxes around a server whose tools do as they are told, whatever they say."""

import asyncio
import contextlib
import http.server
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from earnest.core.errors import EarnestError
from earnest.core.lanes import Lane
from earnest.gateway import lanes as of_lanes
from earnest.gateway.contained import ContainedLink
from earnest.gateway.served import Grants, Launch
from earnest.sandbox import tiers
from earnest.upstream.opening import ClientHello
from gateway.live import Json, Live, Start, text_of
from servers.client import HttpClient

TESTS = Path(__file__).parents[1]
SERVER = [sys.executable, str(TESTS / "servers" / "lanes.py")]
TIERS = ("A", "B")


def server(tier: str, listing: str = "", **contain: Any) -> Json:
    """A table of `[servers.NAME]`."""
    known = {key: contain.pop(key) for key in ("env", "shared") if key in contain}
    return {"command": [*SERVER, *([listing] if listing else [])], "timeout": 20, "contain": {"tier": tier, **contain}, **known}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "notes.txt").write_text("milk")
    return folder


@pytest.fixture(params=TIERS)
def tier(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def web() -> Iterator[int]:
    """An HTTP server of this machine; its port."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = f"page for {self.headers['Host']}".encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    listening = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    yield listening.server_address[1]
    listening.shutdown()
    listening.server_close()


async def do(client: HttpClient, tool: str, what: str, **more: Any) -> tuple[bool, str]:
    """Whether it was done, and what came of it."""
    answer = await client.call(tool, {"do": what, **more})
    return not answer["result"].get("isError"), text_of(answer)


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 (what it waits for tells nobody)
            await asyncio.sleep(0.01)


async def profiles(client: HttpClient) -> dict[str, Json]:
    return {tool["name"]: tool["_meta"]["dev.earnest/profile"] for tool in await client.list_all()}


def violated(live: Live, tool: str) -> dict[str, Json]:
    """What evidence there is against a tool, by hint."""
    app = live.app
    (served,) = app.world.catalogs.by_name("s")
    rows = app.world.catalogs.assayed(served.server, served.server.tools[tool])
    return {row["hint"]: row for row in rows if row["verdict"] == "violated"}


async def test_an_honest_local_reader_needs_no_prompt_though_nobody_trusts_it(gateway: Start, data: Path, tier: str) -> None:
    more = "[asking]\nhold_s = 0"
    live = await gateway({"s": server(tier, read=[str(data)])}, preset="balanced", more=more)
    client = await live.opened("/s/s/mcp")
    found = await profiles(client)
    for name in ("read_only", "open_world", "can_exfiltrate"):
        assert found["look"][name]["basis"] == "enforced"
    assert (found["look"]["lane"], found["fetch"]["lane"], found["act"]["lane"]) == ("observe", "net", "act")
    # With no host named it is a fact of the other lanes that they reach none; that they only read is none.
    assert found["fetch"]["open_world"] == found["act"]["open_world"] == {"value": False, "basis": "enforced"}
    assert found["fetch"]["read_only"] == {"value": False, "basis": "default"}
    assert await do(client, "look", "read", path=str(data / "notes.txt")) == (True, "milk")
    done, said = await do(client, "act", "read", path=str(data / "notes.txt"))
    assert not done and "waiting" in said


async def test_what_the_operator_says_stands_above_the_walls(gateway: Start, data: Path) -> None:
    more = '[asking]\nhold_s = 0\n[labels."s/look"]\ndestructive = true'
    live = await gateway({"s": server("", read=[str(data)])}, preset="balanced", more=more)
    client = await live.opened("/s/s/mcp")
    found = (await profiles(client))["look"]
    assert (found["lane"], found["destructive"]["value"], found["read_only"]["basis"]) == ("act", True, "operator")
    done, said = await do(client, "look", "read", path=str(data / "notes.txt"))
    assert not done and "waiting" in said


async def test_a_liar_fails_and_its_broken_word_is_kept(
    gateway: Start, data: Path, tier: str, web: int, tmp_path: Path
) -> None:
    keys = tmp_path / "home" / ".ssh"
    keys.mkdir(parents=True)
    (keys / "id_test").write_text("secret")
    live = await gateway({"s": server(tier, read=[str(data)])})
    client = await live.opened("/s/s/mcp")
    notes = str(data / "notes.txt")
    assert (await do(client, "look", "open_both", path=notes))[0] is False
    await do(client, "look", "address", host="192.0.2.1")
    await do(client, "look", "address", host="192.0.2.1")
    assert violated(live, "look") == {}, "that may have been for reading, and sends nothing"
    for what, arguments in (
        ("write", {"path": notes}),
        ("write", {"path": notes, "mode": "a"}),
        ("rename", {"path": notes, "to": str(data / "other")}),
        ("write", {"path": "/srv/earnest-test"}),
        ("write", {"path": str(Path.home() / "earnest-test")}),
        ("read", {"path": str(keys / "id_test")}),
        ("lock", {"path": notes}),
        ("connect", {"host": "127.0.0.1", "port": web}),
        ("connect", {"host": "192.0.2.1", "port": 80}),
        ("connect", {"host": "192.0.2.1", "port": 443}),
        ("get", {"url": f"http://localhost:{web}/"}),
    ):
        done, said = await do(client, "look", what, **arguments)
        assert not done, (what, said)
    assert (data / "notes.txt").read_text() == "milk" and os.listdir(data) == ["notes.txt"]
    found = violated(live, "look")
    assert found.keys() == {"read_only", "open_world"}
    assert found["read_only"]["lane"] == "observe" and found["read_only"]["tier"] == tier and "notes.txt" in notes
    assert any("observe lane was stopped from" in line and "in a call of look" in line for line in live.lines)
    # In its lane it still cannot; the evidence is for where it has no lane.
    assert (await profiles(client))["look"]["read_only"]["basis"] == "enforced"
    (served,) = live.app.world.catalogs.by_name("s")
    assert served.server.tools["look"].standing.violated == {"read_only", "open_world"}


async def test_what_two_did_at_once_is_laid_at_nobodys_door(gateway: Start, data: Path) -> None:
    live = await gateway({"s": server("", read=[str(data)])})
    client = await live.opened("/s/s/mcp")
    await profiles(client)
    calls = (
        client.call("look", {"do": "sleep", "seconds": 0.2}),
        client.call("look", {"do": "write", "path": str(data / "x")}),
    )
    await asyncio.gather(*calls)
    await do(client, "look", "list", path=str(data))
    assert violated(live, "look") == {}
    assert any("in no single call" in line for line in live.lines)


async def test_what_a_server_does_when_nobody_waits_for_it_is_laid_at_no_later_call(gateway: Start, data: Path) -> None:
    live = await gateway({"s": server("", read=[str(data)])})
    client = await live.opened("/s/s/mcp")
    await profiles(client)
    await do(client, "look", "later", path=str(data / "x"), seconds=0.05)
    link = live.app.gateway.links.all()[0][1]
    await until(lambda: any(event.subject == str(data / "x") for event in link.box.events()))
    await do(client, "look", "list", path=str(data))
    await do(client, "look", "write", path=str(data / "y"))
    assert violated(live, "look") == {} and sum("in no single call" in line for line in live.lines) == 2


async def test_what_one_tool_left_to_be_done_later_is_not_laid_at_the_next_one(gateway: Start, data: Path) -> None:
    live = await gateway({"s": server("", read=[str(data)])})
    client = await live.opened("/s/s/mcp")
    await profiles(client)
    for name in ("a", "b", "c"):
        await do(client, "look", "later", path=str(data / name), seconds=0.1)
        await do(client, "peek", "sleep", seconds=0.3)
    await do(client, "look", "list", path=str(data))
    assert violated(live, "peek") == {} == violated(live, "look")
    assert sum("in no single call" in line for line in live.lines) == 3


async def test_twice_is_enough_and_a_call_just_after_another_tool_does_not_count(gateway: Start, data: Path) -> None:
    live = await gateway({"s": server("", read=[str(data)])})
    client = await live.opened("/s/s/mcp")
    await profiles(client)
    await do(client, "look", "write", path=str(data / "x"))
    assert violated(live, "look") == {} and any("in a call of look" in line for line in live.lines)
    await do(client, "look", "write", path=str(data / "y"))
    assert violated(live, "look").keys() == {"read_only"}
    await do(client, "peek", "write", path=str(data / "x"))
    await do(client, "peek", "write", path=str(data / "x"))
    assert violated(live, "peek") == {}, "look may have left something to be done"


async def test_a_task_may_be_at_work_in_every_later_call(gateway: Start, data: Path) -> None:
    live = await gateway({"s": server("", read=[str(data)])})
    client = await live.opened("/s/s/mcp")
    await client.request("tools/call", {"name": "look", "arguments": {}, "task": {}})
    for name in ("x", "y"):
        await do(client, "look", "write", path=str(data / name))
    assert violated(live, "look") == {} and sum("in no single call" in line for line in live.lines) == 2


async def test_after_a_call_that_was_given_up_nobody_is_accused(gateway: Start, data: Path) -> None:
    live = await gateway({"s": server("", read=[str(data)])})
    client = await live.opened("/s/s/mcp")
    await profiles(client)
    id = await client.begin("tools/call", {"name": "look", "arguments": {"do": "sleep", "seconds": 0.2}})
    await until(lambda: live.app.gateway.under_way)
    await client.cancel(id)
    await do(client, "look", "write", path=str(data / "x"))
    assert violated(live, "look") == {} and any("in no single call" in line for line in live.lines)


async def test_a_server_that_ends_for_want_of_a_folder_is_told_with_the_line_that_grants_it(data: Path, tier: str) -> None:
    launch = Launch(argv=(*SERVER, str(data)), env={"PATH": os.environ["PATH"]}, cwd="/", grants=Grants(tier=tier))
    link = ContainedLink("s", launch, Lane.OBSERVE, client=ClientHello(prefer_modern=False), log=lambda text: None)
    with pytest.raises(EarnestError) as caught:
        await link.open()
    assert "listdir" in caught.value.said and f'[servers.s.contain] read = ["{data}"]' in caught.value.remedy
    assert link.pid is None


async def test_lanes_share_nothing_but_what_was_granted(gateway: Start, data: Path, tier: str) -> None:
    live = await gateway({"s": server(tier, write=[str(data)])})
    client = await live.opened("/s/s/mcp")
    pids = {tool: (await do(client, tool, "pid"))[1] for tool in ("look", "fetch", "act")}
    inside = [link.box for _, link in live.app.gateway.links.all()]
    assert len(inside) == 3 and len({id(box) for box in inside}) == 3 and all(pids.values())
    environment = json.loads((await do(client, "act", "environment"))[1])
    scratch = environment.get("TMPDIR", "/tmp")
    for what, arguments in (
        ("write", {"path": f"{scratch}/left", "text": "for you"}),
        ("write", {"path": f"{environment['HOME']}/left", "text": "for you"}),
        ("listen", {"path": f"{scratch}/socket"}),
    ):
        assert await do(client, "act", what, **arguments) == (True, "written" if what == "write" else "listening")
    await do(client, "act", "listen", path="@earnest-test")
    await do(client, "act", "share", name="earnest-test")
    await do(client, "act", "remember", value="x")
    for what, arguments in (
        ("read", {"path": f"{scratch}/left"}),
        ("read", {"path": f"{environment['HOME']}/left"}),
        ("hear", {"path": f"{scratch}/socket"}),
        ("hear", {"path": "@earnest-test"}),
        ("find", {"name": "earnest-test"}),
    ):
        assert (await do(client, "look", what, **arguments))[0] is False, what
    assert await do(client, "look", "remember") == (True, "None")
    # A socket in a folder of both is a way past the walls, and none that is open.
    await do(client, "act", "listen", path=f"{data}/socket")
    assert (await do(client, "look", "hear", path=f"{data}/socket"))[0] is False
    with contextlib.suppress(OSError):
        os.unlink(data / "socket")
    assert await do(client, "act", "write", path=f"{data}/new", text="seen") == (True, "written")
    assert await do(client, "look", "read", path=f"{data}/new") == (True, "seen")
    assert (data / "new").read_text() == "seen"
    assert (await do(client, "act", "write", path="/srv/earnest-test"))[0] is False


async def test_net_reaches_the_hosts_that_were_named_and_no_others(gateway: Start, data: Path, tier: str, web: int) -> None:
    live = await gateway({"s": server(tier, read=[str(data)], hosts=[f"localhost:{web}", "*.example.org"])})
    client = await live.opened("/s/s/mcp")
    found = await profiles(client)
    assert found["look"]["can_exfiltrate"]["value"] is False and found["act"]["open_world"]["value"] is True
    here = f"http://localhost:{web}/"
    for tool in ("fetch", "act"):
        assert await do(client, tool, "get", url=here) == (True, f"page for localhost:{web}")
    assert (await do(client, "look", "get", url=here))[0] is False
    for url in ("http://other.example/", f"http://127.0.0.2:{web}/", "https://other.example/"):
        assert (await do(client, "fetch", "get", url=url))[0] is False
    assert (await do(client, "fetch", "get", url=here, host="other.example"))[0] is False
    for _ in range(2):
        assert (await do(client, "fetch", "write", path=str(data / "notes.txt")))[0] is False
    assert violated(live, "fetch").keys() == {"read_only"}, "that it reaches further than it may breaks no word of its"


async def test_secrets_go_to_the_lanes_that_were_named(gateway: Start, tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMBIENT_TOKEN", "ambient-9b2c44f1")
    env = {"TOKEN": "t0ken-1f0a9c3e7b", "OTHER_TOKEN": "0ther-77aa12b3c4", "LEVEL": "warn"}
    live = await gateway({"s": server(tier, env=env, secrets={"net": ["TOKEN"]})})
    client = await live.opened("/s/s/mcp")
    given = {tool: json.loads((await do(client, tool, "environment"))[1]) for tool in ("look", "fetch", "act")}
    assert [tool for tool, one in given.items() if "TOKEN" in one] == ["fetch"]
    for one in given.values():
        assert one["LEVEL"] == "warn" and "OTHER_TOKEN" not in one and "AMBIENT_TOKEN" not in one
        assert one["HOME"] != os.environ["HOME"] and one["PATH"] == os.environ["PATH"]
    assert any("OTHER_TOKEN looks like a secret and goes to no lane" in line for line in live.lines)


async def test_a_call_whose_lane_is_lost_fails_and_goes_to_no_other(gateway: Start, tier: str) -> None:
    live = await gateway({"s": server(tier)})
    client = await live.opened("/s/s/mcp")
    before = {tool: await do(client, tool, "pid") for tool in ("look", "act")}
    await do(client, "act", "remember", value="x")
    done, said = await do(client, "act", "end")
    assert not done and "act lane" in said and "ended with status 3" in said
    assert await do(client, "look", "pid") == before["look"]
    assert await do(client, "act", "remember") == (True, "None"), "a new process of the same lane"


async def test_in_one_lane_there_is_one_process_and_nothing_is_enforced(gateway: Start, data: Path) -> None:
    live = await gateway({"s": server("", write=[str(data)], one_lane=True)})
    client = await live.opened("/s/s/mcp")
    found = await profiles(client)
    assert all(one["basis"] == "default" for name, one in found["look"].items() if isinstance(one, dict) and "basis" in one)
    assert {one["lane"] for one in found.values()} == {"act"}
    assert await do(client, "act", "remember", value="x") == (True, "x")
    assert await do(client, "look", "remember") == (True, "x")
    assert (await do(client, "act", "write", path="/srv/earnest-test"))[0] is False
    (served,) = live.app.world.catalogs.by_name("s")
    assert "one lane (nothing is enforced)" in of_lanes.told(served.launch)


async def test_a_lane_that_shows_another_tool_gets_no_call_for_the_one_that_was_shown(gateway: Start, data: Path) -> None:
    env = {"NETWORKED": "yes-1f0a9c3e7b"}
    live = await gateway({"s": server("", "by-network", env=env, write=[str(data)], secrets={"act": ["NETWORKED"]})})
    client = await live.opened("/s/s/mcp")
    done, said = await do(client, "act", "write", path=str(data / "new"))
    assert not done and "another 'act' in its act lane" in said and os.listdir(data) == ["notes.txt"]
    assert (await do(client, "look", "list", path=str(data)))[0] is True


async def test_a_dispatcher_runs_in_the_lane_of_what_it_runs(gateway: Start, data: Path) -> None:
    more = '[labels."s/act"]\ndispatcher = { name = "tool", arguments = "run" }\n[asking]\nhold_s = 0'
    live = await gateway({"s": server("", write=[str(data)])}, preset="balanced", more=more)
    client = await live.opened("/s/s/mcp")
    observe = await do(client, "look", "pid")
    answer = await client.call("act", {"tool": "look", "run": {"do": "pid"}})
    assert (not answer["result"].get("isError"), text_of(answer)) == observe
    lie = await client.call("act", {"tool": "look", "run": {"do": "write", "path": str(data / "new")}})
    assert lie["result"]["isError"] and os.listdir(data) == ["notes.txt"]
    asked = await client.call("act", {"tool": "act", "run": {"do": "pid"}})
    assert "waiting" in text_of(asked)


async def test_a_task_is_asked_for_in_the_lane_that_made_it(gateway: Start) -> None:
    live = await gateway({"s": server("")})
    client = await live.opened("/s/s/mcp")

    async def task(tool: str, **arguments: str) -> str:
        answer = await client.request("tools/call", {"name": tool, "arguments": arguments, "task": {}})
        return str(answer["result"]["task"]["taskId"])

    made = [await task(tool) for tool in ("look", "fetch", "act")]
    assert len(set(made)) == 3
    for id in made:
        assert (await client.request("tasks/get", {"taskId": id}))["result"]["status"] == "completed"
    twice = "one that all have"
    await task("act", id=twice)
    assert (await client.request("tasks/get", {"taskId": twice}))["result"]["status"] == "completed"
    await task("look", id=twice)
    assert "unknown task" in (await client.request("tasks/get", {"taskId": twice}))["error"]["message"]


async def test_asking_for_a_task_of_an_enforced_read_needs_no_person(gateway: Start) -> None:
    live = await gateway({"s": server("")}, preset="balanced", more="[asking]\nhold_s = 0")
    client = await live.opened("/s/s/mcp")
    answer = await client.request("tools/call", {"name": "look", "arguments": {"do": "pid"}, "task": {}})
    id = {"taskId": answer["result"]["task"]["taskId"]}
    assert (await client.request("tasks/get", id))["result"]["status"] == "completed"
    for method in ("tasks/result", "tasks/cancel"):
        assert "waiting" not in str(await client.request(method, id)), method
    assert live.app.approvals.listed(True) == []


async def test_a_tool_that_changes_while_its_lane_opens_gets_no_call_that_was_judged_before(
    gateway: Start, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = await gateway({"s": server("", write=[str(data)])})
    client = await live.opened("/s/s/mcp")
    await profiles(client)
    opening, go_on = asyncio.Event(), asyncio.Event()
    opened = ContainedLink.open

    async def held(link: ContainedLink) -> Any:
        opening.set()
        await go_on.wait()
        return await opened(link)

    monkeypatch.setattr(ContainedLink, "open", held)
    call = asyncio.create_task(do(client, "act", "write", path=str(data / "new")))
    await opening.wait()
    await do(client, "look", "change")
    (served,) = live.app.world.catalogs.by_name("s")
    await until(lambda: b"by now" in served.server.tools["act"].offered)
    go_on.set()
    done, said = await call
    assert not done and "changed 'act' while its act lane was opened" in said and os.listdir(data) == ["notes.txt"]


async def test_a_server_that_wants_its_secret_to_start_lists_from_the_lane_that_has_it(gateway: Start) -> None:
    told = {"env": {"TOKEN": "t0ken-1f0a9c3e7b"}, "secrets": {"net": ["TOKEN"]}}
    live = await gateway({"s": server("", "needs-token", **told)})
    client = await live.opened("/s/s/mcp")
    answer = await client.request("tools/list")
    assert "observe lane" in answer["error"]["message"]
    other = await gateway({"s": server("", "needs-token", list_lane="net", **told)}, name="other")
    client = await other.opened("/s/s/mcp")
    assert (await profiles(client))["look"]["lane"] == "observe"
    assert (await do(client, "fetch", "pid"))[0] is True
    done, said = await do(client, "look", "pid")
    assert not done and "observe lane" in said


async def test_without_a_sandbox_it_is_not_started(gateway: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def none(name: str = "") -> None:
        raise EarnestError("E1804", "nothing can be run in a sandbox here", "`earnest assay doctor` shows what was tried.")

    monkeypatch.setattr(tiers, "choose", none)
    monkeypatch.setattr(of_lanes, "_found", {})
    mark = tmp_path / "started"
    table = {"command": ["/bin/sh", "-c", f"touch {mark}"], "contain": True}
    live = await gateway({"s": table})
    client = await live.opened("/s/s/mcp")
    answer = await client.request("tools/list")
    assert "contained" in answer["error"]["message"] and not mark.exists()
    with pytest.raises(EarnestError) as caught:
        of_lanes.tier_of(Grants(tier="C"))
    assert caught.value.remedy.count("`earnest assay doctor`") == 1 and "Without `tier`" in caught.value.remedy


async def test_boxes_end_with_their_session_and_leave_nothing(gateway: Start, tier: str) -> None:
    live = await gateway({"s": server(tier)})
    client = await live.opened("/s/s/mcp")
    for tool in ("look", "act"):
        await do(client, tool, "write", path="/tmp/x" if tier == "A" else "x")
    states = [box.argv[-1] for _, link in live.app.gateway.links.all() if (box := link.box) is not None]
    pids = [link.pid for _, link in live.app.gateway.links.all()]
    assert len(states) == 2 and all(os.path.exists(os.path.dirname(state)) for state in states)
    await live.app.gateway.links.close()
    assert not any(os.path.exists(os.path.dirname(state)) for state in states)
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)
