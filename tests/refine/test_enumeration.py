"""A listed value of an argument says what the call is; any other says nothing."""

import pytest

from earnest.core.errors import EarnestError
from earnest.core.hints import RawHints
from earnest.core.profile import Basis, Labels, Standing, Trust, refine, resolve
from earnest.refine.enumeration import Case, EnumerationRule, look, parse

RULE = EnumerationRule(
    "action",
    (
        Case("list", Labels(read_only=True, source="labels:1")),
        Case("wipe", Labels(destructive=True, source="labels:2")),
        Case(True, Labels(read_only=True)),
        Case(0, Labels(read_only=True)),
    ),
)


def labels(value: object) -> Labels | None:
    found = look(RULE, {"action": value})
    return found.labels if found else None


def test_a_tool_with_mixed_actions_is_a_read_where_it_lists_and_asks_where_it_restores() -> None:
    backup = resolve(Standing(trust=Trust.TRUSTED, claims=RawHints(read_only=False, destructive=True)))
    rule = parse("args.action == 'list' -> read_only")
    listing = look(rule, {"action": "list"})
    assert listing is not None and listing.why == "action is 'list'"
    assert refine(backup, listing.labels, Basis.OPERATOR, may_lower=True).read_only.value is True
    assert look(rule, {"action": "restore"}) is None


def test_a_statement_keeps_its_source() -> None:
    assert labels("list") == Labels(read_only=True, source="labels:1")
    assert labels("wipe") == Labels(read_only=False, destructive=True, source="labels:2")


@pytest.mark.parametrize("value", ["restore", "List", "list ", "LIST", 1, 1.0, 0.0, "0", "true", False, None, [], {}, ["list"]])
def test_lowering_wants_the_exact_value_of_the_exact_type(value: object) -> None:
    assert labels(value) is None


@pytest.mark.parametrize("value", ["WIPE", " wipe", "wipe\n", "ｗｉｐｅ"])
def test_raising_follows_what_a_server_may_fold_to_the_same(value: object) -> None:
    assert labels(value) == Labels(read_only=False, destructive=True, source="labels:2")


def test_an_absent_argument_says_nothing() -> None:
    assert look(RULE, {}) is None
    assert look(RULE, {"Action": "list", "args": {"action": "list"}}) is None


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("args.a == 'x' -> read_only", EnumerationRule("a", (Case("x", Labels(read_only=True)),))),
        ('args.a=="x"->!destructive', EnumerationRule("a", (Case("x", Labels(destructive=False)),))),
        ("args.dry-run == true -> read_only", EnumerationRule("dry-run", (Case(True, Labels(read_only=True)),))),
        ("args.n == -3 -> not open_world", EnumerationRule("n", (Case(-3, Labels(open_world=False)),))),
        (
            "args.a in ['x', 'y'] -> destructive, !idempotent",
            EnumerationRule(
                "a",
                (
                    Case("x", Labels(read_only=False, destructive=True, idempotent=False)),
                    Case("y", Labels(read_only=False, destructive=True, idempotent=False)),
                ),
            ),
        ),
    ],
)
def test_conditions_are_read(text: str, rule: EnumerationRule) -> None:
    assert parse(text) == rule


@pytest.mark.parametrize(
    "text",
    [
        "",
        "args.a == 'x'",
        "args.a == x -> read_only",
        "a == 'x' -> read_only",
        "args.a != 'x' -> read_only",
        "args.a == 'x' -> readonly",
        "args.a == 'x' ->",
        "args.a == 'x' -> read_only, !read_only",
        "args.a in 'x' -> read_only",
        "args.a in ['x' 'y'] -> read_only",
        "args.a == 'x' || true -> read_only",
        "args.a == 'it\\'s' -> read_only",
    ],
)
def test_other_conditions_are_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(EarnestError) as error:
        parse(text)
    assert error.value.code == "E1005" and error.value.remedy
