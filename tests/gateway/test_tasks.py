"""Tasks: within an era they pass, are their makers', and label what they bring when fetched; across eras they are refused."""

import json
from pathlib import Path

import msgspec
import pytest

from earnest.core.flow import PRIVATE, UNTRUSTED
from earnest.gateway import tasks
from earnest.protocol.envelope import Message
from gateway.harness import Arrived, Bench, Json, ScriptedClient, ScriptedServer, bench, reads, settle, until

TRUSTED = {"s": "trusted"}
ALL = '[[policy.rule]]\nname = "all"\nwhen = "true"\nthen = "allow"\nflow = "accept"\n'
QUIET = "".join(
    f'[labels."s/{name}"]\nreads_private = false\nsees_untrusted = false\n' for name in ("read", "tasks/get", "tasks/result")
)
LEAK = {"ifc": {"confidentiality": "private", "integrity": "untrusted"}}
EXTENSION: Json = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


class Worker:
    """A server that makes a task of each call of a tool and says of a task what it is told to."""

    def __init__(self, modern: bool) -> None:
        self.server = ScriptedServer("s", [reads("read")], modern=modern)
        self.server.capabilities = {"tools": {}, "tasks": {"list": {}, "cancel": {}}, **EXTENSION}
        self.modern = modern
        self.made = 0
        self.ids: list[str] = []
        self.says: Json = {}
        self.server.on_call = self.on_call

    def on_call(self, arrived: Arrived) -> None:
        if arrived.method == "tools/call":
            self.made += 1
            id = self.ids[self.made - 1] if self.ids else f"t-{self.made}"
            task = {"taskId": id, "status": "working", "ttl": 1, "createdAt": "2026-01-01T00:00:00Z"}
            arrived.answer({"resultType": "task", **task} if self.modern else {"task": task})
        elif arrived.method == "tasks/list":
            arrived.answer({"tasks": [{"taskId": f"t-{n + 1}", "status": "working"} for n in range(self.made)], "x-own": 1})
        else:
            arrived.answer({**({"resultType": "complete"} if self.modern else {}), **self.says})


def other_person(client: ScriptedClient, name: str = "user:2") -> ScriptedClient:
    who = client.session.client
    client.session.client = msgspec.structs.replace(who, principal=name, key=(name, *who.key[1:]))
    return client


async def task_of(client: ScriptedClient) -> str:
    result = await client.call("read", {}, **({} if client.modern else {"task": {"ttl": 60}})).result()
    id: str = result["taskId"] if client.modern else result["task"]["taskId"]
    return id


def labels(b: Bench, client: ScriptedClient) -> int:
    return b.app.conversations.labels(client.session.client.key)


@pytest.mark.parametrize("modern", [False, True])
async def test_what_a_task_brings_is_labelled_when_it_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, modern: bool
) -> None:
    w = Worker(modern)
    async with bench(tmp_path, monkeypatch, w.server, text=QUIET + ALL, trust=TRUSTED) as b:
        client = await b.client(modern=modern, capabilities=EXTENSION if modern else {})
        id = await task_of(client)
        assert w.server.calls[0].members.get("task") == (None if modern else {"ttl": 60})
        before = labels(b, client)
        inner = {"content": [{"type": "text", "text": "secret"}], "_meta": LEAK}
        w.says = {"taskId": id, "status": "completed", "result": inner} if modern else inner
        fetched = await client.request("tasks/get" if modern else "tasks/result", {"taskId": id}).result()
        assert {**fetched, "_meta": None} == {**w.says, "_meta": None, **({"resultType": "complete"} if modern else {})}
        assert (before, labels(b, client)) == (0, PRIVATE | UNTRUSTED)
        assert [r.method for r in b.receipts.records.values() if hasattr(r, "method")] == [
            "tools/call",
            "tasks/get" if modern else "tasks/result",
        ]


@pytest.mark.parametrize(
    ("modern", "method"),
    [
        (False, "tasks/get"),
        (False, "tasks/result"),
        (False, "tasks/cancel"),
        (True, "tasks/get"),
        (True, "tasks/cancel"),
        (True, "tasks/update"),
    ],
)
async def test_a_task_is_its_makers_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, modern: bool, method: str) -> None:
    w = Worker(modern)
    async with bench(tmp_path, monkeypatch, w.server, text=ALL, trust=TRUSTED) as b:
        client = await b.client(modern=modern)
        id = await task_of(client)
        stranger = other_person(await b.client(modern=modern))
        for asking, wanted in ((stranger, id), (client, "t-9")):
            answer = await asking.request(method, {"taskId": wanted}).over()
            assert (answer["error"]["code"], answer["error"]["message"]) == (-32602, tasks.UNKNOWN)
        assert [call.method for call in w.server.calls] == ["tools/call"]
        again = await b.client(modern=modern, process="2")
        assert "result" in await again.request(method, {"taskId": id}).over(), "another session of the same person"
        assert w.server.calls[-1].members["taskId"] == id


async def test_an_id_that_two_people_were_given_is_neithers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    w = Worker(False)
    w.ids = ["same", "same"]
    async with bench(tmp_path, monkeypatch, w.server, text=ALL, trust=TRUSTED) as b:
        one, two = await b.client(), other_person(await b.client())
        assert await task_of(one) == await task_of(two) == "same"
        for client in (one, two):
            assert "error" in await client.request("tasks/get", {"taskId": "same"}).over()


async def test_a_list_of_tasks_shows_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    w = Worker(False)
    async with bench(tmp_path, monkeypatch, w.server, text=ALL, trust=TRUSTED) as b:
        one, two = await b.client(), other_person(await b.client())
        await task_of(one)
        await task_of(two)
        for client, id in ((one, "t-1"), (two, "t-2")):
            result = await client.request("tasks/list", {}).result()
            assert ([task["taskId"] for task in result["tasks"]], result["x-own"]) == ([id], 1)


async def test_news_of_a_task_reach_its_maker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    w = Worker(False)
    async with bench(tmp_path, monkeypatch, w.server, text=ALL, trust=TRUSTED) as b:
        client = await b.client()
        id = await task_of(client)
        for told in (id, "t-9"):
            params = json.dumps({"taskId": told, "status": "completed"}).encode()
            w.server.links[0].on_notification(Message("notification", b"", "notifications/tasks/status", params))
        await settle()
        assert [one["params"]["taskId"] for one in client.told] == [id]


async def test_answers_for_a_task_are_judged_like_any(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    w = Worker(True)
    no = '[[policy.rule]]\nname = "no"\nwhen = "tool.name == \'answer to elicitation/create\'"\nthen = "deny"\n'
    async with bench(tmp_path, monkeypatch, w.server, text=no + ALL, trust=TRUSTED) as b:
        client = await b.client(modern=True)
        id = await task_of(client)
        given = {"who": {"action": "accept", "content": {"name": "Ada"}}}
        answer = await client.request("tasks/update", {"taskId": id, "inputResponses": given}).over()
        assert answer["error"]["code"] == -31001 and len(w.server.calls) == 1
        declined = {"who": {"action": "decline"}}
        assert "result" in await client.request("tasks/update", {"taskId": id, "inputResponses": declined}).over()
        assert w.server.calls[-1].members["inputResponses"] == declined


@pytest.mark.parametrize("modern", [False, True])
async def test_across_eras_tasks_are_not_offered_and_refused_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, modern: bool
) -> None:
    w = Worker(not modern)
    capable: Json = {"tasks": {"requests": {}}, **EXTENSION}
    async with bench(tmp_path, monkeypatch, w.server, text=ALL, trust=TRUSTED) as b:
        client = await b.client(modern=modern, capabilities=capable)
        hello = await client.request("server/discover" if modern else "initialize", {"protocolVersion": "2025-11-25"}).result()
        assert "tasks" not in str(hello["capabilities"])
        assert "tasks" not in str(json.loads(w.server.links[0].client.capabilities_in(not modern)))
        for method in ("tasks/get", "tasks/cancel", "tasks/update" if modern else "tasks/list"):
            answer = await client.request(method, {"taskId": "t-1"}).over()
            assert answer["error"]["code"] == -32601 and "era" in answer["error"]["message"]
        assert w.server.calls == []


async def test_a_server_is_not_told_of_tasks_of_its_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    w = Worker(False)
    async with bench(tmp_path, monkeypatch, w.server, text=ALL, trust=TRUSTED) as b:
        client = await b.client(capabilities={"tasks": {"cancel": {}}, "roots": {}})
        await task_of(client)
        assert json.loads(w.server.links[0].client.capabilities_in(False)) == {"roots": {}}


async def test_the_oldest_are_forgotten_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "MOST", 2)
    w = Worker(False)
    async with bench(tmp_path, monkeypatch, w.server, text=ALL, trust=TRUSTED) as b:
        client = await b.client()
        ids = [await task_of(client) for _ in range(3)]
        found = ["result" in await client.request("tasks/get", {"taskId": id}).over() for id in ids]
        assert found == [False, True, True]


RESEARCH: Json = {**reads("read"), "execution": {"taskSupport": "required"}}


class Researcher(Worker):
    """A legacy server with a tool that can only be called as a task; its results come when the test says so."""

    def __init__(self) -> None:
        super().__init__(False)
        self.server.tools = [RESEARCH]
        self.waiting: list[Arrived] = []

    def on_call(self, arrived: Arrived) -> None:
        if arrived.method == "tasks/result":
            self.waiting.append(arrived)
        else:
            super().on_call(arrived)


async def test_a_legacy_tool_that_needs_a_task_is_one_long_call_for_a_modern_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    w = Researcher()
    async with bench(tmp_path, monkeypatch, w.server, text=QUIET + ALL, trust=TRUSTED) as b:
        client = await b.client(modern=True)
        call = client.call("read", {"q": 1})
        await until(lambda: w.waiting)
        first, second = w.server.calls
        assert (first.members["task"], first.members["arguments"]) == ({}, {"q": 1})
        assert second.members == {"taskId": "t-1"} and labels(b, client) == 0
        b.clock.advance(300)
        b.app.gateway._tick()
        assert call.answer is None, "a task takes longer than a call may"
        w.waiting[0].text("found", _meta=LEAK)
        assert await call.said() == "found" and labels(b, client) == PRIVATE | UNTRUSTED
        await settle()
        assert (b.decisions(), b.outcomes()) == (["allow"], ["ok"]) and not b.app.gateway.tasks.followed
        answer = await client.request("tasks/get", {"taskId": "t-1"}).over()
        assert answer["error"]["code"] == -32601, "it is no task of the client's"


@pytest.mark.parametrize("end", ["cancel", "time"])
async def test_a_task_that_nobody_waits_for_any_more_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    w = Researcher()
    async with bench(tmp_path, monkeypatch, w.server, text=ALL, trust=TRUSTED) as b:
        client = await b.client(modern=True)
        call = client.call("read", {})
        await until(lambda: w.waiting)
        if end == "cancel":
            client.cancel(call.id)
        else:
            b.clock.advance(601)
            b.app.gateway._tick()
        await until(lambda: w.server.asked)
        assert w.server.asked == [("tasks/cancel", {"taskId": "t-1"})] and w.waiting[0].cancelled is not None
        assert not b.app.gateway.tasks.followed


async def test_a_legacy_client_is_given_the_task_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    w = Researcher()
    async with bench(tmp_path, monkeypatch, w.server, text=ALL, trust=TRUSTED) as b:
        client = await b.client()
        assert "task" in await client.call("read", {}).result()
        assert "task" not in w.server.calls[0].members
