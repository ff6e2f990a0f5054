"""What stores and clients ask, and a submission beside its server."""

import json

import pytest

from earnest.core.errors import EarnestError
from earnest.lint import submission
from earnest.lint.model import Server, tool_of
from earnest.lint.stores.profile import check
from earnest.lint.stores.registry import PROFILES, find


def server(**annotations):
    description = annotations.pop("description", "List rows of a table")
    definition = {"name": annotations.pop("name", "list_rows"), "description": description, "annotations": annotations}
    if "title" in annotations:
        definition["title"] = annotations.pop("title")
    return Server("s", (tool_of(definition | {"inputSchema": {"type": "object"}}),))


GOOD = {"title": "Rows", "readOnlyHint": True, "destructiveHint": False, "openWorldHint": False}


@pytest.mark.parametrize("profile", [p.id for p in PROFILES])
def test_a_read_with_all_hints_passes_everywhere(profile):
    [verdict] = check(server(**GOOD), find(profile))
    assert verdict.passed and verdict.findings == ()


@pytest.mark.parametrize("profile", [p.id for p in PROFILES])
def test_a_read_without_hints_fails_everywhere_and_is_told_how_to_pass(profile):
    [verdict] = check(server(), find(profile))
    assert not verdict.passed
    fixed = [f for f in verdict.findings if f.severity == "error"]
    assert all(f.fix and f.message.startswith(find(profile).name) for f in fixed)


@pytest.mark.parametrize("profile", ["openai-apps", "anthropic-directory", "m365-copilot", "claude-code-plan-mode", "vscode"])
def test_a_tool_that_sends_and_claims_to_read_fails(profile):
    [verdict] = check(server(**GOOD, name="send_mail", description="Send mail to a person"), find(profile))
    assert not verdict.passed and any(f.hint == "read_only" for f in verdict.findings)


@pytest.mark.parametrize(
    "profile, annotations, passed",
    [
        ("openai-apps", {"readOnlyHint": True, "openWorldHint": False}, False),  # destructiveHint is asked of reads too
        ("anthropic-directory", {"title": "Rows", "readOnlyHint": True}, True),
        ("anthropic-directory", {"readOnlyHint": True}, False),
        ("m365-copilot", {"readOnlyHint": True}, True),
        ("codex", {"readOnlyHint": True, "destructiveHint": True}, False),
        ("codex", {"readOnlyHint": True}, True),
        ("claude-code-plan-mode", {"readOnlyHint": False}, False),
    ],
)
def test_each_asks_its_own(profile, annotations, passed):
    [verdict] = check(server(**annotations), find(profile))
    assert verdict.passed is passed


def test_a_write_may_stay_out_of_plan_mode():
    write = server(name="delete_row", description="Delete a row", readOnlyHint=False, destructiveHint=True)
    assert check(write, find("claude-code-plan-mode"))[0].passed


@pytest.mark.parametrize("profile", PROFILES, ids=lambda p: p.id)
def test_each_demand_has_a_public_source_with_the_day_it_was_read(profile):
    assert profile.sources and all(s.address.startswith("https://") and s.read == "2026-11-30" for s in profile.sources)


def form(**entry):
    reasons = dict.fromkeys(
        ("read_only_justification", "destructive_justification", "open_world_justification"), "It lists rows and nothing else."
    )
    annotations = {"readOnlyHint": True, "destructiveHint": False, "openWorldHint": False}
    return {"list_rows": {"annotations": annotations, "justifications": reasons} | entry}


def told(given, **annotations):
    return [(f.tool, f.hint, f.severity) for f in submission.check(server(**{**GOOD, **annotations}), given, "f.json")]


def test_a_form_that_agrees_with_its_server_has_nothing_to_say():
    assert told(form()) == []


def test_a_form_and_a_server_that_differ_are_told_apart():
    assert told(form(), openWorldHint=True) == [("list_rows", "open_world", "error")]
    assert told({**form(), "gone": {}}) == [("gone", None, "error")]
    assert told({}) == [("list_rows", None, "error")]
    assert told(form(justifications={})) == [
        ("list_rows", hint, "warning") for hint in ("read_only", "destructive", "open_world")
    ]
    assert ("list_rows", "read_only", "error") in told(form(annotations={"readOnlyHint": "true"}))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"tools": 3}', '{"tools": {"x": 3}}'])
def test_what_is_no_form_is_refused(tmp_path, text):
    (tmp_path / "f.json").write_text(text)
    with pytest.raises(EarnestError) as caught:
        submission.load(tmp_path / "f.json")
    assert caught.value.code == "E1024"


def test_a_form_of_either_shape_is_read(tmp_path):
    path = tmp_path / "f.json"
    path.write_text(json.dumps({"schema_version": 1, "tools": [{"name": "list_rows"}]}))
    assert set(submission.load(path)) == {"list_rows"}
