"""What is shown and what is not: filters, ignores, baselines, the file of a project."""

import json

import pytest

from earnest.core.errors import EarnestError
from earnest.lint import baseline, config
from earnest.lint.reading import read_bytes
from earnest.lint.run import Ignore, Selection, lint

MAIL = {
    "name": "send_mail",
    "description": "Send mail to a person",
    "annotations": {"readOnlyHint": True, "openWorldHint": True},
}
CLOCK = {"name": "get_time", "description": "Get the time"}
SERVERS = read_bytes(
    json.dumps({"server": "s", "tools": [t | {"inputSchema": {"type": "object"}} for t in (MAIL, CLOCK)]}).encode(), "s"
)


def audits(**select):
    return {(f.audit, f.tool) for f in lint(SERVERS, Selection(**select))}


def test_the_least_severity_and_confidence_are_kept():
    assert ("missing-hint", "get_time") in audits()
    assert audits(severity="error") == {("read-only-but-writes", "send_mail")}
    assert audits(confidence="high") == {("read-only-but-writes", "send_mail"), ("reads-but-not-read-only", "get_time")}


def test_pedantic_findings_wait_to_be_asked_for():
    bare = read_bytes(b'[{"name": "x", "description": "Create a note", "inputSchema": {"type": "object"}}]', "s")
    regular, pedantic = (lint(bare, Selection(persona=persona)) for persona in ("regular", "pedantic"))
    assert "idempotent" in {f.hint for f in pedantic} - {f.hint for f in regular}


def test_one_audit_alone_or_all_but_one():
    assert audits(only=frozenset(["read-only-but-writes"])) == {("read-only-but-writes", "send_mail")}
    assert ("read-only-but-writes", "send_mail") not in audits(without=frozenset(["read-only-but-writes"]))


def test_an_ignore_covers_its_tool_alone():
    ignore = (Ignore("reads-but-not-read-only", "known", tool="get_*"),)
    assert ("reads-but-not-read-only", "get_time") not in audits(ignore=ignore)
    assert ("read-only-but-writes", "send_mail") in audits(ignore=ignore)


def test_a_baseline_knows_findings_by_what_they_are(tmp_path):
    path = tmp_path / "baseline.json"
    found = lint(SERVERS)
    assert baseline.write(path, found) == len({baseline.known(f) for f in found})
    assert baseline.load(path) == {baseline.known(f) for f in found}
    assert path.read_text().count("\n") == len(baseline.load(path)) + 2  # one a line, for a readable difference


def test_another_hint_of_a_known_tool_is_new():
    bare = read_bytes(b'[{"name": "rows", "description": "Rows of a table", "inputSchema": {"type": "object"}}]', "s")
    ones = lint(bare, Selection(only=frozenset(["missing-hint"])))
    assert len({f.hint for f in ones}) > 1 and len({baseline.known(f) for f in ones}) == len(ones)


@pytest.mark.parametrize("text", ["", "[]", '{"version": 2, "findings": []}', '{"version": 1, "findings": [{}]}'])
def test_what_is_no_baseline_is_refused(tmp_path, text):
    (tmp_path / "b").write_text(text)
    with pytest.raises(EarnestError) as caught:
        baseline.load(tmp_path / "b")
    assert caught.value.code == "E1021"


def test_the_file_of_a_project_is_read_where_the_command_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert config.load(None) == config.LintConfig()
    (tmp_path / "earnest-lint.toml").write_text(
        'confidence = "medium"\nprofiles = ["openai-apps"]\n[[ignore]]\naudit = "missing-hint"\ntool = "x"\nreason = "later"\n'
    )
    loaded = config.load(None)
    assert loaded.confidence == "medium" and loaded.ignore == (Ignore("missing-hint", "later", tool="x"),)


@pytest.mark.parametrize(
    "text, code",
    [
        ("confidenze = 1", "E1022"),
        ('confidence = "sure"', "E1022"),
        ('[[ignore]]\naudit = "missing-hint"', "E1022"),
        ("= 1", "E1022"),
        ("a = " + "[" * 5000, "E1022"),
        ('disable = ["no-such-audit"]', "E1018"),
    ],
)
def test_a_mistake_in_the_file_is_told(tmp_path, text, code):
    path = tmp_path / "lint.toml"
    path.write_text(text)
    with pytest.raises(EarnestError) as caught:
        config.load(path)
    assert caught.value.code == code
