"""Figures: how lint is measured, and what it must reach on labelled tools."""

import json
from pathlib import Path

import pytest

from earnest.lint.measure import Label, labels, main, measure
from earnest.lint.reading import read_bytes, read_path

HERE = Path(__file__).parent
TOOLS = HERE / "data" / "labelled.jsonl"


@pytest.fixture(scope="module")
def servers():
    return read_path(TOOLS)


def test_at_least_three_hundred_tools_are_labelled_each_with_a_reason():
    sample = labels(HERE / "sample.jsonl")
    assert len({(one.server, one.tool) for one in sample}) >= 300
    assert all(
        len(one.reason) > 3 and set(one.truth) == {"read_only", "destructive", "idempotent", "open_world"} for one in sample
    )
    assert len({one.cohort for one in sample}) == 4
    held = labels(HERE / "heldout.jsonl")
    assert not {(one.server, one.tool) for one in sample} & {(one.server, one.tool) for one in held}


@pytest.mark.parametrize("name", ["sample", "heldout"])
def test_high_confidence_is_right_and_mis_annotations_are_found(servers, name):
    figures = measure(labels(HERE / f"{name}.jsonl"), servers)
    right, every = figures.precision["high"]
    assert every >= 60 and right >= 0.9 * every
    found, known = figures.recall["claimed, medium"]
    assert found >= 0.7 * known
    page = (HERE.parent.parent / "docs" / "lint.md").read_text("utf-8")
    sure, _ = figures.recall["claimed, high"]
    for good, whole in (figures.precision["high"], figures.precision["medium"], (found, known), (sure, known)):
        assert f"| {good} of {whole} |" in page, "docs/lint.md tells other figures"


def one(truth, annotations, description="Delete a row", name="delete_row"):
    given = dict.fromkeys(("read_only", "destructive", "idempotent", "open_world")) | truth
    tool = {"name": name, "description": description, "annotations": annotations, "inputSchema": {"type": "object"}}
    found = read_bytes(json.dumps({"server": "s", "tools": [tool]}).encode(), "s")
    return measure([Label("s", name, "c", given, "because")], found)


def test_a_finding_is_right_if_the_claim_is_not_the_truth():
    figures = one({"read_only": False, "destructive": True}, {"readOnlyHint": True})
    assert figures.by_audit["read-only-but-writes high"] == (1, 1) and figures.recall["claimed, high"] == (1, 1)


def test_a_finding_is_wrong_if_the_claim_is_the_truth():
    figures = one({"read_only": True}, {"readOnlyHint": True})
    assert figures.precision["high"] == (0, 1) and [f.audit for f in figures.wrong] == ["read-only-but-writes"]


def test_a_finding_is_wrong_where_the_truth_is_arguable():
    assert one({}, {"readOnlyHint": True}).precision["high"] == (0, 1)


def test_what_is_missed_is_listed():
    figures = one({"read_only": False}, {"readOnlyHint": True}, "Rows of a table", "rows")
    assert figures.recall["claimed, any"] == (0, 1) and figures.missed == (("s", "rows", "read_only"),)


def test_the_command_prints_both_figures(capsys):
    assert main([str(HERE / "sample.jsonl"), str(TOOLS)]) == 0
    out = capsys.readouterr().out
    assert "precision" in out and "recall" in out
    assert main([]) == 2
