"""Aliases are unique, stable and lead back; resources are routed to one server or to none."""

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earnest.core.errors import EarnestError
from earnest.protocol import names
from earnest.protocol.names import Route, aliases, client_prefix, resources
from properties import examples

SERVERS = ["a", "a__b", "acme", "acme_"]
TOOLS = ["b__c", "c", "_status", "status", "constructor", "files/read.v2", "t" * 60]
PAIRS = [(server, tool) for server in SERVERS for tool in TOOLS]


@pytest.mark.parametrize("prefix", ["", client_prefix("earnest"), "mcp__" + "s" * 37 + "__"])
def test_aliases_fit_are_unique_and_lead_back(prefix: str) -> None:
    table = aliases(PAIRS, prefix)
    assert len(set(table.of.values())) == len(PAIRS)
    for pair in PAIRS:
        alias = table.of[pair]
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", prefix + alias)
        assert table.back[alias] == pair


def test_order_and_other_servers_change_nothing() -> None:
    table = aliases(PAIRS, client_prefix("earnest"))
    shuffled = PAIRS[:]
    random.Random(3).shuffle(shuffled)
    assert aliases(shuffled, client_prefix("earnest")) == table
    alone = aliases([pair for pair in PAIRS if pair[0] == "acme"], client_prefix("earnest"))
    assert all(table.of[pair] == alias for pair, alias in alone.of.items())


def test_plain_names_stay_readable() -> None:
    table = aliases([("acme", "status"), ("git-hub", "a__b")])
    assert table.of == {("acme", "status"): "acme__status", ("git-hub", "a__b"): "git-hub__a__b"}


def test_a_separator_that_could_be_read_in_two_ways_is_hashed_on_both_sides_of_it() -> None:
    table = aliases([("acme_", "status"), ("acme", "_status"), ("a", "b__c"), ("a__b", "c")])
    assert table.of["acme_", "status"].startswith("acme___status-x")
    assert table.of["acme", "_status"].startswith("acme___status-x")
    assert table.of["acme_", "status"] != table.of["acme", "_status"]
    assert table.of["a", "b__c"] == "a__b__c"
    assert table.of["a__b", "c"].startswith("a__b__c-x")


def test_a_tool_cannot_pose_as_the_alias_of_another() -> None:
    victim = aliases([("s", "files/read")]).of["s", "files/read"]
    server, _, tool = victim.partition("__")
    table = aliases([("s", "files/read"), (server, tool)])
    assert table.of["s", "files/read"] == victim
    assert table.back[victim] == ("s", "files/read")
    assert len(table.back) == 2


def test_hashes_that_meet_grow_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "_DIGITS", 1)
    pairs = [("s", f"tool/{number}") for number in range(60)]
    table = aliases(pairs)
    assert len(table.back) == 60
    assert aliases(reversed(pairs)) == table


def test_a_prefix_that_leaves_no_room_is_an_error() -> None:
    with pytest.raises(EarnestError) as caught:
        aliases([("a", "b")], "x" * 50)
    assert caught.value.code == "E1702"


NAME = st.text(st.sampled_from("ab_-x0/é."), max_size=8)


@settings(max_examples=examples(200))
@given(st.lists(st.tuples(NAME, NAME), max_size=8), st.integers(0, 40))
def test_any_names(pairs: list[tuple[str, str]], prefix: int) -> None:
    table = aliases(pairs, "p" * prefix)
    assert set(table.of) == set(pairs)
    for alias, pair in table.back.items():
        assert re.fullmatch(r"[A-Za-z0-9_-]+", alias) and len(alias) + prefix <= 64
        assert aliases([pair], "p" * prefix).of[pair] == alias


ROUTER = resources(
    ["git", "fs", "web"],
    [
        ("git", "git://head"),
        ("fs", "file:///a"),
        ("web", "file:///a"),
        ("web", "earnest://resource/fs/file:///a"),
    ],
    [
        ("fs", "file:///{+path}"),
        ("git", "git://log/{rev}"),
        ("web", "https://{host}/x"),
        ("git", "https://{h}/x"),
    ],
)


@pytest.mark.parametrize(
    ("uri", "route"),
    [
        ("git://head", Route("git", "git://head")),
        ("file:///b/c", Route("fs", "file:///b/c")),
        ("git://log/main", Route("git", "git://log/main")),
        ("git://log/a/b", None),
        ("file:///a", None),
        ("https://h/x", None),
        ("earnest://resource/web/file:///a", Route("web", "file:///a")),
        ("earnest://resource/web/https://h/x", Route("web", "https://h/x")),
        ("earnest://resource/nobody/file:///a", None),
        ("earnest://resource/web/", None),
        ("earnest://resource/web", None),
        ("secret://x", None),
    ],
)
def test_a_uri_is_routed_to_one_server_or_to_none(uri: str, route: Route | None) -> None:
    assert ROUTER.route(uri) == route


def test_a_served_uri_leads_back() -> None:
    assert ROUTER.served("git", "git://head") == "git://head"
    for server, uri in [
        ("fs", "file:///a"),
        ("web", "file:///a"),
        ("web", "earnest://resource/fs/file:///a"),
    ]:
        served = ROUTER.served(server, uri)
        assert served == f"earnest://resource/{server}/{uri}"
        assert ROUTER.route(served) == Route(server, uri)


def test_a_server_name_with_a_slash_is_refused() -> None:
    with pytest.raises(EarnestError):
        resources(["a/b"], [], [])
