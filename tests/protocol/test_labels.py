"""Labels restrict from anyone; what relaxes is kept apart."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earnest.core import canonical
from earnest.protocol import labels
from earnest.protocol.labels import Facts, Labelled, meta_bits, settle, tool_labels
from properties import examples

TA = "io.modelcontextprotocol/trust-annotations"
AM = "io.modelcontextprotocol/action-metadata"


def labelled(private: bool | None, untrusted: bool | None) -> Labelled:
    return Labelled(
        Facts(private or None, untrusted or None),
        Facts(False if private is False else None, False if untrusted is False else None),
    )


META: list[tuple[Any, bool | None, bool | None]] = [
    (None, None, None),
    ({}, None, None),
    ({"a.example/k": 1}, None, None),
    ({TA: {"sensitive": True}}, True, None),
    ({TA: {"untrusted": True, "sensitive": False}}, False, True),
    ({TA: {"sensitive": False, "untrusted": False}}, False, False),
    ({TA: {"sensitive": "false"}}, True, None),
    ({TA: {"sensitive": 0}}, True, None),
    ({TA: {"sensitive": None}}, None, None),
    ({TA: "untrusted"}, True, True),
    ({"ifc": {"integrity": "trusted", "confidentiality": "public"}}, False, False),
    ({"ifc": {"integrity": "untrusted", "confidentiality": ["alice"]}}, True, True),
    ({"ifc": {"integrity": "Trusted"}}, None, True),
    ({"ifc": 1}, True, True),
    ({"annotations": {"openWorldHint": True}}, None, True),
    ({"annotations": {"openWorldHint": False}}, None, False),
    ({"annotations": {"maliciousActivityHint": True}}, None, True),
    ({"annotations": {"maliciousActivityHint": False}}, None, None),
    ({"annotations": {"returnMetadata": {"source": "untrustedPublic", "sensitivity": "none"}}}, False, True),
    (
        {"annotations": {"returnMetadata": {"source": ["system", "user"], "sensitivity": ["none", "pii"]}}},
        True,
        False,
    ),
    (
        {"annotations": {"returnMetadata": {"source": [], "sensitivity": {"regulated": {"scopes": []}}}}},
        True,
        True,
    ),
    ({"annotations": {"sensitiveHint": "high"}}, True, None),
    ({"annotations": {"sensitiveHint": "low"}}, None, None),
    ({"annotations": {"privateHint": True, "unsafeOutputHint": True}}, True, True),
    ({"annotations": {"secretHint": False, "unsafeOutputHint": False}}, False, False),
    ({"annotations": ["x"]}, True, True),
    ({AM: {"returnMetadata": {"source": "first-party", "sensitivity": "operational"}}}, True, False),
    ("labels", True, True),
    # One vocabulary restricts and another relaxes: what restricts is left.
    ({TA: {"untrusted": False}, "ifc": {"integrity": "untrusted"}}, None, True),
    ({TA: {"sensitive": False}, "ifc": {"confidentiality": "secret"}}, True, None),
]


@pytest.mark.parametrize(("meta", "private", "untrusted"), META)
def test_result_meta(meta: Any, private: bool | None, untrusted: bool | None) -> None:
    assert settle(meta_bits(meta)) == labelled(private, untrusted)


TOOLS: list[tuple[Any, bool | None, bool | None]] = [
    ({"name": "t"}, None, None),
    ({"name": "t", "annotations": {"openWorldHint": False, "readOnlyHint": True}}, None, None),
    ({"name": "t", "annotations": "x"}, None, None),
    ({"name": "t", "annotations": {"secretHint": True}}, True, None),
    ({"name": "t", "annotations": {"untrustedContentHint": True}}, None, True),
    ({"name": "t", "_meta": {TA: {"sensitive": True, "untrusted": False}}}, True, False),
    ({"name": "t", "annotations": {AM: {"returnMetadata": {"source": "external"}}}}, None, True),
    ({"name": "t", "_meta": 4}, True, True),
    (["no tool"], True, True),
]


@pytest.mark.parametrize(("tool", "private", "untrusted"), TOOLS)
def test_tool(tool: Any, private: bool | None, untrusted: bool | None) -> None:
    assert tool_labels(json.dumps(tool).encode()) == labelled(private, untrusted)


def test_a_tool_that_cannot_be_read_is_worst() -> None:
    assert tool_labels(b"{") == labelled(True, True)


KEYS = st.sampled_from(
    f"{TA} {AM} ifc annotations returnMetadata sensitive untrusted openWorldHint sensitiveHint integrity "
    "confidentiality source sensitivity secretHint".split()
)
ANY = st.recursive(
    st.none() | st.booleans() | st.sampled_from(["trusted", "public", "none", "system", "x"]) | st.integers(-1, 1),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=examples(200), deadline=None)
@given(ANY, ANY)
def test_more_labels_never_restrict_less(first: Any, second: Any) -> None:
    one = settle(meta_bits({TA: first, "annotations": second}))
    both = settle(meta_bits({TA: first, "annotations": second, "ifc": {"integrity": "x", "confidentiality": "y"}}))
    assert both == labelled(True, True)
    for name in ("private", "untrusted"):
        assert getattr(one.restrict, name) in (None, True)
        assert getattr(one.relax, name) in (None, False)
        assert not (getattr(one.restrict, name) and getattr(one.relax, name) is False)


@pytest.mark.parametrize(
    ("template", "yes", "no"),
    [
        ("mail://{box}/{id}", "mail://in/7", "mail://in"),
        ("{+path}", "anything at all", None),
        ("a{x}b{y}c", "abbc", "ab"),
        ("a{x}a", "aa", "a"),
        ("plain", "plain", "plain2"),
    ],
)
def test_a_template_stands_for_what_it_can_become(template: str, yes: str, no: str | None) -> None:
    said = {"uriTemplate": template, "_meta": {TA: {"untrusted": True}}}
    item = labels.listed(json.dumps(said).encode())
    assert item is not None and item.bits == labels.UNTRUSTED
    assert item.covers(yes) and (no is None or not item.covers(no))
    assert labels.listed(json.dumps({"uri": "x"}).encode()) is None


def test_what_earnest_writes_it_reads_again_and_nothing_is_lost() -> None:
    for raw in (b"{}", b'{"content":[]}', b'{"_meta":null,"a":1}', b'{"_meta":{"k":1.0},"a":{"b" : 2}}', b'{"_meta":[]}'):
        for bits in range(4):
            for annotations in (False, True):
                members = canonical.members(raw)
                after = labels.written(raw, members, bits, annotations=annotations)
                found = labels.settle(labels.meta_bits(json.loads(after)["_meta"])).restrict
                assert (bool(found.private), bool(found.untrusted)) == (bool(bits & 1), bool(bits & 2))
                again = canonical.members(after)
                assert {k: v for k, v in again.items() if k != "_meta"} == {k: v for k, v in members.items() if k != "_meta"}
