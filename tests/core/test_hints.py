"""Only JSON true and false are claims; everything else is absent, and absent is worst."""

from types import SimpleNamespace

import pytest

from earnest.core.hints import (
    HINTS,
    RISKY,
    EffectiveHints,
    RawHints,
    effective,
    raw_from_object,
    raw_from_wire,
)

WIRE = {
    "read_only": "readOnlyHint",
    "destructive": "destructiveHint",
    "idempotent": "idempotentHint",
    "open_world": "openWorldHint",
}


def test_truthy_values_claim_nothing_and_are_reported() -> None:
    raw = raw_from_wire({"readOnlyHint": "true", "destructiveHint": 0, "idempotentHint": 1, "openWorldHint": None})
    assert [raw.get(hint) for hint in HINTS] == [None] * 4
    assert raw.malformed == ("readOnlyHint", "destructiveHint", "idempotentHint")


@pytest.mark.parametrize("hint", HINTS)
@pytest.mark.parametrize("value", [True, False])
def test_each_hint_is_read_from_its_wire_name_alone(hint: str, value: bool) -> None:
    raw = raw_from_wire({WIRE[hint]: value, "title": "x"})
    assert {name: raw.get(name) for name in HINTS} == {name: value if name == hint else None for name in HINTS}
    assert raw_from_wire({f"{hint}_hint": value}) == RawHints()


@pytest.mark.parametrize("annotations", [None, [], "readOnlyHint", 1, True, [{"readOnlyHint": True}]])
def test_annotations_that_are_no_object_claim_nothing(annotations: object) -> None:
    assert raw_from_wire(annotations) == RawHints()


@pytest.mark.parametrize("value", [1, 0, "true", "", 1.0, [], {}, [True]])
def test_the_wire_and_the_object_agree_on_what_is_malformed(value: object) -> None:
    assert raw_from_wire({"readOnlyHint": value}).malformed == ("readOnlyHint",)
    assert raw_from_object(SimpleNamespace(read_only_hint=value)).malformed == ("readOnlyHint",)


def test_objects_are_read_in_the_spelling_of_either_sdk() -> None:
    new = SimpleNamespace(read_only_hint=True, destructive_hint=None)
    old = SimpleNamespace(readOnlyHint=True, destructiveHint=None)
    assert raw_from_object(new) == raw_from_object(old) == RawHints(read_only=True)
    assert raw_from_object({"open_world_hint": False}) == RawHints(open_world=False)
    assert raw_from_object(None) == RawHints()


def test_an_object_of_the_official_sdk_is_read() -> None:
    types = pytest.importorskip("mcp.types")
    annotations = types.ToolAnnotations(readOnlyHint=True, openWorldHint=False)
    assert raw_from_object(annotations) == RawHints(read_only=True, open_world=False)


@pytest.mark.parametrize("hint", HINTS)
def test_where_two_spellings_differ_the_riskier_counts(hint: str) -> None:
    for one in (True, False):
        both = {WIRE[hint]: one, f"{hint}_hint": not one}
        assert raw_from_object(both).get(hint) is RISKY[hint]


def test_absent_hints_take_the_defaults_of_the_specification() -> None:
    assert effective(RawHints()) == EffectiveHints(read_only=False, destructive=True, idempotent=False, open_world=True)


@pytest.mark.parametrize("destructive", [True, False, None])
@pytest.mark.parametrize("idempotent", [True, False, None])
def test_under_read_only_the_other_two_are_moot(destructive: bool | None, idempotent: bool | None) -> None:
    raw = RawHints(read_only=True, destructive=destructive, idempotent=idempotent)
    assert effective(raw) == EffectiveHints(read_only=True, destructive=False, idempotent=True, open_world=True)
