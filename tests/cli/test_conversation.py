"""`earnest conversation`."""

import json
import os

import pytest


@pytest.fixture
def tainted(demo):
    """A conversation that has read a stranger's letter; its name and the flag of its configuration."""
    assert not demo.client().call("mailbox", "read", {"id": "3-parcel"}).is_error
    return f"user:{os.getuid()}", ("--config", demo.ready["config"])


def test_a_conversation_is_listed_with_what_set_its_labels(tainted, cli):
    name, flag = tainted
    rows = json.loads(cli("conversation", "list", "--json", *flag).out)
    row = next(row for row in rows if row["name"] == name)
    assert row["labels"] == ["private", "untrusted"]
    assert row["causes"]["untrusted"]["first"][0]["server"] == "mailbox"
    assert "untrusted: mailbox/read (gateway." in cli("conversation", "list", *flag).out


def test_only_a_person_ends_one_and_its_labels_go_with_a_receipt(tainted, cli, at_terminal):
    name, flag = tainted
    refused = cli("conversation", "end", name, *flag, input="y\n")
    assert refused.code == 2 and "E1610" in refused.err
    term = at_terminal("conversation", "end", name, *flag)
    assert "carries private, untrusted" in term.expect(r"Is it over.*\[y/N\]")
    term.type("n")
    assert term.end() == 1
    term = at_terminal("conversation", "end", name, *flag)
    term.expect(r"\[y/N\]")
    term.type("y")
    term.expect(rf"Ended: {name}")
    assert term.end() == 0
    left = {row["name"]: row["labels"] for row in json.loads(cli("conversation", "list", "--json", *flag).out)}
    assert left.get(name, []) == []
    events = [json.loads(line) for line in cli("receipts", "--events", "--json", *flag).out.splitlines()]
    assert any(line.get("event") == "conversation-ended" and "private, untrusted" in line["text"] for line in events)
    unknown = cli("conversation", "end", "user:none", *flag)
    assert unknown.code == 2 and "E1606" in unknown.err


def test_an_endorsement_lets_one_destination_through(tainted, cli, at_terminal, demo, calling):
    name, flag = tainted
    letter = {"to": "ada@home.example", "subject": "s", "body": "b"}
    words = ("conversation", "endorse", name, "mailbox/send", "--args", json.dumps(letter), *flag)
    assert "E1610" in cli(*words).err
    term = at_terminal(*words)
    assert "ada@home.example" in term.expect(r"\[y/N\]")
    term.type("y")
    term.expect("Endorsed: mailbox/send with")
    assert term.end() == 0
    assert not calling(demo.client(), "mailbox", "send", letter).result(60).is_error
    calling(demo.client(), "mailbox", "send", {**letter, "to": "desk@parcels.example"})
    assert "desk@parcels.example" in demo.line()["ask"]["text"]
    wrong = cli("conversation", "endorse", name, "mailbox", "--args", "{}", *flag)
    assert wrong.code == 2 and "E1018" in wrong.err


def test_a_source_is_endorsed_for_what_it_reads_alone(tainted, cli, at_terminal, demo):
    name, flag = tainted
    words = ("conversation", "endorse", name, "mailbox/read", "--args", '{"id": "1-invoice"}', "--source", *flag)
    assert "E1610" in cli(*words).err
    term = at_terminal(*words)
    assert "no text of strangers" in term.expect(r"\[y/N\]")
    term.type("y")
    term.expect("Endorsed: mailbox/read with")
    assert term.end() == 0
    assert "endorsed source: read with" in cli("conversation", "list", *flag).out
