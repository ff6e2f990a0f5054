"""Subscriptions to single resources, between clients and servers of either era, over pipes and over HTTP."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from earnest.gateway import watches
from gateway.live import Live, Start, reader, text_of
from servers.client import Client, HttpClient

ALL = '[[policy.rule]]\nname = "all"\nwhen = "true"\nthen = "allow"\nflow = "accept"\n'
_NOT_B = '[[policy.rule]]\nname = "not b"\nthen = "deny"\n'
NO_B = _NOT_B + "when = \"tool.name == 'resources/subscribe' && args.uri.endsWith('b')\"\n" + ALL
A, B, C = "file:///a", "file:///b", "file:///c"
SCRIPT: dict[str, Any] = {
    "tools": [reader("touch"), reader("end")],
    "calls": {
        "touch": [{"updated": A}, {"updated": B}, {"text": "touched"}],
        "end": [{"end_subscriptions": True}, {"text": "ended"}],
    },
    "resources": [{"uri": uri, "name": uri[-1]} for uri in (A, B, C)],
    "unwatchable": [C],
    "http": {"session": True, "strict": True},
}
SIDES = [(client, server, up) for client in ("legacy", "modern") for server in ("legacy", "modern") for up in ("stdio", "http")]
Rig = Callable[..., Any]


@pytest.fixture
async def rig(gateway: Start, scripted: Callable[..., Any], scripted_http: Callable[..., Any]) -> AsyncIterator[Rig]:
    async def make(era: str, server_era: str, up: str = "stdio", more: str = ALL, path: str = "/s/one/mcp") -> Any:
        script = {**SCRIPT, "era": server_era}
        if up == "stdio":
            command, record = scripted(script)
            table: dict[str, Any] = {"command": command}
        else:
            served = scripted_http(script)
            table, record = {"url": served.url}, served.record
        live: Live = await gateway({"one": table}, preset="balanced", more=more)
        client = await live.opened(path, era)
        if era == "legacy":
            await client.listen()
        return client, record, live

    yield make


async def subscribe(client: Client, *uris: str) -> Any:
    """Subscribe in the client's own words; the id of a modern subscription, and what is honoured."""
    if client.era == "legacy":
        honoured = []
        for uri in uris:
            answer = await client.request("resources/subscribe", {"uri": uri})
            honoured += [uri] if "result" in answer else []
        return None, honoured
    before = len([one for one in client.notifications if one["method"].endswith("acknowledged")])
    id = await client.begin(
        "subscriptions/listen", {"notifications": {"resourceSubscriptions": list(uris), "toolsListChanged": True}}
    )
    said = (await client.notification("notifications/subscriptions/acknowledged", count=before + 1))["params"]
    assert said["_meta"] == {"io.modelcontextprotocol/subscriptionId": id}
    assert said["notifications"].get("toolsListChanged") is True
    return id, said["notifications"].get("resourceSubscriptions", [])


def updates(client: Client) -> list[dict[str, Any]]:
    return [one["params"] for one in client.notifications if one["method"] == "notifications/resources/updated"]


@pytest.mark.parametrize(("era", "server_era", "up"), SIDES)
async def test_a_client_hears_of_the_resources_it_subscribed_to_until_it_does_not_want_to(
    rig: Rig, era: str, server_era: str, up: str
) -> None:
    client, record, _ = await rig(era, server_era, up)
    if era == "legacy" or server_era == "legacy":
        assert client.opened["result"]["capabilities"]["resources"]["subscribe"] is True
    if up == "http" and server_era == "legacy":
        await record.wait("http", method="GET")
    id, honoured = await subscribe(client, A)
    assert honoured == [A]
    assert text_of(await client.call("touch")) == "touched"
    await client.until(lambda: updates(client))
    (update,) = updates(client)
    meta = {"io.modelcontextprotocol/subscriptionId": id}
    assert update == ({"uri": A} if era == "legacy" else {"uri": A, "_meta": meta})
    # the end of it
    if era == "legacy":
        assert "result" in await client.request("resources/unsubscribe", {"uri": A})
    else:
        await client.cancel(id)
    if server_era == "legacy":
        await record.wait("message", 1)
        while not record.messages("resources/unsubscribe"):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert record.messages("resources/unsubscribe")[0]["params"]["uri"] == A
    else:
        await record.wait("left")
    await client.call("touch")
    await client.call("touch")
    assert len(updates(client)) == 1
    said = [one["method"] for one in record.messages() if one["method"].startswith("resources/")]
    assert said == (["resources/subscribe", "resources/unsubscribe"] if server_era == "legacy" else [])


@pytest.mark.parametrize(("era", "server_era"), [(e, s) for e in ("legacy", "modern") for s in ("legacy", "modern")])
async def test_a_uri_that_may_not_be_said_is_not_and_one_the_server_refuses_is_not_honoured(
    rig: Rig, era: str, server_era: str
) -> None:
    client, record, _ = await rig(era, server_era, more=NO_B)
    _, honoured = await subscribe(client, A, B, C)
    assert honoured == [A, C] if server_era == "legacy" else honoured == [A]
    assert B not in str(record.messages("resources/subscribe")) + str(record.messages("subscriptions/listen"))
    await client.call("touch")
    await client.until(lambda: updates(client))
    assert {one["uri"] for one in updates(client)} == {A}


@pytest.mark.parametrize("server_era", ["legacy", "modern"])
async def test_two_subscriptions_of_one_client_each_hear_and_end_for_themselves(rig: Rig, server_era: str) -> None:
    client, record, _ = await rig("modern", server_era)
    first, _ = await subscribe(client, A)
    second, _ = await subscribe(client, A, B)
    await client.call("touch")
    await client.until(lambda: len(updates(client)) == 3)
    told = sorted((one["_meta"]["io.modelcontextprotocol/subscriptionId"], one["uri"]) for one in updates(client))
    assert told == sorted([(first, A), (second, A), (second, B)])
    await client.cancel(second)
    if server_era == "legacy":
        while not record.messages("resources/unsubscribe"):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert [one["params"]["uri"] for one in record.messages("resources/unsubscribe")] == [B]
    else:
        await record.wait("left")
    await client.call("touch")
    await client.until(lambda: len(updates(client)) == 4)
    assert updates(client)[3]["_meta"]["io.modelcontextprotocol/subscriptionId"] == first


async def test_a_subscription_that_a_modern_server_ends_is_made_again_for_a_legacy_client(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watches, "FIRST_PAUSE_S", 0.01)
    client, record, _ = await rig("legacy", "modern")
    await subscribe(client, A)
    await client.call("end")
    while len(listens(record)) < 2:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)
    await client.call("touch")
    await client.until(lambda: updates(client))
    await client.request("resources/unsubscribe", {"uri": A})


def listens(record: Any) -> list[Any]:
    return [one for one in record.messages("subscriptions/listen") if "resourceSubscriptions" in one["params"]["notifications"]]


async def test_a_subscription_that_a_modern_server_ends_ends_for_a_modern_client(rig: Rig) -> None:
    client, _, live = await rig("modern", "modern")
    id, _ = await subscribe(client, A)
    await client.call("end")
    assert (await client.answer(id))["result"]["resultType"] == "complete"
    (session,) = live.app.gateway.sessions
    assert not session.listening


async def test_a_lost_server_ends_a_modern_clients_subscription_to_its_resources(rig: Rig) -> None:
    client, _, live = await rig("modern", "legacy")
    id, honoured = await subscribe(client, A)
    assert honoured == [A]
    live.app.gateway.links.release(lambda owner: owner[0] == "one")
    assert (await client.answer(id, timeout=10))["result"]["resultType"] == "complete"


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_on_the_route_of_all_servers_a_resource_keeps_its_name(rig: Rig, era: str) -> None:
    client, _, _ = await rig(era, "modern", path="/mcp")
    assert client.opened["result"]["capabilities"]["resources"]["subscribe"] is True
    await client.request("resources/list")
    _, honoured = await subscribe(client, A)
    assert honoured == [A]
    await client.call("one__touch")
    await client.until(lambda: updates(client))
    assert updates(client)[0]["uri"] == A


async def test_more_than_the_bound_is_refused(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watches, "MOST", 1)
    client, _, live = await rig("legacy", "modern")
    assert (await subscribe(client, A, B))[1] == [A]
    refused = await client.request("resources/subscribe", {"uri": B})
    assert "1 resources" in refused["error"]["message"]
    assert isinstance(client, HttpClient)
    with contextlib.suppress(ConnectionError):
        await client.post(b"", client.standard_headers({}), method="DELETE")
    assert not live.app.gateway.watches._kept


async def test_a_modern_client_has_a_bounded_number_of_subscriptions_at_a_server(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watches, "MOST", 1)
    client, _, _ = await rig("modern", "modern")
    assert (await subscribe(client, A))[1] == [A]
    assert (await subscribe(client, B))[1] == []
