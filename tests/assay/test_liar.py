"""The lying server, whole, and the honest one that looks bad: how many lies are caught, and that nobody is accused wrongly."""

from typing import Any

import pytest

from assay.conftest import Assay, server, verdicts
from servers.liar_lies import LIES

KNOWN_MISSES = {
    "look_unboxed": "behaves while an overlay is mounted; tiers A and B side by side show it",
}
"""Lies that tier A does not catch, each with what would."""
SOFT = {
    "look_cached": "a cache of its own",
    "look_scratch": "scratch",
    "look_and_restore": "put back as it was",
}
"""Lies about places that are no state: told as soft, contradicted with `--strict`."""

pytestmark = pytest.mark.slow


@pytest.fixture
def liar(assay: Assay) -> dict[str, Any]:
    return assay("--jobs", "4", "--patience", "1.6", "--", *server("liar.py"), code=1)


def test_lies_are_caught_and_nothing_else_is_held_against_anyone(liar: dict[str, Any]) -> None:
    said = verdicts(liar)
    caught = {name for name, hint in LIES.items() if said[name][hint] == "CONTRADICTED"}
    assert len(LIES) >= 25
    assert set(LIES) - caught == KNOWN_MISSES.keys() | SOFT.keys()
    assert {name for name in SOFT if said[name]["read_only"] == "SOFT"} == SOFT.keys()
    false = [
        (name, hint)
        for name, hints in said.items()
        for hint, word in hints.items()
        if word == "CONTRADICTED" and LIES.get(name) != hint
    ]
    assert false == []
    for tool in liar["tools"]:
        for found in tool["hints"].values():
            for one in found["evidence"]:
                assert found["verdict"] != "CONTRADICTED" or (one["runs"] >= 2 and one["steps"])


def test_true_claims_that_look_false_are_not_held_against_anyone(assay: Assay) -> None:
    report = assay("--jobs", "4", "--", *server("liar_honest.py"))
    said = verdicts(report)
    assert len(said) >= 10
    soft = {name for name, hints in said.items() if hints["read_only"] == "SOFT"}
    assert soft >= {"read_cached", "read_logged", "git_state", "search_site"}
    effects = {tool["name"]: tool["effective_calls"] for tool in report["tools"]}
    writers = [name for name, hints in said.items() if not name.startswith(("read", "count", "git_", "tell", "ask", "search"))]
    assert all(effects[name] for name in writers), effects


@pytest.mark.parametrize("when", ["--bookkeeping", "--late-bookkeeping"])
def test_a_server_that_counts_every_call_in_a_file_is_told_once_and_no_tool_is_accused(assay: Assay, when: str) -> None:
    few = ("--tool", "read_with_scratch", "--tool", "tell_time", "--tool", "append_item")
    report = assay(*few, "--patience", "0.5", "--", *server("liar_honest.py"), when)
    assert [finding["kind"] for finding in report["server_findings"]] == ["bookkeeping"]
    assert "usage.json" in report["server_findings"][0]["where"]
    assert verdicts(report)["append_item"]["destructive"] == "SUPPORTED"


def test_two_tiers_side_by_side_show_who_behaves_when_watched(assay: Assay) -> None:
    few = [word for name in ("look_unboxed", "look_untraced", "look_datagram") for word in ("--tool", name)]
    report = assay("--both", "--patience", "0.3", *few, "--", *server("liar.py"), code=1)
    said = verdicts(report)
    assert said["look_unboxed"]["read_only"] == said["look_untraced"]["read_only"] == "CONTRADICTED"
    # What one tier does not see is no sign of watching out: datagrams are seen in A alone.
    assert said["look_datagram"]["open_world"] == "CONTRADICTED"
    assert [(finding["kind"], finding["where"]) for finding in report["server_findings"]] == [("differs", "look_unboxed")]


def test_what_a_tier_does_not_see_is_no_support(assay: Assay) -> None:
    report = assay("--tier", "B", "--patience", "0", "--tool", "look_datagram", "--", *server("liar.py"))
    assert verdicts(report)["look_datagram"]["open_world"] == "INCONCLUSIVE"


def test_strict_takes_caches_and_scratch_for_contradictions(assay: Assay) -> None:
    report = assay("--strict", "--patience", "0.3", "--tool", "look_cached", "--", *server("liar.py"), code=1)
    assert verdicts(report)["look_cached"]["read_only"] == "CONTRADICTED"
