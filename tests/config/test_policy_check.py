"""`policy check`, `test` and `replay`: what they find in a policy that can be used."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earnest.config.policy import parse
from earnest.config.policy.check import Checked, check
from earnest.config.policy.lower import condition
from earnest.config.policy.outcomes import ERROR, FALSE, TRUE, outcomes
from earnest.config.policy.replay import replay
from earnest.config.policy.situation import situation
from earnest.config.policy.testing import run
from earnest.core.errors import EarnestError
from earnest.core.profile import NAMES
from earnest.core.receipt import compact
from properties import examples


def checked(text: str, **more: int) -> Checked:
    return check(parse(text, "p.toml").policy, **more)


def codes(text: str) -> list[tuple[str, str]]:
    return [(one.code, one.rule) for one in checked(text).findings]


def rule(name: str, then: str, when: str = "") -> str:
    return f'[[rule]]\nname = "{name}"\nthen = "{then}"\n' + (f'when = "{when}"\n' if when else "")


@pytest.mark.parametrize("preset", ["observe", "balanced", "cautious", "read-only"])
def test_what_ships_has_no_findings(preset: str) -> None:
    assert not checked(f"preset = '{preset}'").findings


def test_a_rule_that_others_always_outdo_is_found() -> None:
    assert codes(rule("a", "deny", "tool.destructive") + rule("b", "ask", "tool.destructive && flow.private")) == [
        ("W1101", "b")
    ]
    assert codes("deny = ['s/*']\nallow = ['s/t']\n") == [("W1101", "allow s/t")]
    assert codes(rule("a", "ask") + rule("b", "ask", "tool.open_world")) == [("W1101", "b")]


def test_a_rule_that_sometimes_decides_is_not_found() -> None:
    assert not codes(rule("a", "deny", "tool.destructive && args.x == 1") + rule("b", "ask", "tool.destructive"))
    assert not codes(rule("a", "deny", "tool.destructive && flow.private") + rule("b", "ask", "tool.destructive"))


def test_a_rule_under_a_floor_that_always_denies_is_found() -> None:
    text = "[[floor.rule]]\nthen = 'deny'\nwhen = 'tool.destructive'\n" + rule("a", "ask", "tool.destructive")
    assert codes(text) == [("W1101", "a")]


def test_a_state_that_nothing_covers_is_found_with_an_example() -> None:
    [finding] = checked("preset = 'none'\n" + rule("a", "allow", "tool.read_only")).findings
    assert finding.code == "W1102"
    assert "tool.read_only false" in finding.message


def test_a_riskier_tool_that_is_allowed_more_is_found() -> None:
    findings = checked(
        "preset = 'none'\n" + rule("a", "allow", "tool.destructive") + rule("b", "ask", "!tool.destructive")
    ).findings
    [finding] = [one for one in findings if one.code == "W1103"]
    assert (finding.rule, finding.line) == ("a", 2)
    assert "tool.destructive true" in finding.message
    trust = codes(rule("a", "allow", "server.trust == 'untrusted'") + rule("b", "deny", "server.trust == 'trusted'"))
    assert ("W1103", "a") in trust


def test_what_arguments_may_change_is_not_called_a_broken_law() -> None:
    assert not codes(rule("a", "allow", "!tool.read_only && args.x == 1") + rule("b", "ask", "tool.read_only && args.y == 1"))


def test_too_many_states_are_sampled_and_that_is_said() -> None:
    full = checked(rule("a", "deny", "tool.destructive") + rule("b", "ask", "tool.destructive && flow.private"))
    assert (full.visited <= full.states, full.findings[0].code) == (True, "W1101")
    part = check(parse(rule("a", "ask", "tool.destructive")).policy, limit=3)
    assert part.findings[0].code == "N1101"
    assert "drawn" in part.findings[0].message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tool.read_only", {TRUE, FALSE}),
        ("tool.read_only && tool.destructive", {FALSE}),
        ("tool.read_only || !tool.read_only", {TRUE}),
        ("args.x == 1", {TRUE, FALSE, ERROR}),
        ("tool.title == 'x'", {TRUE, FALSE, ERROR}),
        ("has(tool.title) && tool.title == 'x'", {TRUE, FALSE}),
        ("server.name == 'a' && server.name in ['b', 'c']", {FALSE}),
        ("server.name.startsWith('a')", {TRUE, FALSE}),
        ("server.name == 'a' && server.name.startsWith('b')", {FALSE}),
        ("server.name == client.name", {TRUE, FALSE}),
        ("tool.basis.read_only in ['default', 'claimed']", {TRUE, FALSE}),
        ("1/0 == 1", {ERROR}),
        ("flow.private ? true : !flow.private", {TRUE}),
    ],
)
def test_what_a_condition_can_come_to(text: str, expected: set[str]) -> None:
    assert outcomes(condition(text)) == expected


# Tests in a policy


def test_a_policy_is_tried_on_the_situations_beside_it() -> None:
    text = (
        "[[test]]\nname = 'reads'\ngiven = { tool = 's/t', trust = 'trusted', claims = { read_only = true } }\n"
        "expect = 'allow'\n"
        "[[test]]\nname = 'both labels'\nexpect = 'ask'\nrule = 'flow/confidentiality'\n"
        "given = { tool = 's/t', read_only = true, flow = ['private', 'untrusted'] }\n"
        "[[test]]\nname = 'wrong'\nexpect = 'deny'\ngiven = { tool = 's/t' }\n"
        "[[test]]\nname = 'other rule'\nexpect = 'ask'\nrule = 'pin/gate'\ngiven = { tool = 's/t' }\n"
    )
    results = run(parse(text))
    assert [one.passed for one in results] == [True, True, False, False]
    assert results[2].message.startswith("expected deny, got ask")


@pytest.mark.parametrize(
    "table",
    ["given = {tool='s/t'}\nexpect='maybe'", "expect='ask'", "given={tool='t'}\nexpect='ask'",
     "given={tool='s/t', pni=1}\nexpect='ask'",
     "given={tool='s/t', flow=['x']}\nexpect='ask'", "given={tool='s/t', read_only='yes'}\nexpect='ask'",
     "given={tool='s/t'}\nexpct='a'"],
)  # fmt: skip
def test_a_test_that_is_none_is_an_error(table: str) -> None:
    with pytest.raises(EarnestError) as caught:
        run(parse(f"[[test]]\n{table}\n"))
    assert caught.value.code == "E1111"
    assert "line 1" in caught.value.message


# Replay


def receipt(**more: object) -> str:
    one = situation({"tool": "s/t", "trust": "trusted", "claims": {"read_only": False, "destructive": True}})
    return json.dumps(
        {"id": "w.1", "server": "s", "tool": "t", "decision": "ask", "profile": compact(one.subject.facts.profile), **more}
    )


def test_a_replay_shows_what_another_policy_would_change() -> None:
    report = replay(parse("preset = 'read-only'").policy, [receipt(), receipt(decision="deny"), ""])
    assert report.replayed == 2
    [change] = report.changes
    assert (change.was, change.now, change.rule) == ("ask", "deny", "preset/read-only: writes are denied")


def test_a_call_that_ran_on_a_yes_is_an_ask_that_did_not_change() -> None:
    run = receipt(decision="allow", approval="a-1")
    assert replay(parse("preset = 'balanced'").policy, [run]).changes == ()
    [change] = replay(parse("preset = 'read-only'").policy, [run]).changes
    assert (change.was, change.now) == ("ask", "deny")


def test_labels_and_pins_of_the_time_count() -> None:
    policy = parse("preset = 'none'\nallow = ['s/t']").policy
    lines = [
        receipt(labels_before=3),
        receipt(labels_before=["private", "untrusted"]),
        receipt(labels_before=1, decision="allow"),
        receipt(reasons=[{"rule": "pin/gate"}]),
        receipt(labels_before=3, endorsement="w.0", decision="allow"),
    ]
    assert replay(policy, lines).changes == ()


def test_what_cannot_be_decided_again_is_said_and_not_guessed() -> None:
    policy = parse(rule("a", "deny", "args.x == 1")).policy
    bare = json.dumps({"id": "w.2", "server": "s", "tool": "t", "decision": "ask"})
    report = replay(policy, [bare, receipt(), receipt(arguments={"x": 1}), receipt(labels_before=64)])
    assert [one for one, _ in report.skipped] == ["w.2", "w.1", "w.1"]
    assert [change.now for change in report.changes] == ["deny"]


@pytest.mark.parametrize("line", ["{", "[]", '{"id": 1}'])
def test_a_line_that_is_no_receipt_is_an_error(line: str) -> None:
    with pytest.raises(EarnestError) as caught:
        replay(parse("").policy, [receipt(), line])
    assert (caught.value.code, "line 2" in caught.value.message) == ("E1112", True)


@settings(max_examples=examples(50), deadline=None)
@given(st.sets(st.sampled_from(NAMES)), st.sampled_from(["untrusted", "verified", "trusted"]))
def test_what_a_situation_does_not_say_is_what_is_assumed_of_a_stranger(safe: set[str], trust: str) -> None:
    one = situation({"tool": "s/t", "trust": trust, **{name: name in ("read_only", "idempotent") for name in safe}})
    profile = one.subject.facts.profile
    for name in NAMES:
        if name not in safe and name not in ("destructive", "idempotent"):
            assert profile.get(name).value is (name != "read_only")
