"""Subscriptions: what was asked for is heard, and nothing else."""

import json

import pytest

from earnest.protocol import subscriptions
from earnest.protocol.envelope import WireError, parse
from earnest.protocol.subscriptions import Wanted, wanted

META = "io.modelcontextprotocol/subscriptionId"
ALL = Wanted(True, True, True, ("u",))


def test_reads_what_is_wanted() -> None:
    raw = b'{"notifications":{"toolsListChanged":true,"promptsListChanged":false,"resourceSubscriptions":["u","u","v"],"x":1}}'
    assert wanted(raw) == Wanted(tools=True, resources=("u", "v"))
    assert wanted(b'{"notifications":{}}') == Wanted()


@pytest.mark.parametrize(
    "raw",
    [b"", b"{}", b'{"notifications":null}', b'{"notifications":{"toolsListChanged":"true"}}', b'{"notifications":[]}'],
)
def test_refuses_what_says_nothing(raw: bytes) -> None:
    with pytest.raises(WireError) as caught:
        wanted(raw)
    assert caught.value.rpc_code == -32602


def test_a_subscription_names_a_bounded_number_of_resources() -> None:
    many = json.dumps({"notifications": {"resourceSubscriptions": [str(number) for number in range(1001)]}}).encode()
    with pytest.raises(WireError) as caught:
        wanted(many)
    assert caught.value.code == "E1707"


def test_hears_what_was_asked_for() -> None:
    assert ALL.hears("notifications/tools/list_changed") and not Wanted().hears("notifications/tools/list_changed")
    assert ALL.hears("notifications/resources/updated", "u") and not ALL.hears("notifications/resources/updated", "v")
    assert not ALL.hears("notifications/progress") and not ALL.hears("notifications/message")
    assert ALL.only(Wanted(tools=True, resources=("u", "v"))) == Wanted(tools=True, resources=("u",))


def test_messages_carry_the_id_of_the_request() -> None:
    opened = parse(subscriptions.acknowledged(b'"s1"', Wanted(tools=True)))
    assert opened.method == "notifications/subscriptions/acknowledged"
    assert json.loads(opened.params) == {"_meta": {META: "s1"}, "notifications": {"toolsListChanged": True}}
    closed = parse(subscriptions.ended(b"7"))
    assert closed.id == b"7" and json.loads(closed.result)["_meta"] == {META: 7}
