"""A policy file is read whole or not at all, and what is wrong with it has a place and a suggestion."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earnest.config import toml_ranges
from earnest.config.policy import PRESETS, Document, PolicyError, compose, load, parse, preset
from earnest.config.policy.findings import Finding, Wrong
from earnest.config.policy.lower import condition
from earnest.config.policy.positions import Positions, plain
from earnest.config.settings import PolicyText
from earnest.core.compile import compile
from earnest.core.policy import Mode
from earnest.core.profile import NAMES, Basis, Profile, Value
from earnest.core.verdict import Verdict
from earnest.core.vocabulary import ENDORSED, ToolFacts
from properties import examples

ALLOW, ASK, DENY = Verdict


def wrong(text: str, **more: str) -> list[Finding]:
    with pytest.raises(PolicyError) as caught:
        parse(text, "p.toml", **more)  # type: ignore[arg-type]
    return list(caught.value.findings)


def tool(server: str = "s", name: str = "t", method: str = "tools/call", **values: bool) -> ToolFacts:
    worst = {one: one not in ("read_only", "idempotent") for one in NAMES}
    profile = Profile(**{k: Value(v, Basis.DEFAULT) for k, v in {**worst, **values}.items()})  # type: ignore[arg-type]
    return ToolFacts(server, name, profile, method=method)


def verdict(document: Document, facts: ToolFacts, bits: int = 0) -> Verdict:
    return compile(document.policy).row(facts).at(bits, dict).verdict


def test_a_rule_on_a_name_that_does_not_exist_is_an_error_with_the_right_name() -> None:
    [finding] = wrong("[[rule]]\nthen = 'ask'\nwhen = 'tool.readonly_hint == true'\n")
    assert (finding.code, finding.line, finding.column) == ("E1104", 3, 9)
    assert "tool.readonly_hint" in finding.message
    assert "`tool.read_only`" in finding.suggestion


@pytest.mark.parametrize(
    ("when", "code", "at", "suggests"),
    [
        ("tool.readOnlyHint", "E1104", 0, "tool.read_only"),
        ("tool.read_only && tool.nme == 'x'", "E1104", 18, "tool.name"),
        ("foo", "E1104", 0, "args"),
        ("server.trust == 'trustd'", "E1105", 16, "trusted"),
        ("server.trust in ['trusted', 'x']", "E1105", 16, "untrusted, verified, trusted"),
        ("tool.basis.read_only == 'claim'", "E1105", 24, "claimed"),
        ("server.trust < 'trusted'", "E1105", 0, "=="),
        ("tool.name == 3", "E1105", 0, ""),
        ("tool.read_only == 'true'", "E1105", 0, "without quotes"),
        ("size(tool.name)", "E1105", 0, "=="),
        ("tool.name.startswith('a')", "E1104", 10, "startsWith"),
        ("tool.read_only & args.x", "E1103", 15, "&&"),
        ("args.x = 1", "E1103", 7, "=="),
        ("not tool.read_only", "E1103", 4, "!"),
        ("(tool.read_only", "E1103", 15, ")"),
        ("", "E1103", 0, "when"),
        ("args.x.matches('(a)\\\\1')", "E1109", 15, ""),
        ("args.x.matches(args.y)", "E1109", 15, ""),
        ("args.x == 5u", "E1105", 10, "5"),
        ("tool.read_only && tool.destructive", "E1106", 0, ""),
        ("server.name == 'a' && server.name == 'b'", "E1106", 0, ""),
        ("flow.private && !flow.private && args.x == 1", "E1106", 0, ""),
        ("false", "E1106", 0, ""),
        ("1/0 == 1", "E1106", 0, ""),
        ("tool.read_only || !tool.read_only", "E1107", 0, "when"),
        ("server.trust != 'trusted' || server.trust == 'trusted'", "E1107", 0, "when"),
        ("has(tool.name)", "E1107", 0, "has"),
        ("args.a.exists(x, args.b.exists(y, x == y))", "E1105", 17, ""),
        ("{'a': 1} == args", "E1103", 0, ""),
        ("(" * 60 + "true" + ")" * 60, "E1103", 40, ""),
        ("!" * 60 + "tool.read_only", "E1103", 40, ""),
        ("args.x == " + "1+" * 60 + "1", "E1103", 10, ""),
    ],
)
def test_a_condition_that_cannot_be_meant_is_refused_where_it_goes_wrong(when: str, code: str, at: int, suggests: str) -> None:
    [finding] = wrong(f"[[rule]]\nthen = 'ask'\nwhen = {_basic(when)}\n")
    assert finding.code == code
    assert suggests in finding.suggestion + finding.message
    if at != 40:
        escapes = len(_basic(when[:at])) - 2 - at
        assert (finding.line, finding.column) == (3, 9 + at + escapes)


def _basic(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def test_places_inside_long_strings_are_found() -> None:
    [one] = wrong('[[rule]]\nthen = "ask"\nwhen = """\ntool.read_only &&\\\n   flow.nope"""\n')
    assert (one.line, one.column) == (5, 4)
    [two] = wrong("rule = [{ then = \"ask\", when = 'é' }]\n".replace("é", '"é" == args.x && flow.nope'))
    assert (two.line, two.column) == (1, 33 + 17)


@settings(max_examples=examples(100), deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20))
def test_every_character_of_a_string_has_its_place(text: str) -> None:
    import json

    if any(ord(c) < 32 or ord(c) == 127 for c in text):
        return
    source = "# é\nk = " + json.dumps(text, ensure_ascii=False) + "\n"
    node = toml_ranges.scan("", source.encode())
    assert plain(node) == {"k": text}
    positions = Positions(node, source.encode())
    column = 6
    for index, char in enumerate(text):
        assert positions.inside(("k",), index) == (2, column)
        column += len(json.dumps(char, ensure_ascii=False)) - 2


def test_all_that_is_wrong_is_told_at_once_in_order() -> None:
    findings = wrong(
        'preset = "balancd"\nalow = []\nallow = ["x", "mcp__a__b__c"]\n'
        '[[rule]]\nname = "n"\nthen = "ak"\n[[rule]]\nwhen = "foo"\n'
        '[[floor.rule]]\nthen = "allow"\n[[rule]]\nthen = "deny"\nflow = "accept"\n[floor]\nallow = ["a/b"]\n'.replace(
            "[floor]\n", ""
        )
    )
    assert [(one.code, one.line) for one in findings] == [
        ("E1113", 1), ("E1102", 2), ("E1108", 3), ("E1108", 3), ("E1102", 6), ("E1102", 7), ("E1104", 8), ("E1102", 10),
        ("E1102", 13), ("E1102", 14),
    ]  # fmt: skip
    assert "balanced" in findings[0].suggestion
    assert "allow" in findings[1].suggestion


@pytest.mark.parametrize(
    ("text", "line", "column"), [("a = 1\nb = 'x' y", 2, 9), ("a = ", 1, 5), ('[[rule]]\nwhen = "a\n', 2, 10)]
)
def test_what_is_not_toml_has_a_place(text: str, line: int, column: int) -> None:
    [finding] = wrong(text)
    assert (finding.code, finding.line, finding.column) == ("E1101", line, column)


def test_two_rules_of_one_name_are_refused() -> None:
    [finding] = wrong("[[rule]]\nname='a'\nthen='ask'\n[[rule]]\nname='a'\nthen='deny'\n")
    assert (finding.code, finding.line) == ("E1102", 5)


def test_an_error_of_the_floor_file_names_that_file() -> None:
    [finding] = wrong("", floor="[[rule]]\nthen='allow'\n", floor_source="floor.toml")
    assert (finding.source, finding.line) == ("floor.toml", 2)


def test_a_rule_without_a_condition_always_matches() -> None:
    assert verdict(parse("[[rule]]\nthen='deny'\n"), tool()) is DENY


def test_an_unreadable_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PolicyError) as caught:
        load(tmp_path / "none.toml")
    assert caught.value.code == "E1113"
    (tmp_path / "p.toml").write_bytes(b"\xff")
    with pytest.raises(PolicyError):
        load(tmp_path / "p.toml")


# Lists


@pytest.mark.parametrize(
    ("entry", "matching", "other"),
    [
        ("a/b", ("a", "b"), ("a", "bb")),
        ("a/*", ("a", "anything"), ("aa", "b")),
        ("*/del_*", ("x", "del_y"), ("x", "y_del_z")),
        ("a/get?", ("a", "gets"), ("a", "get")),
        ("mcp__a__b", ("a", "b"), ("a", "c")),
        ("mcp__a__b*", ("a", "bcd"), ("a", "cb")),
        ("mcp__a", ("a", "x"), ("b", "x")),
    ],
)
def test_list_entries_match_as_clients_write_them(entry: str, matching: tuple[str, str], other: tuple[str, str]) -> None:
    for word, expected in (("allow", ALLOW), ("ask", ASK), ("deny", DENY)):
        document = parse(f"{word} = ['{entry}']\npreset = 'none'")
        assert verdict(document, tool(*matching)) is expected
        assert verdict(document, tool(*other)) is ASK


def test_a_spelling_of_two_readings_denies_both_and_allows_neither() -> None:
    deny = parse("deny = ['mcp__a__b__c']\npreset = 'none'")
    assert verdict(deny, tool("a", "b__c")) is verdict(deny, tool("a__b", "c")) is DENY
    assert [one.code for one in wrong("allow = ['mcp__a__b__c']")] == ["E1108"]


def test_an_allow_entry_speaks_of_tool_calls_and_a_deny_entry_of_everything() -> None:
    read = tool("a", "file:///x", method="resources/read")
    assert verdict(parse("allow = ['a/*']\npreset = 'none'"), read) is ASK
    assert verdict(parse("deny = ['a/*']"), read) is DENY


@pytest.mark.parametrize("entry", ["x", "/t", "s/", "mcp__", ""])
def test_an_entry_that_names_no_server_and_tool_is_refused(entry: str) -> None:
    assert [one.code for one in wrong(f"deny = ['{entry}']")] == ["E1108"]


# Presets


def test_balanced_lets_reads_and_harmless_writes_run_and_asks_about_the_rest() -> None:
    document = parse("")
    harmless = {"destructive": False, "open_world": False}
    assert verdict(document, tool(read_only=True)) is ALLOW
    assert verdict(document, tool(**harmless)) is ALLOW
    assert (
        verdict(document, tool())
        is verdict(document, tool(destructive=False))
        is verdict(document, tool(open_world=False))
        is ASK
    )
    assert verdict(document, tool(), ENDORSED) is ALLOW


def test_cautious_asks_about_every_write_and_read_only_denies_it() -> None:
    harmless = {"destructive": False, "open_world": False}
    for bits in (0, ENDORSED):
        assert verdict(parse("preset='cautious'"), tool(**harmless), bits) is ASK
        assert verdict(parse("preset='read-only'"), tool(**harmless), bits) is DENY
    for name in ("cautious", "read-only"):
        assert verdict(parse(f"preset='{name}'"), tool(read_only=True)) is ALLOW


def test_observe_says_what_balanced_says_and_only_observes() -> None:
    rules, mode = preset("observe")
    assert mode is Mode.OBSERVE
    assert [rule.name for rule in rules] == [rule.name for rule in preset("balanced")[0]]


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_never_allows_a_riskier_tool_more(name: str) -> None:
    document = parse(f"preset = '{name}'")
    for values in range(16):
        given = {one: bool(values >> i & 1) for i, one in enumerate(("read_only", "destructive", "idempotent", "open_world"))}
        for one, riskier in (
            ("read_only", False),
            ("destructive", True),
            ("idempotent", False),
            ("open_world", True),
        ):
            for bits in range(8):
                worse, better = tool(**{**given, one: riskier}), tool(**{**given, one: not riskier})
                assert verdict(document, worse, bits) >= verdict(document, better, bits)


# Configurations of several files


def _text(text: str, tier: str = "rules") -> PolicyText:
    data = text.encode()
    return PolicyText(path="x.toml", data=data, node=toml_ranges.scan("x.toml", data), tier=tier)  # type: ignore[arg-type]


def test_a_policy_held_in_a_configuration_is_read_from_its_table() -> None:
    data = b"preset = 'cautious'\n[policy]\n[[policy.rule]]\nthen = 'deny'\nwhen = 'tool.nope'\n"
    node = toml_ranges.scan("e.toml", data).get("policy")
    assert node is not None
    with pytest.raises(PolicyError) as caught:
        compose([PolicyText(path="e.toml", data=data, node=node)], "cautious")
    assert (caught.value.findings[0].line, caught.value.findings[0].column) == (5, 9)


def test_a_file_that_may_only_tighten_adds_to_the_floor_alone() -> None:
    found = _text(
        "preset = 'observe'\nallow = ['s/*']\nask = ['s/a']\n[[rule]]\nthen = 'deny'\nwhen = \"tool.name == 'd'\"\n",
        "floor",
    )
    own = _text("allow = ['s/*']")
    document = compose([own, found], "balanced")
    assert document.policy.mode is Mode.ENFORCE
    assert [verdict(document, tool("s", name)) for name in ("x", "a", "d")] == [ALLOW, ASK, DENY]
    assert verdict(compose([found], "balanced"), tool("s", "x")) is ASK


def test_a_stricter_preset_asked_for_from_outside_is_kept() -> None:
    assert compose([_text("preset = 'observe'")], "read-only").policy.preset_name == "read-only"
    assert compose([_text("preset = 'read-only'")], "cautious").policy.preset_name == "read-only"
    assert compose([_text("preset = 'observe'")], "balanced").policy.preset_name == "observe"
    assert compose([], "cautious").policy.preset_name == "cautious"


@settings(max_examples=examples(200), deadline=None)
@given(st.text(st.sampled_from("tool.raed_ny()[]!&|=<>'\"1 ?:argsx,\\{}-+/"), max_size=25))
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        condition(text)
    except Wrong as found:
        assert 0 <= found.at <= len(text)
