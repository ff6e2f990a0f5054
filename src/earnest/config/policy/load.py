"""A policy file to a policy. All that is wrong with it is found in one go, each with line and column."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path as File
from typing import Any, Final

import msgspec

from earnest.config import toml_ranges
from earnest.config.document import Node
from earnest.config.policy.findings import Finding, PolicyError, Severity, Wrong, mean
from earnest.config.policy.lists import entry
from earnest.config.policy.lower import condition
from earnest.config.policy.outcomes import ERROR, TRUE, outcomes
from earnest.config.policy.positions import Path, Positions, plain
from earnest.config.settings import PolicyText
from earnest.core.expr import Const, Expr
from earnest.core.policy import Mode, Policy, Rule, tightened
from earnest.core.verdict import Verdict

PRESETS: Final = ("observe", "balanced", "cautious", "read-only")
"""What ships; each is a file in `earnest/presets`."""
NO_PRESET: Final = "none"
"""No preset: what no rule matches asks."""

_STRICT: Final = ("cautious", "read-only")
_VERDICTS: Final = {"allow": Verdict.ALLOW, "ask": Verdict.ASK, "deny": Verdict.DENY}
_RULE_KEYS: Final = ("name", "when", "then", "flow", "because")
_TOP: Final = ("preset", "rule", "floor", "test", *_VERDICTS)
_FLOOR: Final = ("rule", "ask", "deny")
_PRESET_TOP: Final = ("mode", "extends", "rule", *_VERDICTS)


class Document(msgspec.Struct, frozen=True):
    """A policy as read, with the tests that stand beside it: each as its TOML table, with its line."""

    policy: Policy
    tests: tuple[tuple[Mapping[str, Any], int], ...] = ()


class _Reader:
    """One file being read."""

    def __init__(self, node: Node, data: bytes, source: str) -> None:
        self.source = source
        self.findings: list[Finding] = []
        self.data: dict[str, Any] = plain(node)
        self.positions = Positions(node, data)

    def wrong(self, code: str, message: str, place: tuple[int, int], suggestion: str = "", rule: str = "") -> None:
        self.findings.append(Finding(code, Severity.ERROR, message, suggestion, self.source, place[0], place[1], rule))

    def keys(self, table: Mapping[str, Any], path: Path, known: tuple[str, ...]) -> None:
        for key in table:
            if key not in known:
                self.wrong(
                    "E1102", f"unknown key `{key}`", self.positions.key((*path, key)),
                    mean(key, known, f"known are {', '.join(known)}"),
                )  # fmt: skip

    def word(self, table: Mapping[str, Any], path: Path, key: str, known: tuple[str, ...], default: str) -> str:
        if key not in table:
            return default
        value = table[key]
        if not isinstance(value, str) or value not in known:
            self.wrong(
                "E1102" if key != "preset" else "E1113", f"`{key}` is {value!r}", self.positions.value((*path, key)),
                mean(str(value), known, f"it is one of {', '.join(known)}"),
            )  # fmt: skip
            return default
        return value

    def tier(self, table: Mapping[str, Any], path: Path, *, floor: bool) -> tuple[Rule, ...]:
        """The rules of one tier: the `[[rule]]` tables, then the lists."""
        found: list[Rule] = []
        rules = table.get("rule", [])
        if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
            self.wrong("E1102", "`rule` is not a list of tables", self.positions.key((*path, "rule")), "write [[rule]]")
            rules = []
        names: dict[str, int] = {}
        for number, rule in enumerate(rules):
            made = self.rule(rule, (*path, "rule", number), number, floor)
            if made is not None:
                if made.name in names:
                    self.wrong(
                        "E1102", f"two rules are called “{made.name}”",
                        self.positions.value((*path, "rule", number, "name")), f"the other is on line {names[made.name]}",
                    )  # fmt: skip
                names[made.name] = made.line
                found.append(made)
        for word, verdict in _VERDICTS.items():
            if word in table and not (floor and verdict is Verdict.ALLOW):
                found += self.list(table[word], (*path, word), verdict)
        return tuple(found)

    def rule(self, table: Mapping[str, Any], path: Path, number: int, floor: bool) -> Rule | None:
        before = len(self.findings)
        place = self.positions.key(path)
        self.keys(table, path, _RULE_KEYS)
        for key in _RULE_KEYS:
            if key in table and not isinstance(table[key], str):
                self.wrong("E1102", f"`{key}` is not a string", self.positions.value((*path, key)))
        name = table.get("name", f"rule {number + 1}")
        then = self.word(table, path, "then", tuple(_VERDICTS), "")
        if "then" not in table:
            self.wrong("E1102", "a rule without `then`", place, 'add then = "allow", "ask" or "deny"', str(name))
        flow = self.word(table, path, "flow", ("accept",), "")
        if floor and then == "allow":
            self.wrong(
                "E1102", "the floor may not allow", self.positions.value((*path, "then")), "move the rule out of the floor"
            )
        if flow and (floor or then == "deny"):
            what = "the floor" if floor else "a rule that denies"
            self.wrong("E1102", f"{what} cannot accept the flow", self.positions.key((*path, "flow")), "leave it out")
        tree: Expr = Const(True)
        when = table.get("when")
        if isinstance(when, str):
            try:
                tree = self.checked(when)
            except Wrong as wrong:
                spot = self.positions.inside((*path, "when"), wrong.at)
                self.wrong(wrong.code, wrong.message, spot, wrong.suggestion, str(name))
        if len(self.findings) > before:
            return None
        return Rule(
            name=name, condition=tree, then=_VERDICTS[then], when=when or "true", accept=bool(flow),
            because=table.get("because", "").strip().rstrip("."), source=self.source, line=place[0],
        )  # fmt: skip

    def checked(self, when: str) -> Expr:
        """A condition that can come true and does not always."""
        tree = condition(when)
        if tree == Const(True):
            return tree  # said as such, it is meant
        found = outcomes(tree)
        if found is not None and TRUE not in found:
            why = (
                "it errs for every call"
                if found == frozenset((ERROR,))
                else "no tool, server, client and flow state makes it true"
            )
            raise Wrong("E1106", f"the condition is never true: {why}", 0, "correct it or leave the rule out")
        if found == frozenset((TRUE,)):
            raise Wrong("E1107", "the condition is always true", 0, "leave out `when` if that is meant")
        return tree

    def list(self, value: Any, path: Path, verdict: Verdict) -> list[Rule]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.wrong("E1102", f"`{path[-1]}` is not a list of strings", self.positions.value(path))
            return []
        found = []
        for number, item in enumerate(value):
            place = self.positions.value((*path, number))
            try:
                tree = entry(item, verdict)
            except Wrong as wrong:
                self.wrong(wrong.code, wrong.message, place, wrong.suggestion)
                continue
            if item in value[:number]:
                self.wrong("E1102", f"`{item}` stands twice in the list", place, "leave one out")
            found.append(Rule(f"{verdict.word} {item}", tree, verdict, when=item, source=self.source, line=place[0]))
        return found

    def finish(self) -> None:
        if self.findings:
            raise PolicyError(sorted(self.findings, key=lambda one: (one.line, one.column)))


def _read_text(text: str, source: str) -> _Reader:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PolicyError([_not_toml(str(error), text, source)]) from None
    except RecursionError:
        raise PolicyError([Finding("E1101", Severity.ERROR, "not TOML: nested too deep", "", source)]) from None
    data = text.encode()
    return _Reader(toml_ranges.scan(source, data, "E1101"), data, source)


def _not_toml(message: str, text: str, source: str) -> Finding:
    found = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", message)
    line, column = text.count("\n") + 1, len(text) - text.rfind("\n")
    if found is not None:
        message = message[: found.start()]
        if found.group(1):
            line, column = int(found.group(1)), int(found.group(2))
    hint = (
        "quotes inside a condition: '…' in a \"…\" string"
        if "after value" in message.lower() or "Expected newline" in message
        else ""
    )
    return Finding("E1101", Severity.ERROR, f"not TOML: {message}", hint, source, line, column)


def preset_text(name: str) -> str:
    """The file of a preset. Raises `PolicyError` E1113 for a name that is none of `PRESETS`."""
    if name not in PRESETS:
        hint = mean(name, PRESETS, f"it is one of {', '.join(PRESETS)}")
        raise PolicyError([Finding("E1113", Severity.ERROR, f"unknown preset `{name}`", hint)])
    return (resources.files("earnest") / "presets" / f"{name}.toml").read_text("utf-8")


def preset(name: str) -> tuple[tuple[Rule, ...], Mode]:
    """Rules and mode of a preset."""
    if name == NO_PRESET:
        return (), Mode.ENFORCE
    reader = _read_text(preset_text(name), f"presets/{name}.toml")
    reader.keys(reader.data, (), _PRESET_TOP)
    base: tuple[Rule, ...] = ()
    if "extends" in reader.data:
        base, _ = preset(reader.data["extends"])
    rules = reader.tier(reader.data, (), floor=False)
    mode = Mode(reader.word(reader.data, (), "mode", tuple(Mode), Mode.ENFORCE))
    reader.finish()
    return base + rules, mode


def parse(text: str, source: str = "", *, preset_name: str | None = None, floor: str = "", floor_source: str = "") -> Document:
    """The policy of a text.

    `preset_name` is the preset of the configuration, which the policy's own `preset` overrides. `floor` is
    the text of the organisation's floor file: `[[rule]]` tables and `ask` and `deny` lists; it stands before
    the policy's own `[[floor.rule]]`. Raises `PolicyError` with everything that is wrong.
    """
    reader = _read_text(text, source)
    name, own = _own(reader, preset_name)
    floored: tuple[Rule, ...] = ()
    findings = list(reader.findings)
    if floor:
        other = _read_text(floor, floor_source)
        floored = _floor(other, other.data, ())
        findings += other.findings
    return _made(findings, name, floored + own.policy.floor, own)


def compose(policies: Sequence[PolicyText], preset_name: str) -> Document:
    """The one policy of a configuration, from what it names and holds (`Settings.policies`,
    `Settings.preset`).

    A policy whose `tier` is `floor` comes from a file that may only tighten: its asks and denies join the
    floor, its allows, accepts and its preset do not count. Raises `PolicyError`.
    """
    findings: list[Finding] = []
    name = preset_name
    floored: tuple[Rule, ...] = ()
    rules: tuple[Rule, ...] = ()
    tests: tuple[tuple[Mapping[str, Any], int], ...] = ()
    for text in policies:
        reader = _Reader(text.node, text.data, text.path)
        chosen, own = _own(reader, preset_name)
        findings += reader.findings
        if text.tier == "floor":
            floored = tightened(Policy(floor=floored), own.policy).floor
            continue
        # A stricter preset than the default was asked for by somebody, perhaps by a file that may only
        # tighten.
        name = (
            max(chosen, preset_name, key=lambda one: _STRICT.index(one) if one in _STRICT else -1)
            if preset_name in _STRICT
            else chosen
        )
        rules, tests = rules + own.policy.rules, tests + own.tests
        floored += own.policy.floor
    return _made(findings, name, floored, Document(Policy(rules=rules), tests))


def _own(reader: _Reader, preset_name: str | None) -> tuple[str, Document]:
    """What one file says itself: the name of its preset, its floor, rules and tests."""
    data = reader.data
    reader.keys(data, (), _TOP)
    name = reader.word(data, (), "preset", (*PRESETS, NO_PRESET), preset_name or "balanced")
    rules = reader.tier(data, (), floor=False)
    own = data.get("floor", {})
    floored: tuple[Rule, ...] = ()
    if isinstance(own, dict):
        floored = _floor(reader, own, ("floor",))
    else:
        reader.wrong("E1102", "`floor` is not a table", reader.positions.key(("floor",)), "write [[floor.rule]]")
    tests = data.get("test", [])
    if not isinstance(tests, list) or not all(isinstance(test, dict) for test in tests):
        reader.wrong("E1102", "`test` is not a list of tables", reader.positions.key(("test",)), "write [[test]]")
        tests = []
    places = [reader.positions.key(("test", number))[0] for number in range(len(tests))]
    return name, Document(Policy(floor=floored, rules=rules), tuple(zip(tests, places, strict=True)))


def _made(findings: list[Finding], name: str, floored: tuple[Rule, ...], own: Document) -> Document:
    if findings:
        raise PolicyError(sorted(findings, key=lambda one: (one.source, one.line, one.column)))
    base, mode = preset(name)
    policy = Policy(floor=floored, rules=own.policy.rules, preset=base, preset_name=name, mode=mode)
    return Document(policy, own.tests)


def _floor(reader: _Reader, table: Mapping[str, Any], path: Path) -> tuple[Rule, ...]:
    if "allow" in table:
        reader.wrong("E1102", "the floor may not allow", reader.positions.key((*path, "allow")), "move it out of the floor")
    reader.keys({key: value for key, value in table.items() if key != "allow"}, path, _FLOOR)
    return reader.tier(table, path, floor=True)


def load(path: File | None, *, preset_name: str | None = None, floor: File | None = None) -> Document:
    """The policy of a file (None: nothing but the preset). Raises `PolicyError`, E1113 where a file cannot
    be read."""
    text = _read(path) if path is not None else ""
    return parse(
        text,
        str(path) if path is not None else "",
        preset_name=preset_name,
        floor=_read(floor) if floor is not None else "",
        floor_source=str(floor) if floor is not None else "",
    )


def _read(path: File) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
    except UnicodeDecodeError as error:
        message = f"is not UTF-8: byte {error.start}"
    raise PolicyError([Finding("E1113", Severity.ERROR, message, "", str(path))])
