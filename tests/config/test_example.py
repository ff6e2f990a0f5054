"""examples/earnest.toml can be used, and leaves out nothing that earnest.toml may say."""

from pathlib import Path

import msgspec
import pytest

from earnest.config import sections, settings
from earnest.config.containing import Containment
from earnest.config.policy import testing
from earnest.config.policy.check import check
from earnest.config.policy.findings import Severity
from earnest.config.policy.load import compose
from earnest.core.errors import EarnestError
from earnest.core.profile import NAMES
from earnest.gateway.operator import refiners_of
from earnest.refine.address import AddressRule
from earnest.refine.enumeration import EnumerationRule
from earnest.refine.http import HttpRule
from earnest.refine.sql import SqlRule

EXAMPLE = Path(__file__).parents[2] / "examples" / "earnest.toml"
OTHERWISE = {"asks_person": "asks", "ask_host": "ask", "labels": "read_only", "cases": "values"}
"""Fields that have another name in the file."""
NOT_WRITTEN = {"name", "source", "server", "tool"}
"""Fields that come from a table's name or place."""


def loaded() -> settings.Settings:
    return settings.load(str(EXAMPLE), True, {"HOME": "/home/me"})


def test_it_loads_and_its_policy_holds_what_its_tests_say() -> None:
    found = loaded()
    document = compose(found.policies, found.preset)
    results = testing.run(document)
    assert results and all(result.passed for result in results), results
    assert not [finding for finding in check(document.policy).findings if finding.severity is Severity.ERROR]
    assert all(refiners_of(labels) for labels in found.labels if labels.refine)
    kinds = {type(rule) for labels in found.labels for rule in labels.refine}
    assert kinds == {sections.Condition, EnumerationRule, SqlRule, HttpRule, AddressRule}
    assert {"files", "tickets", "notes", "demo-files"} == set(found.servers)


@pytest.mark.parametrize(
    "section",
    [
        sections.ServerSettings,
        Containment,
        sections.ToolLabels,
        sections.Condition,
        EnumerationRule,
        SqlRule,
        HttpRule,
        sections.ClientSettings,
        sections.Asking,
        sections.Limits,
        sections.Listen,
        sections.Receipts,
        sections.Flow,
        sections.HookSettings,
        sections.View,
    ],
)
def test_every_key_stands_in_it(section: type[msgspec.Struct]) -> None:
    text = EXAMPLE.read_text()
    keys = {OTHERWISE.get(key, key) for key in section.__struct_fields__ if key not in NOT_WRITTEN} | set(NAMES)
    missing = [key for key in keys if f"\n{key} = " not in text and f".{key}]]" not in text]
    assert not missing


def test_what_it_calls_a_default_is_one() -> None:
    found = loaded()
    assert (found.asking, found.limits, found.preset) == (sections.Asking(), sections.Limits(), "balanced")
    assert found.listen == sections.Listen(hosts=found.listen.hosts, origins=found.listen.origins)
    assert found.receipts == sections.Receipts(redact=found.receipts.redact)
    bare = sections.ClientSettings("cursor")
    assert found.client("cursor") == msgspec.structs.replace(bare, asks_person=True)


def test_a_mistake_in_it_would_be_seen() -> None:
    with pytest.raises(EarnestError, match="unknown key"):
        settings.parse(str(EXAMPLE), EXAMPLE.read_bytes().replace(b"hold_s = 45", b"hold = 45"), {"HOME": "/home/me"})
