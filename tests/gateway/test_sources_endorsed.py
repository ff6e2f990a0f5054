"""A person's word for one source in one conversation: what it reads sets no label, and nothing else is let through by it."""

import json
from typing import Any

import pytest

from earnest.core.errors import EarnestError
from earnest.core.flow import PRIVATE, UNTRUSTED
from earnest.core.values import tokens
from gateway.harness import Person
from gateway.live import Live, Start, reader

PAGE = {"result": {"content": [{"type": "text", "text": "write to desk@parcels.example"}]}}
LABELLED = {"result": {**PAGE["result"], "_meta": {"io.modelcontextprotocol/trust-annotations": {"untrusted": True}}}}
MORE = '[labels."s/get"]\nreads_private = false\n[labels."s/other"]\nreads_private = false\n'
HOME, AWAY = {"url": "https://docs.example/a"}, {"url": "https://evil.example/a"}


async def started(gateway: Start, scripted: Any, page: dict[str, Any] = PAGE) -> Live:
    command, _ = scripted({"tools": [reader("get"), reader("other")], "calls": {"get": page, "other": page}})
    return await gateway({"s": {"command": command}}, more=MORE)


async def endorsed(live: Live, arguments: dict[str, str], source: bool = True, **person: bool) -> str:
    (key,) = {session.client.key for session in live.app.gateway.sessions}
    request = {
        "conversation": "/".join(key),
        "server": "s",
        "tool": "get",
        "arguments": json.dumps(arguments),
        "source": source,
    }
    return str((await live.app.ops["conversation-endorse"](request, Person(**person)))["receipt"])  # type: ignore[arg-type]


def labels(live: Live) -> int:
    bits = 0
    for key in live.app.conversations.keys():  # noqa: SIM118 (no mapping)
        bits |= live.app.conversations.labels(key)
    return bits


async def opened(live: Live) -> Any:
    client = await live.opened("/s/s/mcp")
    await client.request("tools/list")
    key = next(iter(live.app.gateway.sessions)).client.key
    live.app.conversations.open(key, minted=True)
    return client


async def test_what_it_reads_sets_no_label_and_is_still_no_word_of_the_persons(gateway: Start, scripted: Any) -> None:
    live = await started(gateway, scripted)
    client = await opened(live)
    (key,) = {session.client.key for session in live.app.gateway.sessions}
    ledger = live.app.engine.flows.open((*key, "session:one"))
    receipt = await endorsed(live, HOME)
    told = await client.call("get", HOME)
    assert told["result"]["_meta"]["dev.earnest/labels"] == {"private": False, "untrusted": False} and labels(live) == 0
    assert all(ledger.values.untrusted.token(token.key) for token in tokens("desk@parcels.example"))
    request = {"server": "s", "tool": "get", "arguments": json.dumps(HOME), "conversation": "/".join(key)}
    explained = await live.app.ops["explain"](request, Person())  # type: ignore[arg-type]
    value = explained["profile"]["sees_untrusted"]
    assert value["value"] is False and receipt in value["source"]
    live.app.records.flush()
    written = b"".join(path.read_bytes() for path in (live.folder / "instance" / "receipts").rglob("*") if path.is_file())
    assert b"sets no label of strangers' text in this conversation" in written


@pytest.mark.parametrize(("name", "arguments"), [("get", AWAY), ("get", {}), ("get", {**HOME, "more": "x"}), ("other", HOME)])
async def test_it_is_bound_to_the_tool_and_each_value(
    gateway: Start, scripted: Any, name: str, arguments: dict[str, str]
) -> None:
    live = await started(gateway, scripted)
    client = await opened(live)
    await endorsed(live, HOME)
    await client.call(name, arguments)
    assert labels(live) == UNTRUSTED


async def test_what_the_server_labels_and_what_was_read_before_counts(gateway: Start, scripted: Any) -> None:
    live = await started(gateway, scripted, LABELLED)
    client = await opened(live)
    await endorsed(live, HOME)
    await client.call("get", HOME)
    assert labels(live) == UNTRUSTED
    await endorsed(live, HOME)
    assert labels(live) == UNTRUSTED


async def test_a_yes_to_a_call_is_none_to_what_it_reads_nor_the_other_way_round(gateway: Start, scripted: Any) -> None:
    live = await started(gateway, scripted)
    client = await opened(live)
    await endorsed(live, HOME, source=False)
    await client.call("get", HOME)
    assert labels(live) & ~PRIVATE == UNTRUSTED
    key = next(iter(live.app.gateway.sessions)).client.key
    (row,) = live.app.endorsements.listed(key)
    assert row.kind == "call"


async def test_a_model_cannot_say_it(gateway: Start, scripted: Any) -> None:
    live = await started(gateway, scripted)
    await opened(live)
    with pytest.raises(EarnestError, match="E1604"):
        await endorsed(live, HOME, by_model=True)
