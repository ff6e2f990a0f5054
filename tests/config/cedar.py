"""Policies made up at random, said three times: to earnest's reference, to its table, and to Cedar (`cedarpy`).

Cedar knows permit and forbid, a forbid wins, and a policy whose condition errs is left out. earnest has three verdicts and
tiers, and an error counts as matched in ask and deny rules. So a policy becomes two questions to Cedar, `unasked` (is it
allowed?) and `at all` (is it less than denied?), and each condition is written twice: when it is surely true, and when it is
surely false; neither is an error. What matches in which tier, what wins, what counts when nothing matches: that is Cedar's to
say.

The subset: booleans, enums, strings, whole numbers, lists of strings; `&&`, `||`, `!`, `== != < <=`, `in`, `startsWith`,
`has`; fields of `args` that may be missing, each of one type.
"""

import json
import random
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from cedarpy import Decision, is_authorized_batch

from earnest.config.policy.lower import condition
from earnest.core.compile import compile
from earnest.core.policy import Policy, Rule, judge
from earnest.core.profile import NAMES, Basis, Profile, Trust, Value
from earnest.core.verdict import Verdict
from earnest.core.vocabulary import Asks, ToolFacts, environment, flow_environment

ALLOW, ASK, DENY = Verdict
BOOLEANS: Final = (*(f"tool.{name}" for name in NAMES), "flow.private", "flow.untrusted", "flow.endorsed")
ENUMS: Final = {
    **{f"tool.basis.{name}": tuple(map(str, Basis)) for name in NAMES},
    "server.trust": tuple(map(str, Trust)),
    "client.asks": tuple(map(str, Asks)),
}
STRINGS: Final = {
    "tool.name": ("t", "table", "a"),
    "server.name": ("s", "a"),
    "client.name": ("c", ""),
    "call.method": ("tools/call", "resources/read"),
    "tool.title": ("a", "title"),
}
TEXTS: Final = ("", "a", "ab", "t", "table", "a*b", 'q"', "é")


class Said(NamedTuple):
    """One condition in both languages: CEL, and in Cedar when it is surely true and when surely false."""

    cel: str
    true: str
    false: str


def quoted(text: str) -> str:
    """A literal that both languages read alike."""
    return json.dumps(text, ensure_ascii=False)


def known(name: str) -> str:
    """Where Cedar finds a name."""
    return "context." + name


def guarded(path: str, test: str) -> Said:
    """A test on something that may be missing: an error in CEL, neither true nor false in Cedar. `test` has `@` for it."""
    there = f"context.{path.rpartition('.')[0]} has {path.rpartition('.')[2]}"
    here = test.replace("@", f"context.{path}")
    return Said("", f"({there} && {here})", f"({there} && !({here}))")


def atom(r: random.Random) -> Said:
    """A condition without parts."""
    kind = r.randrange(9)
    if kind == 0:
        name = r.choice(BOOLEANS)
        return Said(name, known(name), f"!({known(name)})")
    if kind == 1:
        name = r.choice([*ENUMS])
        literal, op = quoted(r.choice(ENUMS[name])), r.choice(["==", "!="])
        test = f"{known(name)} {op} {literal}"
        return Said(f"{name} {op} {literal}", test, f"!({test})")
    if kind == 2:
        name = r.choice([*STRINGS])
        literal = quoted(r.choice((*STRINGS[name], *TEXTS)))
        cel = f"{name} == {literal}"
        if name == "tool.title":
            return guarded(name, f"@ == {literal}")._replace(cel=cel)
        return Said(cel, f"{known(name)} == {literal}", f"{known(name)} != {literal}")
    if kind == 3:
        name, some = r.choice([("tool.title", "has(tool.title)"), *((f"args.{n}", f"has(args.{n})") for n in "isbl")])
        there = f"context.{name.rpartition('.')[0]} has {name.rpartition('.')[2]}"
        return Said(some, there, f"!({there})")
    if kind == 4:
        op, number = r.choice(["==", "!=", "<", "<=", ">", ">="]), r.randint(-2, 2)
        return guarded("args.i", f"@ {op} {number}")._replace(cel=f"args.i {op} {number}")
    if kind == 5:
        literal, op = quoted(r.choice(TEXTS)), r.choice(["==", "!="])
        return guarded("args.s", f"@ {op} {literal}")._replace(cel=f"args.s {op} {literal}")
    if kind == 6:
        text = r.choice(TEXTS)
        pattern = quoted(text).replace("*", "\\*")[:-1] + '*"'
        return guarded("args.s", f"@ like {pattern}")._replace(cel=f"args.s.startsWith({quoted(text)})")
    if kind == 7:
        literal = quoted(r.choice(TEXTS))
        return guarded("args.l", f"@.contains({literal})")._replace(cel=f"{literal} in args.l")
    literal, negated = r.choice(["true", "false"]), r.choice(["==", "!="])
    return guarded("args.b", f"@ {negated} {literal}")._replace(cel=f"args.b {negated} {literal}")


def made_up(r: random.Random, depth: int = 2) -> Said:
    """A condition."""
    kind = r.randrange(4) if depth else 3
    if kind == 0:
        inner = made_up(r, depth - 1)
        return Said(f"!({inner.cel})", inner.false, inner.true)
    if kind in (1, 2):
        parts = [made_up(r, depth - 1) for _ in range(r.randint(2, 3))]
        both = [" && ".join(f"({p})" for p in parts_) for parts_ in ([p.true for p in parts], [p.false for p in parts])]
        some = [" || ".join(f"({p})" for p in parts_) for parts_ in ([p.true for p in parts], [p.false for p in parts])]
        if kind == 1:
            return Said(" && ".join(f"({p.cel})" for p in parts), both[0], some[1])
        return Said(" || ".join(f"({p.cel})" for p in parts), some[0], both[1])
    return atom(r)


class Twice(NamedTuple):
    """One policy, for earnest and for Cedar."""

    ours: Policy
    theirs: str


def policy(r: random.Random) -> Twice:
    """A policy of up to eight rules."""
    tiers: dict[str, list[tuple[Rule, Said]]] = {}
    for tier, verdicts, most in (("floor", [ASK, DENY], 1), ("rules", [ALLOW, *Verdict], 4), ("preset", [ALLOW, *Verdict], 3)):
        tiers[tier] = []
        for n in range(r.randint(0, most)):
            said, then = made_up(r), r.choice(verdicts)
            tiers[tier].append((Rule(f"{tier} {n}", condition(said.cel), then, when=said.cel), said))

    def matches(rule: Rule, said: Said) -> str:
        return said.true if rule.then is ALLOW else f"!({said.false})"

    none_of_the_users = " && ".join(f"!({matches(*one)})" for one in tiers["rules"]) or "true"
    lines = ['permit (principal, action == Action::"at all", resource);']
    for tier, rules in tiers.items():
        for rule, said in rules:
            when = matches(rule, said)
            if tier == "preset":
                when = f"({none_of_the_users}) && ({when})"
            if rule.then is ALLOW:
                lines.append(f'permit (principal, action == Action::"unasked", resource) when {{ {when} }};')
            else:
                lines.append(f'forbid (principal, action == Action::"unasked", resource) when {{ {when} }};')
            if rule.then is DENY:
                lines.append(f'forbid (principal, action == Action::"at all", resource) when {{ {when} }};')
    return Twice(Policy(**{tier: tuple(rule for rule, _ in rules) for tier, rules in tiers.items()}), "\n".join(lines))


class State(NamedTuple):
    """What a call meets: a tool, labels, arguments."""

    facts: ToolFacts
    bits: int
    args: dict[str, Any]

    def context(self) -> dict[str, Any]:
        """The same for Cedar."""
        found: dict[str, Any] = {"args": self.args}
        for name, value in {**environment(self.facts), **flow_environment(self.bits)}.items():
            if value is None:
                continue
            *path, last = name.split(".")
            place = found
            for part in path:
                place = place.setdefault(part, {})
            place[last] = value
        return found


def state(r: random.Random) -> State:
    """Any state."""
    profile = Profile(**{name: Value(r.random() < 0.5, r.choice([*Basis])) for name in NAMES})
    some: dict[str, Any] = {
        "i": r.randint(-3, 3),
        "s": r.choice(TEXTS),
        "b": r.random() < 0.5,
        "l": r.sample(TEXTS, r.randint(0, 3)),
    }
    facts = ToolFacts(
        server=r.choice(STRINGS["server.name"]),
        name=r.choice(STRINGS["tool.name"]),
        profile=profile,
        trust=r.choice([*Trust]),
        title=r.choice([None, *STRINGS["tool.title"]]),
        method=r.choice(STRINGS["call.method"]),
        client=r.choice(STRINGS["client.name"]),
        client_asks=r.choice([*Asks]),
    )
    return State(facts, r.randrange(8), {name: value for name, value in some.items() if r.random() < 0.7})


def theirs(text: str, states: list[State]) -> list[Verdict]:
    """What Cedar says of each state. Raises AssertionError where one of its conditions errs: ours are such that none can."""
    requests: list[dict[str, Any]] = []
    for one in states:
        context = one.context()
        for action in ("unasked", "at all"):
            requests.append(
                {"principal": 'U::"u"', "action": f"Action::{json.dumps(action)}", "resource": 'R::"r"', "context": context}
            )
    answers = is_authorized_batch(requests, text, [])
    for answer in answers:
        assert not answer.diagnostics.errors, (text, answer.diagnostics.errors)
        assert answer.decision in (Decision.Allow, Decision.Deny), text
    allowed = [answer.decision is Decision.Allow for answer in answers]
    return [ALLOW if unasked else ASK if at_all else DENY for unasked, at_all in zip(allowed[::2], allowed[1::2], strict=True)]


class Difference(NamedTuple):
    """Three verdicts that are not one."""

    policy: Twice
    state: State
    reference: Verdict
    table: Verdict
    cedar: Verdict


def differences(states: int, seed: int, each: int = 100) -> Iterator[Difference | Verdict]:
    """Make up policies, `each` states for every one, `states` in all; yields the verdict of each or a difference."""
    r = random.Random(seed)
    for start in range(0, states, each):
        one = policy(r)
        compiled = compile(one.ours)
        met = [state(r) for _ in range(min(each, states - start))]
        for what, cedar in zip(met, theirs(one.theirs, met), strict=True):
            direct = judge(one.ours, what.facts, what.bits, what.args).verdict
            table = compiled.row(what.facts).at(what.bits, lambda args=what.args: args).verdict  # type: ignore[misc]
            yield direct if direct is table is cedar else Difference(one, what, direct, table, cedar)
