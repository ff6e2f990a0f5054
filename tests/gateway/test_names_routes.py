"""Names on routes of several servers: unique, stable, and leading back to the one server that is meant."""

import json
import re
from typing import Any

import pytest

from gateway.live import Start, names, reader, text_of

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


def echo_of(server: str, *tools: str, **more: Any) -> dict[str, Any]:
    calls = {name: [{"text": f"{server}:{name}"}] for name in tools}
    return {"tools": [reader(name) for name in tools], "calls": calls, **more}


HARD = {
    "a": ["b__c", "t", "x" * 80, "x" * 79 + "y", "with space", "with.dot", "Ünï", "t-x0123456789ab", "_t"],
    "a__b": ["c", "t"],
    "a_": ["t", "_t"],
}


@pytest.mark.parametrize("order", [list(HARD), list(reversed(HARD))])
async def test_aliases_are_unique_stable_and_lead_back(gateway: Start, scripted: Any, order: list[str]) -> None:
    servers = {name: {"command": scripted(echo_of(name, *HARD[name]), name)[0]} for name in HARD}
    seen: list[set[str]] = []
    for run in range(2):
        live = await gateway({name: servers[name] for name in order}, name=f"run{run}")
        client = await live.opened()
        listed = names(await client.request("tools/list"))
        assert len(set(listed)) == len(listed) == sum(len(tools) for tools in HARD.values())
        assert all(NAME.match(name) and len("mcp__earnest__" + name) <= 64 for name in listed)
        seen.append(set(listed))
        told = {text_of(await client.call(name)) for name in listed}
        assert told == {f"{server}:{tool}" for server, tools in HARD.items() for tool in tools}
        # A client that remembers names from before needs no list.
        fresh = await live.opened(era="modern")
        assert text_of(await fresh.call(listed[0])) in told
    assert seen[0] == seen[1]
    # One server alone gives its tools the names they had among others.
    (last,) = order[-1:]
    alone = await gateway({last: servers[last]}, name="alone")
    assert set(names(await (await alone.opened()).request("tools/list"))) < seen[0]


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_resources_prompts_and_completion_reach_their_own_server(gateway, scripted, era):
    servers: dict[str, Any] = {}
    records = {}
    for name in ("one", "two"):
        script = {
            "resources": [{"uri": "file:///same", "name": "same"}, {"uri": f"file:///{name}", "name": name}],
            "templates": [{"uriTemplate": f"{name}:///x/{{id}}", "name": "x"}, {"uriTemplate": "both:///{id}", "name": "b"}],
            "contents": {
                uri: [{"result": {"contents": [{"uri": uri, "text": name}]}}]
                for uri in ("file:///same", f"file:///{name}", f"{name}:///x/7", "both:///1")
            },
            "prompts": [{"name": "p"}],
            "messages": {"p": [{"result": {"messages": [{"role": "user", "content": {"type": "text", "text": name}}]}}]},
            "methods": {"completion/complete": [{"result": {"completion": {"values": [name]}}}]},
            "capabilities": {"tools": {}, "resources": {}, "prompts": {}, "completions": {}},
            "tools": [reader("t")],
        }
        command, records[name] = scripted(script, name)
        servers[name] = {"command": command}
    live = await gateway(servers)
    # Calls come first; no list was asked for by this client.
    client = await live.opened(era=era)

    async def read(uri: str) -> Any:
        message = await client.request("resources/read", {"uri": uri})
        return message["result"]["contents"][0]["text"] if "result" in message else message["error"]["code"]

    assert [await read("file:///one"), await read("file:///two"), await read("two:///x/7")] == ["one", "two", "two"]
    assert [await read("file:///same"), await read("both:///1"), await read("nobody:///x")] == [-32602] * 3
    listed = (await client.request("resources/list"))["result"]["resources"]
    assert len({one["uri"] for one in listed}) == 4
    same = [one["uri"] for one in listed if one["name"] == "same"]
    assert sorted([await read(uri) for uri in same]) == ["one", "two"]
    sent = [json.loads(text)["params"]["uri"] for text in records["one"].texts("resources/read")]
    assert sent == ["file:///one", "file:///same"]  # as the server itself calls them
    templates = (await client.request("resources/templates/list"))["result"]["resourceTemplates"]
    assert len({one["uriTemplate"] for one in templates}) == 4
    both = sorted(one["uriTemplate"].replace("{id}", "1") for one in templates if one["name"] == "b")
    assert [await read(uri) for uri in both] == ["one", "two"]
    prompts = names(await client.request("prompts/list"))
    assert len(set(prompts)) == 2
    for prompt in prompts:
        message = await client.request("prompts/get", {"name": prompt})
        owner = message["result"]["messages"][0]["content"]["text"]
        ref = {"ref": {"type": "ref/prompt", "name": prompt}, "argument": {"name": "a", "value": "v"}}
        completed = await client.request("completion/complete", ref)
        assert completed["result"]["completion"]["values"] == [owner]
    for record in records.values():
        assert {json.loads(text)["params"]["ref"]["name"] for text in record.texts("completion/complete")} == {"p"}
        assert {json.loads(text)["params"]["name"] for text in record.texts("prompts/get")} == {"p"}
    unknown = await client.request("prompts/get", {"name": "p"})
    assert unknown["error"]["code"] == -32602


async def test_a_rule_on_a_uri_sees_the_servers_own_whatever_the_client_calls_it(gateway, scripted, tmp_path):
    script = {"resources": [{"uri": "file:///secret", "name": "s"}], "tools": [reader("t")]}
    command, record = scripted(script)
    policy = tmp_path / "policy.toml"
    rule = '[[rule]]\nname = "no secrets"\nwhen = "args.uri == \'file:///secret\'"\nthen = "deny"\n'
    policy.write_text(rule)
    live = await gateway({"one": {"command": command}}, preset="balanced", more=f'policy = "{policy}"\n')
    client = await live.opened()
    for uri in ("file:///secret", "earnest://resource/one/file:///secret"):
        message = await client.request("resources/read", {"uri": uri})
        assert message["error"]["code"] == -31001, message
    assert not record.texts("resources/read")


async def test_updates_of_a_subscribed_resource_come_under_the_uri_the_client_knows(gateway, scripted):
    update = {"notify": {"method": "notifications/resources/updated", "params": {"uri": "file:///same"}}}
    servers = {}
    for name in ("one", "two"):
        script = {"era": "legacy", "resources": [{"uri": "file:///same", "name": name}], "tools": [reader("t")]}
        command, _ = scripted({**script, "calls": {"t": [update, {"text": "ok"}]}}, name)
        servers[name] = {"command": command}
    live = await gateway(servers)
    client = await live.opened()
    await client.listen()
    listed = (await client.request("resources/list"))["result"]["resources"]
    uri = next(one["uri"] for one in listed if one["name"] == "two")
    assert "result" in await client.request("resources/subscribe", {"uri": uri})
    await client.call("two__t")
    told = await client.notification("notifications/resources/updated")
    assert told["params"]["uri"] == uri


@pytest.mark.parametrize("same", [False, True])
async def test_a_task_belongs_to_the_server_that_made_it(gateway, scripted, same):
    servers, records = {}, {}
    for name in ("one", "two"):
        task = {"taskId": "task-1" if same else f"task-{name}", "status": "working", "createdAt": "x", "ttl": None}
        script = {
            "era": "legacy", "tools": [reader("t")], "calls": {"t": [{"result": {"task": task}}]},
            "methods": {"tasks/get": [{"result": {**task, "statusMessage": name}}]},
        }  # fmt: skip
        command, records[name] = scripted(script, name)
        servers[name] = {"command": command}
    live = await gateway(servers)
    client = await live.opened()
    for name in ("one", "two"):
        assert "result" in await client.call(f"{name}__t"), name
    if same:
        # Whose it is cannot be said any more, so nobody's is looked at.
        assert (await client.request("tasks/get", {"taskId": "task-1"}))["error"]["code"] == -32602
        return
    for name in ("one", "two"):
        message = await client.request("tasks/get", {"taskId": f"task-{name}"})
        assert message["result"]["statusMessage"] == name
    assert (await client.request("tasks/get", {"taskId": "other"}))["error"]["code"] == -32602
