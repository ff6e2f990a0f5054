"""A file that came with a cloned repository can only tighten."""

from pathlib import Path

import pytest

from earnest.config.overlay import overlay, pending_error, tighten
from earnest.config.policy.load import compose
from earnest.config.sections import PRESETS
from earnest.config.settings import parse
from earnest.core.errors import EarnestError
from earnest.core.profile import Trust
from earnest.core.verdict import Verdict

OWN = b"""
preset = "balanced"
[servers.fs]
command = ["fs"]
trust = "trusted"
[labels."fs/read"]
read_only = true
destructive = false
[[labels."fs/read".refine]]
when = "true"
read_only = true
"""


def put(folder: Path, text: str) -> str:
    path = folder / "earnest.toml"
    path.write_text(text)
    return str(path)


def test_no_file_is_no_overlay(tmp_path: Path) -> None:
    assert overlay(str(tmp_path / "earnest.toml"), {}) is None


def test_its_servers_are_listed_and_never_configured(tmp_path: Path) -> None:
    found = overlay(put(tmp_path, "[servers.evil]\ncommand = ['sh', '-c', 'id']\ntrust = 'trusted'"), {})
    assert found is not None
    assert [server.name for server in found.pending] == ["evil"] and len(found.sha256) == 64
    result = tighten(parse("own", OWN, {}), found)
    assert set(result.servers) == {"fs"} and not result.trust_caps
    assert found.path in pending_error(found, "evil").message


def test_it_cannot_replace_a_server_of_the_operator(tmp_path: Path) -> None:
    found = overlay(put(tmp_path, "[servers.fs]\ncommand = ['evil']"), {})
    assert found is not None
    assert tighten(parse("own", OWN, {}), found).servers["fs"].command[0].shown() == "fs"


@pytest.mark.parametrize("mine", PRESETS)
@pytest.mark.parametrize("theirs", PRESETS)
def test_the_stricter_preset_counts(tmp_path: Path, mine: str, theirs: str) -> None:
    found = overlay(put(tmp_path, f"preset = '{theirs}'"), {})
    assert found is not None
    result = tighten(parse("own", f"preset = '{mine}'".encode(), {}), found)
    assert PRESETS.index(result.preset) == max(PRESETS.index(mine), PRESETS.index(theirs))


@pytest.mark.parametrize(("theirs", "result"), [("untrusted", "untrusted"), ("verified", "verified"), ("trusted", "trusted")])
def test_trust_only_falls(tmp_path: Path, theirs: str, result: str) -> None:
    found = overlay(put(tmp_path, f"[servers.fs]\ntrust = '{theirs}'"), {})
    assert found is not None
    assert tighten(parse("own", OWN, {}), found).servers["fs"].trust == result
    low = parse("own", OWN.replace(b'"trusted"', b'"untrusted"'), {})
    assert tighten(low, found).servers["fs"].trust is Trust.UNTRUSTED


def test_only_the_riskier_side_of_labels_counts_and_it_silences_refinements(tmp_path: Path) -> None:
    text = "[labels.'fs/read']\nread_only = false\nidempotent = true\n[labels.'fs/x']\ncan_exfiltrate = false"
    found = overlay(put(tmp_path, text), {})
    assert found is not None and len(found.labels) == 1 and len(found.ignored) == 2
    labels = tighten(parse("own", OWN, {}), found).labels
    assert len(labels) == 1
    assert labels[0].labels.read_only is False and labels[0].labels.destructive is False
    assert labels[0].labels.idempotent is None and labels[0].refine == ()


def test_of_its_policy_asks_and_denies_stay_in_the_floor(tmp_path: Path) -> None:
    text = """
[policy]
allow = ["*"]
deny = ["fs/delete"]
[[policy.floor.rule]]
name = "lowest"
when = "true"
then = "ask"
[[policy.rule]]
name = "yes"
when = "true"
then = "allow"
[[policy.rule]]
name = "no"
when = "tool.destructive"
then = "deny"
[[policy.rule]]
name = "through the back"
when = "true"
then = "ask"
flow = "accept"
"""
    found = overlay(put(tmp_path, text), {})
    assert found is not None
    policy = found.policies[0]
    assert policy.tier == "floor"
    plain = policy.node.plain()
    assert isinstance(plain, dict) and plain["deny"] == ["fs/delete"] and "allow" not in plain
    assert [rule["name"] for rule in plain["rule"]] == ["no", "through the back"]
    assert [rule["name"] for rule in plain["floor"]["rule"]] == ["lowest"]
    assert "flow" not in plain["rule"][1]
    assert len(found.ignored) == 3
    composed = compose(tighten(parse("own", OWN, {}), found).policies, "balanced").policy
    named = [rule.name for rule in composed.floor if rule.name in ("no", "lowest", "yes", "through the back")]
    assert sorted(named) == ["lowest", "no", "through the back"]
    assert not composed.rules and not any(rule.accept for rule in composed.floor)


@pytest.mark.parametrize(
    "text",
    [
        "[policy.floor]\ndeny = ['fs/*']",
        "[policy]\nfloor = { deny = ['fs/*'] }",
        "[[policy.floor.rule]]\nname = 'x'\nwhen = 'true'\nthen = 'deny'",
        "[policy]\nfloor.rule = [{ name = 'x', when = 'true', then = 'deny' }]",
        "policy = 'p.toml'",
    ],
)
def test_its_floor_counts_however_it_is_written(tmp_path: Path, text: str) -> None:
    (tmp_path / "p.toml").write_text("[floor]\ndeny = ['fs/*']\n[[floor.rule]]\nwhen = 'tool.destructive'\nthen = 'ask'")
    found = overlay(put(tmp_path, text), {})
    assert found is not None and not found.ignored
    composed = compose(tighten(parse("own", OWN, {}), found).policies, "balanced").policy
    assert composed.floor and composed.floor[0].then in (Verdict.DENY, Verdict.ASK)


@pytest.mark.parametrize(
    "text",
    [
        "[policy]\ndney = ['fs/*']",
        "[[policy.floor]]\ndeny = ['fs/*']",
        "[[policy.rule]]\nwhen = 'true'\nthen = 'dney'",
        "[policy.floor]\nallow = 3\ndeny = 'fs/*'",
        "[policy]\npreset = 'read-onyl'",
    ],
)
def test_a_prohibition_with_a_mistake_is_refused_and_not_passed_over(tmp_path: Path, text: str) -> None:
    found = overlay(put(tmp_path, text), {})
    assert found is not None
    with pytest.raises(EarnestError):
        compose(tighten(parse("own", OWN, {}), found).policies, "balanced")


def test_a_preset_in_its_policy_counts_where_it_is_stricter(tmp_path: Path) -> None:
    for inner, outer, result in (("read-only", "", "read-only"), ("observe", "cautious", "cautious")):
        text = (f"preset = '{outer}'\n" if outer else "") + f"[policy]\npreset = '{inner}'"
        found = overlay(put(tmp_path, text), {})
        assert found is not None
        settings = tighten(parse("own", OWN, {}), found)
        assert settings.preset == result
        assert compose(settings.policies, settings.preset).policy.preset_name == result


def test_containment_it_asks_for_counts_and_what_else_it_says_of_a_server_is_reported(tmp_path: Path) -> None:
    text = "[servers.fs]\ncontain = true\ntimeout = 900\nenv = { A = 'b' }\n[servers.other]\ncontain = true"
    found = overlay(put(tmp_path, text), {})
    assert found is not None and not found.pending
    assert len(found.ignored) == 1 and "timeout, env" in found.ignored[0]
    servers = tighten(parse("own", OWN, {}), found).servers
    assert servers["fs"].contain and servers["fs"].command[0].shown() == "fs" and not servers["fs"].env
    assert servers["fs"].timeout is None and servers["other"].contain


SECTIONS = {
    "clients": "[clients.cursor]\nasks = 'person'",
    "asking": "[asking]\nvalid_s = 60",
    "limits": "[limits]\nrestarts = 1",
    "listen": "[listen]\nport = 1",
    "receipts": "[receipts]\npayloads = false",
    "flow": "[flow]\nintegrity = 'off'",
    "views": "[views.v]\ntools = ['fs/*']",
    "include": "include = ['more.toml']",
}


@pytest.mark.parametrize("key", SECTIONS)
def test_every_other_section_is_reported_and_changes_nothing(tmp_path: Path, key: str) -> None:
    found = overlay(put(tmp_path, SECTIONS[key]), {})
    assert found is not None
    assert len(found.ignored) == 1 and key in found.ignored[0]
    base = parse("own", OWN, {})
    assert tighten(base, found) == base


def test_what_is_the_operators_is_named_and_left(tmp_path: Path) -> None:
    text = "[clients.cursor]\nasks = 'person'\n[asking]\nfloor_s = 0\n[listen]\nhost = '0.0.0.0'\n"
    found = overlay(put(tmp_path, text), {})
    assert found is not None and len(found.ignored) == 3
    base = parse("own", OWN, {})
    result = tighten(base, found)
    assert (result.clients, result.asking, result.listen) == (base.clients, base.asking, base.listen)


def test_a_mistake_in_it_is_an_error_all_the_same(tmp_path: Path) -> None:
    with pytest.raises(EarnestError) as caught:
        overlay(put(tmp_path, "[asking]\nfloor = 0"), {})
    assert caught.value.code == "E1003"
