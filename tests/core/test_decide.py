"""The worst of policy, flow and pin; what may lower it, and what nothing may."""

from __future__ import annotations

import shlex
import timeit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earnest.config.policy import preset
from earnest.core.compile import compile
from earnest.core.decide import Decision, Endorsement, FlowVerdict, PinState, Subject, Table, decide
from earnest.core.expr import And, Binary, Const, Field, Name, Var
from earnest.core.flow import Cause, Causes, FlowState
from earnest.core.hints import RawHints
from earnest.core.policy import Mode, Policy, PolicyVerdict, Rule
from earnest.core.profile import NAMES, Basis, Labels, Profile, Standing, Trust, Value, resolve
from earnest.core.verdict import Reason, Verdict
from earnest.core.vocabulary import ENDORSED, PRIVATE, UNTRUSTED, ToolFacts
from properties import examples

ALLOW, ASK, DENY = Verdict
BOTH = PRIVATE | UNTRUSTED
NO_CLAIMS = RawHints()
verdicts = st.sampled_from(list(Verdict))


def resolved(trust: Trust, claims: RawHints, **operator: bool) -> Profile:
    return resolve(Standing(trust=trust, claims=claims, operator=Labels(**operator)))


def subject(
    name: str = "files/t", profile: Profile | None = None, pin: PinState = PinState.HOLDS, trust: Trust = Trust.UNTRUSTED,
    claims: RawHints = NO_CLAIMS,
) -> Subject:  # fmt: skip
    server, _, tool = name.partition("/")
    return Subject(ToolFacts(server, tool, profile or resolved(trust, claims), trust), claims, pin)


def balanced() -> Policy:
    rules, mode = preset("balanced")
    return Policy(preset=rules, mode=mode)


def ask(policy: Policy, one: Subject, bits: int = 0, **more: object) -> Decision:
    return Table(compile(policy).row(one.facts), one, policy.mode).at(bits, dict, **more)  # type: ignore[arg-type]


def said(verdict: Verdict, floor: Verdict = ALLOW, accept: bool = False) -> PolicyVerdict:
    return PolicyVerdict(max(verdict, floor), (Reason("rule/x", "x", max(verdict, floor)),), accept, floor)


# Claims and trust


def test_a_read_only_claim_of_a_trusted_server_runs() -> None:
    claims = RawHints(read_only=True, open_world=False)
    one = subject("notes/list_notes", trust=Trust.TRUSTED, claims=claims)
    assert one.facts.profile.read_only == Value(True, Basis.CLAIMED, one.facts.profile.read_only.source)
    assert ask(balanced(), one).verdict is ALLOW


def test_a_read_only_claim_of_an_untrusted_server_counts_for_nothing() -> None:
    one = subject("x/sync_state", claims=RawHints(read_only=True))
    decision = ask(balanced(), one)
    assert (one.facts.profile.read_only.value, one.facts.profile.read_only.basis) == (False, Basis.DEFAULT)
    assert decision.verdict is ASK
    assert "earnest trust x --trusted" in [remedy.command for remedy in decision.remedies]


def test_an_admission_of_danger_is_believed_from_anyone() -> None:
    one = subject("x/tidy", claims=RawHints(destructive=True, read_only=False))
    decision = ask(balanced(), one)
    assert (one.facts.profile.destructive.value, one.facts.profile.destructive.basis) == (True, Basis.CLAIMED)
    assert decision.verdict is ASK
    assert any("claimed by the server" in reason.text for reason in decision.reasons)


def test_a_policy_of_denies_alone_leaves_the_rest_to_the_preset() -> None:
    rules, _ = preset("balanced")
    policy = Policy(rules=(Rule("d", Name("tool.destructive"), DENY),), preset=rules)
    reads = subject("s/r", trust=Trust.TRUSTED, claims=RawHints(read_only=True))
    assert ask(policy, reads).verdict is ALLOW
    assert ask(policy, subject("s/w")).verdict is DENY


# Flow


def test_what_is_stopped_is_the_way_out_and_not_the_read_before_it() -> None:
    claims = RawHints(read_only=True, open_world=False)
    send = subject("mail/send", resolved(Trust.TRUSTED, RawHints(), destructive=False, open_world=False))
    fetch = subject("web/fetch", resolved(Trust.TRUSTED, RawHints(read_only=True)), trust=Trust.TRUSTED)
    read = subject("notes/read", resolved(Trust.TRUSTED, claims), trust=Trust.TRUSTED)
    flow = FlowState()
    key = ("user",)
    decisions = []
    for number, (one, bits) in enumerate([(send, 0), (fetch, UNTRUSTED), (read, PRIVATE)]):
        decisions.append(ask(balanced(), one, flow.effective(key)).verdict)
        flow.raise_(key, bits, Cause(f"w.{number}", one.facts.server, one.facts.name))
    assert decisions == [ALLOW, ALLOW, ALLOW]
    again = ask(balanced(), send, flow.effective(key), causes=flow.causes(key))
    assert again.verdict is ASK
    assert again.reasons[0].rule == "flow/confidentiality"
    assert "private by notes/read (receipt w.2)" in again.reasons[0].text
    assert "untrusted by web/fetch (receipt w.1)" in again.reasons[0].text


def test_a_read_that_reaches_outside_is_a_way_out() -> None:
    fetch = subject("web/fetch", resolved(Trust.TRUSTED, RawHints(read_only=True, open_world=True)), trust=Trust.TRUSTED)
    assert [ask(balanced(), fetch, bits).verdict for bits in (0, PRIVATE, UNTRUSTED, BOTH)] == [ALLOW, ALLOW, ALLOW, ASK]


@pytest.mark.parametrize("bits", range(8))
def test_the_confidentiality_rule_wants_all_three_legs_and_no_yes(bits: int) -> None:
    for can in (False, True):
        profile = resolved(Trust.TRUSTED, RawHints(), can_exfiltrate=can)
        decision = decide(said(ALLOW), bits, subject(profile=profile))
        assert (decision.verdict is ASK) is (can and bits & BOTH == BOTH and not bits & ENDORSED)


def test_an_endorsement_or_an_accepting_rule_lowers_what_flow_says_and_is_named() -> None:
    yes = Endorsement("w.9", "mail to bob@example.org")
    integrity = FlowVerdict(ASK, (Reason("flow/integrity", "the address is not the user's", ASK),))
    for policy, endorsement, rule in ((said(ALLOW), yes, "flow/endorsed"), (said(ALLOW, accept=True), None, "flow/accepted")):
        decision = decide(policy, BOTH, subject(), endorsement=endorsement, integrity=integrity)
        assert decision.verdict is ALLOW
        assert [reason.rule for reason in decision.reasons].count(rule) == 1
    assert decide(said(ALLOW), BOTH, subject(), integrity=integrity).verdict is ASK


def test_the_users_own_words_do_not_silence_the_integrity_rule() -> None:
    integrity = FlowVerdict(DENY, (Reason("flow/integrity", "x", DENY),))
    assert decide(said(ALLOW), BOTH | ENDORSED, subject(), integrity=integrity).verdict is DENY


# Pins


@pytest.mark.parametrize(("pin", "expected"), [(p, ALLOW if p in ("holds", "tightened") else ASK) for p in PinState])
def test_a_definition_that_no_person_saw_asks(pin: PinState, expected: Verdict) -> None:
    decision = decide(said(ALLOW), 0, subject("a b/t", pin=pin), endorsement=Endorsement("w.1"))
    assert decision.verdict is expected
    if expected is ASK:
        assert decision.reasons[0].rule == "pin/gate"
        assert "earnest pins accept 'a b' t" in [remedy.command for remedy in decision.remedies]


# What nothing lowers

decisions = st.fixed_dictionaries(
    {
        "policy": st.builds(said, verdicts, verdicts, st.booleans()),
        "bits": st.integers(0, 7),
        "pin": st.sampled_from(list(PinState)),
        "mode": st.sampled_from(list(Mode)),
        "endorsement": st.none() | st.just(Endorsement("w.1")),
        "integrity": st.none() | st.builds(lambda v: FlowVerdict(v, (Reason("flow/integrity", "x", v),)), verdicts),
    }
)


def run(case: dict[str, object]) -> Decision:
    return decide(
        case["policy"], case["bits"], subject(pin=case["pin"]),  # type: ignore[arg-type]
        mode=case["mode"], endorsement=case["endorsement"], integrity=case["integrity"],  # type: ignore[arg-type]
    )  # fmt: skip


@settings(max_examples=examples(150), deadline=None)
@given(decisions)
def test_nothing_lowers_the_floor_and_the_policy_is_never_undercut(case: dict[str, object]) -> None:
    decision = run(case)
    policy = case["policy"]
    assert isinstance(policy, PolicyVerdict)
    assert decision.verdict >= policy.floor
    assert decision.observed >= policy.verdict
    if case["mode"] is Mode.ENFORCE:
        assert decision.verdict is decision.observed
    else:
        assert decision.verdict is policy.floor
    assert decision.reasons[0].verdict >= decision.verdict or case["mode"] is Mode.OBSERVE


@settings(max_examples=examples(150), deadline=None)
@given(decisions, st.sampled_from([PRIVATE, UNTRUSTED]))
def test_one_label_more_never_lets_more_through(case: dict[str, object], label: int) -> None:
    more = {**case, "bits": case["bits"] | label}  # type: ignore[operator]
    assert run(more).observed >= run(case).observed


def test_observe_records_and_runs() -> None:
    rules, mode = preset("observe")
    decision = ask(Policy(preset=rules, mode=mode, preset_name="observe"), subject("x/del", pin=PinState.UNSEEN), BOTH)
    assert (decision.verdict, decision.observed) == (ALLOW, ASK)
    assert {"pin/gate", "flow/confidentiality"} <= {reason.rule for reason in decision.reasons}
    floor = Policy(floor=(Rule("f", Const(True), DENY),), preset=rules, mode=mode)
    assert ask(floor, subject()).verdict is DENY


# The table


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("pin", [PinState.HOLDS, PinState.LOOSENED])
def test_the_table_decides_as_decide_does(mode: Mode, pin: PinState) -> None:
    reads_args = And((Name("flow.private"), Binary("==", Field(Var("args"), "x"), Const(1))))
    rules, _ = preset("balanced")
    compiled = compile(Policy(rules=(Rule("a", reads_args, DENY),), preset=rules))
    for values in range(1 << len(NAMES)):
        profile = Profile(**{n: Value(bool(values >> i & 1), Basis.DEFAULT) for i, n in enumerate(NAMES)})  # type: ignore[arg-type]
        one = subject(profile=profile, pin=pin)
        row = compiled.row(one.facts)
        table = Table(row, one, mode)
        for bits in range(8):
            for args in ({}, {"x": 1}, {"x": 2}):
                assert table.at(bits, lambda args=args: args) == decide(  # type: ignore[misc]
                    row.at(bits, lambda args=args: args),
                    bits,
                    one,
                    mode=mode,  # type: ignore[misc]
                )


def test_an_allow_that_no_call_can_change_is_shared_and_fast() -> None:
    one = subject(profile=resolved(Trust.TRUSTED, RawHints(read_only=True)), trust=Trust.TRUSTED)
    row = compile(balanced()).row(one.facts)
    table = Table(row, one)
    assert table.at(PRIVATE, dict) is table.at(PRIVATE, dict)
    # Far above what it takes (about 0.1 µs), so that a busy machine does not matter.
    assert min(timeit.repeat(lambda: row.at(PRIVATE, dict), number=10_000, repeat=5)) / 10_000 < 1e-6
    assert min(timeit.repeat(lambda: table.at(PRIVATE, dict), number=10_000, repeat=5)) / 10_000 < 3e-6


def test_an_allow_that_is_ready_still_hears_the_integrity_rule() -> None:
    one = subject(profile=resolved(Trust.TRUSTED, RawHints(read_only=True)), trust=Trust.TRUSTED)
    integrity = FlowVerdict(ASK, (Reason("flow/integrity", "x", ASK),))
    assert ask(balanced(), one, UNTRUSTED).verdict is ALLOW
    assert ask(balanced(), one, UNTRUSTED, integrity=integrity).verdict is ASK
    assert ask(balanced(), one, UNTRUSTED, integrity=integrity, endorsement=Endorsement("w.1")).verdict is ALLOW


def test_a_name_from_a_server_cannot_become_part_of_a_command() -> None:
    hostile = subject("x/t; rm -rf ~")
    for remedy in ask(balanced(), hostile, BOTH).remedies:
        if remedy.command:
            assert "x/t; rm -rf ~" in shlex.split(remedy.command)


def test_a_false_label_is_traced_to_who_said_it_and_can_be_corrected() -> None:
    wrong = Causes((Cause("w.7", "repo", "readme", "pack", "pack git:12"),))
    decision = decide(said(ALLOW), BOTH, subject("chat/post"), causes={PRIVATE: wrong})
    assert "private by repo/readme (receipt w.7, pack git:12)" in decision.reasons[0].text
    assert "earnest labels set repo/readme reads_private=false" in [remedy.command for remedy in decision.remedies]


def test_what_the_operator_said_and_what_is_no_tool_is_not_offered_for_correction() -> None:
    causes = Causes((Cause("w.1", "a", "b", "operator", "x"), Cause("w.2", "a", "file:///b", "default")))
    decision = decide(said(ALLOW), BOTH, subject(), causes={PRIVATE: causes, UNTRUSTED: causes})
    assert not any("labels set a/" in remedy.command for remedy in decision.remedies)


def test_causes_beyond_the_first_are_counted() -> None:
    many = Causes(tuple(Cause(f"w.{n}", "s", "t") for n in range(8)), 4)
    decision = decide(said(ALLOW), BOTH, subject(), causes={PRIVATE: many})
    assert "and 9 more" in decision.reasons[0].text
