"""The method table holds what the schemas say, and nothing that is not in it is known."""

import pytest

from earnest.core.hints import RawHints
from earnest.protocol.methods import ANSWERS, METHODS, Era, Side, answer, lookup


def test_agrees_with_the_official_schemas() -> None:
    schema = pytest.importorskip("mcp_types.methods")
    for table, sender, request in (
        (schema.CLIENT_REQUESTS, "client", True),
        (schema.CLIENT_NOTIFICATIONS, "client", False),
        (schema.SERVER_REQUESTS, "server", True),
        (schema.SERVER_NOTIFICATIONS, "server", False),
    ):
        for version, era in (("2025-11-25", "legacy"), ("2026-07-28", "modern")):
            official = {name for name, revision in table if revision == version}
            ours = {row.name for row in METHODS if (row.sender, row.era, row.request) == (sender, era, request)}
            extra = {name for name in ours - official if not name.startswith(("tasks/", "tools/resolve"))}
            assert official <= ours
            assert extra <= {"notifications/tasks/status"}


@pytest.mark.parametrize(
    ("method", "era", "sender"),
    [
        ("tools/nuke", "modern", "client"),
        ("", "modern", "client"),
        ("Tools/call", "modern", "client"),
        ("initialize", "modern", "client"),
        ("server/discover", "legacy", "client"),
        ("tools/call", "legacy", "server"),
        ("sampling/createMessage", "modern", "server"),
        ("elicitation/create", "legacy", "client"),
        ("resources/subscribe", "modern", "client"),
        ("tasks/result", "modern", "client"),
        ("tasks/get", "modern", "server"),
        ("notifications/progress", "modern", "client"),
    ],
)
def test_unknown_is_none(method: str, era: Era, sender: Side) -> None:
    assert lookup(method, era, sender) is None


def test_every_message_with_chosen_data_is_judged() -> None:
    judged = {row.name for row in METHODS if row.judged and row.sender == "client"}
    assert judged == {
        "tools/call",
        "tools/resolve",
        "resources/read",
        "resources/subscribe",
        "resources/unsubscribe",
        "subscriptions/listen",
        "prompts/get",
        "completion/complete",
        "tasks/get",
        "tasks/result",
        "tasks/update",
        "tasks/cancel",
    }
    assert all(row.judged and row.kind == "answer" for row in ANSWERS.values())
    assert answer("ping") is None and answer("sampling/createMessage") is not None


def test_a_method_claims_read_only_at_most() -> None:
    assert {row.claims for row in METHODS} == {RawHints(), RawHints(read_only=True)}
    for name in ("tools/call", "tasks/update", "tasks/cancel"):
        for era in ("legacy", "modern"):
            row = lookup(name, era)
            assert row is None or row.claims == RawHints()


def test_headers_name_the_object_only_in_the_modern_era() -> None:
    named = {(row.name, row.names) for row in METHODS if row.mcp_name}
    assert named == {
        ("tools/call", "name"),
        ("prompts/get", "name"),
        ("resources/read", "uri"),
        ("tasks/get", "taskId"),
        ("tasks/update", "taskId"),
        ("tasks/cancel", "taskId"),
    }
    assert all(row.era == "modern" for row in METHODS if row.mcp_name or row.cacheable or row.may_ask)


def test_what_may_be_cached_agrees_with_the_official_schemas() -> None:
    schema = pytest.importorskip("mcp_types.methods")
    assert {row.name for row in METHODS if row.cacheable} == set(schema.CACHEABLE_METHODS)
    assert {row.name for row in METHODS if row.may_ask} == set(schema.INPUT_REQUIRED_METHODS)
