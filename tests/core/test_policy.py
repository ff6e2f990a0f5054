"""What a policy says: tiers, errors, and that the table says what the rules say."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earnest.core import expr as e
from earnest.core.arguments import load
from earnest.core.compile import compile
from earnest.core.errors import EarnestError
from earnest.core.fold import closure, fold
from earnest.core.policy import Policy, Rule, judge, tightened
from earnest.core.profile import NAMES, Basis, Profile, Trust, Value
from earnest.core.verdict import Verdict
from earnest.core.vocabulary import Asks, ToolFacts, environment, flow_environment
from properties import examples

ALLOW, ASK, DENY = Verdict
ALWAYS = e.Const(True)


def profile(basis: Basis = Basis.DEFAULT, **values: bool) -> Profile:
    worst = {name: name not in ("read_only", "idempotent") for name in NAMES}
    return Profile(**{name: Value(value, basis) for name, value in {**worst, **values}.items()})  # type: ignore[arg-type]


def facts(name: str = "t", **values: bool) -> ToolFacts:
    return ToolFacts("s", name, profile(**values))


def rule(then: Verdict, condition: e.Expr = ALWAYS, name: str = "r", accept: bool = False) -> Rule:
    return Rule(name, condition, then, when=repr(condition), accept=accept)


DESTRUCTIVE = e.Name("tool.destructive")
MISSING = e.Field(e.Var("args"), "missing")

# Strategies

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.sampled_from(["", "a", "ab", "untrusted"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["x", "y"]), inner, max_size=2),
    max_leaves=6,
)
arguments = st.dictionaries(st.sampled_from(["x", "y", "z"]), values, max_size=3)
leaves: st.SearchStrategy[e.Expr] = st.one_of(
    st.sampled_from([None, True, False, 0, 1, -3, 2**63, 1.5, "", "a", "untrusted"]).map(e.Const),
    st.sampled_from([e.Name(n) for n in (*environment(facts()), *flow_environment(0))]),
    st.just(e.Var("args")),
    st.sampled_from("xyz").map(lambda n: e.Field(e.Var("args"), n)),
    st.sampled_from("xyz").map(lambda n: e.Has(e.Var("args"), n)),
    st.just(e.Present("tool.title")),
)


def _grow(inner: st.SearchStrategy[e.Expr]) -> st.SearchStrategy[e.Expr]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        st.builds(e.Not, inner),
        st.builds(e.Negate, inner),
        st.builds(e.Binary, st.sampled_from(sorted(e.BINARY)), inner, inner),
        st.builds(e.And, several),
        st.builds(e.Or, several),
        st.builds(e.If, inner, inner, inner),
        st.builds(e.Index, inner, inner),
        st.builds(e.Field, inner, st.sampled_from("xy")),
        st.builds(e.ListOf, several),
        st.builds(lambda a, b, f: e.Call(f, (a, b)), inner, inner, st.sampled_from(["startsWith", "contains", "glob"])),
        st.builds(lambda a: e.Call("size", (a,)), inner),
        st.builds(e.Matches, inner, st.sampled_from(["^a", "b$", "x*"])),
        st.builds(lambda o, t, s: e.Every(o, "v", e.Or((e.Binary("==", e.Var("v"), t), t)), s), inner, inner, st.booleans()),
    )


conditions = st.recursive(leaves, _grow, max_leaves=8)
rules = st.builds(rule, st.sampled_from([ALLOW, ASK, DENY]), conditions, st.text("ab", max_size=2), st.booleans())
strict_rules = st.builds(rule, st.sampled_from([ASK, DENY]), conditions, st.text("ab", max_size=2))
policies = st.builds(
    Policy,
    floor=st.lists(strict_rules, max_size=2).map(tuple),
    rules=st.lists(rules, max_size=3).map(tuple),
    preset=st.lists(rules, max_size=2).map(tuple),
)
tools = st.builds(
    ToolFacts,
    server=st.sampled_from(["s", "a"]),
    name=st.sampled_from(["t", "ab"]),
    profile=st.builds(Profile, **{name: st.builds(Value, st.booleans(), st.sampled_from(list(Basis))) for name in NAMES}),
    trust=st.sampled_from(list(Trust)),
    title=st.none() | st.just("a"),
    client_asks=st.sampled_from(list(Asks)),
)
bits = st.integers(0, 7)


def outcome(work: Any) -> Any:
    try:
        value = work()
    except e.ConditionError:
        return "error"
    return (type(value).__name__ if not isinstance(value, list | tuple) else "list", repr(value).translate(_BRACKETS))


_BRACKETS = {ord("["): "(", ord("]"): ")", ord(","): None}


@settings(max_examples=examples(150), deadline=None)
@given(conditions, tools, bits, arguments)
def test_what_is_folded_and_closed_means_what_was_written(
    condition: e.Expr, tool: ToolFacts, flow: int, args: dict[str, Any]
) -> None:
    names = {**environment(tool), **flow_environment(flow)}
    folded = fold(fold(condition, environment(tool)), flow_environment(flow))
    direct = outcome(lambda: e.evaluate(condition, names, {"args": args}))
    compiled = outcome(lambda: closure(folded)({"args": args}))
    # `&&` of one part that is left is that part; whether it is a boolean is still looked at.
    assert compiled == direct


@settings(max_examples=examples(150), deadline=None)
@given(policies, tools, bits, arguments)
def test_a_row_says_what_the_rules_say(policy: Policy, tool: ToolFacts, flow: int, args: dict[str, Any]) -> None:
    row = compile(policy).row(tool)
    said, direct = row.at(flow, lambda: args), judge(policy, tool, flow, args)
    assert (said.verdict, said.accept, said.floor, said.mattered) == (
        direct.verdict, direct.accept, direct.floor, direct.mattered,
    )  # fmt: skip
    assert [(r.rule, r.verdict) for r in said.reasons] == [(r.rule, r.verdict) for r in direct.reasons]


@settings(max_examples=examples(200), deadline=None)
@given(policies, strict_rules, tools, bits, arguments)
def test_a_rule_that_asks_or_denies_on_the_floor_never_lets_more_through(
    policy: Policy, added: Rule, tool: ToolFacts, flow: int, args: dict[str, Any]
) -> None:
    before = judge(policy, tool, flow, args)
    after = judge(msgspec.structs.replace(policy, floor=(*policy.floor, added)), tool, flow, args)
    assert after.verdict >= before.verdict


@settings(max_examples=examples(200), deadline=None)
@given(policies, st.builds(rule, st.just(DENY), conditions), tools, bits, arguments)
def test_a_deny_rule_added_anywhere_never_turns_a_deny_into_less(
    policy: Policy, added: Rule, tool: ToolFacts, flow: int, args: dict[str, Any]
) -> None:
    before = judge(policy, tool, flow, args).verdict
    after = judge(msgspec.structs.replace(policy, rules=(*policy.rules, added)), tool, flow, args).verdict
    assert after >= before


def test_more_labels_never_turn_a_deny_into_an_allow_when_the_rule_speaks_of_labels_set() -> None:
    # "treat the result as sensitive" sets flow.private; a rule on it only tightens.
    condition = e.And((e.Name("flow.private"), e.Name("tool.can_exfiltrate")))
    row = compile(Policy(rules=(rule(DENY, condition),), preset=(rule(ALLOW),))).row(facts())
    for flow in range(8):
        assert row.at(flow | 1, dict).verdict >= row.at(flow, dict).verdict


@settings(max_examples=examples(150), deadline=None)
@given(policies, policies, tools, bits, arguments)
def test_a_policy_that_may_only_tighten_only_tightens(
    policy: Policy, other: Policy, tool: ToolFacts, flow: int, args: dict[str, Any]
) -> None:
    before, after = judge(policy, tool, flow, args), judge(tightened(policy, other), tool, flow, args)
    assert all(rule.then is not ALLOW for rule in tightened(policy, other).floor)
    assert after.verdict >= before.verdict
    assert after.accept <= before.accept


@pytest.mark.parametrize("order", [(ALLOW, ASK, DENY), (DENY, ASK, ALLOW), (ASK, ALLOW, DENY)])
def test_deny_beats_ask_beats_allow_in_any_order(order: tuple[Verdict, ...]) -> None:
    for count, expected in ((3, DENY), (2, max(order[:2])), (1, order[0])):
        policy = Policy(rules=tuple(rule(then, name=then.word) for then in order[:count]))
        assert judge(policy, facts(), 0, {}).verdict is expected


def test_the_first_tier_that_matches_decides() -> None:
    policy = Policy(rules=(rule(ALLOW, DESTRUCTIVE),), preset=(rule(DENY),))
    assert judge(policy, facts(), 0, {}).verdict is ALLOW
    assert judge(policy, facts(destructive=False), 0, {}).verdict is DENY


def test_the_floor_counts_whatever_is_allowed_below() -> None:
    said = judge(Policy(floor=(rule(ASK),), rules=(rule(ALLOW, accept=True),)), facts(), 0, {})
    assert (said.verdict, said.floor) == (ASK, ASK)


def test_where_nothing_matches_the_answer_is_ask() -> None:
    said = judge(Policy(rules=(rule(ALLOW, e.Not(DESTRUCTIVE)),)), facts(), 0, {})
    assert said.verdict is ASK
    assert said.reasons[0].rule == "policy/unmatched"


def test_a_floor_that_matches_does_not_stand_in_for_an_allow() -> None:
    assert judge(Policy(floor=(rule(ASK, e.Not(DESTRUCTIVE)),)), facts(), 0, {}).verdict is ASK


@pytest.mark.parametrize(("then", "expected"), [(ALLOW, ASK), (ASK, ASK), (DENY, DENY)])
def test_a_condition_that_errs_matches_unless_the_rule_allows(then: Verdict, expected: Verdict) -> None:
    policy = Policy(rules=(rule(then, e.Binary("==", MISSING, e.Const(1))),))
    for said in (judge(policy, facts(), 0, {}), compile(policy).row(facts()).at(0, dict)):
        assert said.verdict is expected
    preset = msgspec.structs.replace(policy, preset=(rule(ALLOW, name="p"),))
    assert judge(preset, facts(), 0, {}).verdict is (ALLOW if then is ALLOW else then)


def test_a_rule_that_errs_does_not_accept_the_flow() -> None:
    policy = Policy(rules=(rule(ASK, e.Binary("==", MISSING, e.Const(1)), accept=True),))
    assert not judge(policy, facts(), 0, {}).accept
    assert not compile(policy).row(facts()).at(0, dict).accept


def test_a_settled_side_wins_over_an_error_in_the_other() -> None:
    err = e.Binary("==", MISSING, e.Const(1))
    assert e.evaluate(e.And((err, e.Const(False))), {}, {"args": {}}) is False
    assert e.evaluate(e.Or((err, e.Const(True))), {}, {"args": {}}) is True
    with pytest.raises(e.ConditionError):
        e.evaluate(e.Or((err, e.Const(False))), {}, {"args": {}})


@pytest.mark.parametrize(
    ("text", "literal", "same"),
    [
        ("9223372036854775807", 9223372036854775807, True),
        ("9223372036854775806", 9223372036854775807, False),
        ("9223372036854775807", 9223372036854775806, False),
        ("18446744073709551617", 18446744073709551617, True),
        ("18446744073709551616", 18446744073709551617, False),
        ("9007199254740993", 9007199254740992.0, False),
        ("-0.0", 0, True),
        ("1E2", 100, True),
        ("1.10", 1.1, True),
        ("true", 1, False),
        ('"1"', 1, False),
    ],
)
def test_numbers_compare_exactly(text: str, literal: float, same: bool) -> None:
    condition = e.Binary("==", e.Field(e.Var("args"), "id"), e.Const(literal))
    row = compile(Policy(rules=(rule(DENY, condition),), preset=(rule(ALLOW),))).row(facts())
    said = row.at(0, lambda: load(b'{"id":' + text.encode() + b"}"))
    assert (said.verdict is DENY) is same


def test_arguments_are_parsed_only_where_a_rule_that_can_still_match_reads_them() -> None:
    condition = e.And((DESTRUCTIVE, e.Binary("==", e.Field(e.Var("args"), "x"), e.Const(1))))
    compiled = compile(Policy(rules=(rule(DENY, condition),), preset=(rule(ALLOW),)))
    calls: list[int] = []

    def loader() -> dict[str, int]:
        calls.append(1)
        return {"x": 2}

    assert compiled.row(facts(destructive=False)).at(0, loader).verdict is ALLOW
    assert not calls
    assert compiled.row(facts()).at(0, loader).verdict is ALLOW
    assert calls == [1]


@pytest.mark.parametrize("raw", [b'{"a":1,"a":2}', b'{"a":1,"A":2}', b"{", b'{"a":NaN}', b'{"x":"\\ud800"}', b"1" * 5000])
def test_arguments_that_two_parsers_could_read_in_two_ways_are_refused(raw: bytes) -> None:
    condition = e.Binary("==", e.Field(e.Var("args"), "x"), e.Const(1))
    row = compile(Policy(rules=(rule(ALLOW, condition),), preset=(rule(ALLOW),))).row(facts())
    said = row.at(0, lambda: load(raw))
    assert said.verdict is DENY
    assert said.reasons[0].rule == "arguments/unreadable"
    with pytest.raises(EarnestError):
        load(raw)


def test_a_read_only_tool_is_neither_destructive_nor_unsafe_to_repeat() -> None:
    names = environment(facts(read_only=True, destructive=True, idempotent=False))
    assert (names["tool.destructive"], names["tool.idempotent"]) == (False, True)


def test_reasons_name_rule_and_bases() -> None:
    preset = Policy(preset=(rule(ASK, DESTRUCTIVE, name="destructive writes ask"),))
    reason = judge(preset, facts(), 0, {}).reasons[0]
    assert reason.rule == "preset/balanced: destructive writes ask"
    assert "destructive: yes, by default" in reason.text


def test_the_digest_follows_what_could_change_a_decision() -> None:
    one = Policy(rules=(rule(ASK, DESTRUCTIVE),))
    assert one.sha256 == Policy(rules=(rule(ASK, DESTRUCTIVE),)).sha256
    moved = Policy(rules=(msgspec.structs.replace(one.rules[0], line=7, source="x"),))
    assert moved.sha256 == one.sha256
    others = {
        Policy(rules=(rule(DENY, DESTRUCTIVE),)).sha256,
        Policy(floor=(rule(ASK, DESTRUCTIVE),)).sha256,
        Policy(rules=(rule(ASK, DESTRUCTIVE, accept=True),)).sha256,
        Policy(rules=(rule(ASK, DESTRUCTIVE),), preset_name="cautious").sha256,
        one.sha256,
    }
    assert len(others) == 5
