"""The formats, over one finding type."""

import json
import re
from pathlib import Path

import pytest

from earnest.lint.model import Finding, Place
from earnest.lint.outputs import github, markdown, sarif, text
from earnest.lint.outputs import json as as_json

ONE = Finding(
    "read-only-but-writes",
    "az",
    "send",
    "read_only",
    "error",
    "high",
    "claims ‘x’",
    "readOnlyHint: false",
    place=Place("a b.py", 3),
)
TWO = Finding("zero-value", "az", None, "idempotent", "note", "high", "50% of it\n::error::x", "")


def test_json_has_exactly_the_eight_members():
    rows = json.loads(as_json.render([ONE, TWO]))
    assert [list(row) for row in rows] == [["audit", "server", "tool", "hint", "severity", "confidence", "message", "fix"]] * 2
    assert rows[0]["tool"] == "send" and rows[1]["tool"] is None
    assert as_json.render([]).strip() == "[]"


def test_sarif_has_the_shape_that_its_specification_asks_for():
    log = json.loads(sarif.render([ONE, TWO]))
    assert log["version"] == "2.1.0" and log["$schema"].endswith("sarif-schema-2.1.0.json")
    [run] = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] and len({rule["id"] for rule in driver["rules"]}) == len(driver["rules"])
    for rule in driver["rules"]:
        assert set(rule) <= {"id", "shortDescription", "fullDescription", "help", "defaultConfiguration"}
        assert rule["defaultConfiguration"]["level"] in ("none", "note", "warning", "error")
        assert all(rule[key]["text"] for key in ("shortDescription", "fullDescription", "help"))
    for result in run["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("none", "note", "warning", "error") and result["message"]["text"]
        assert re.fullmatch(r"[0-9a-f]{32}", result["partialFingerprints"]["earnestLint/v1"])
        [location] = result["locations"]
        assert location["logicalLocations"][0]["fullyQualifiedName"].startswith("az")
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "a%20b.py"}, "region": {"startLine": 3}}
    assert "physicalLocation" not in run["results"][1]["locations"][0]


def test_sarif_holds_to_the_official_schema():
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((Path(__file__).parent / "data" / "sarif-schema-2.1.0.json").read_text("utf-8"))
    check = jsonschema.validators.validator_for(schema)(schema)
    log = json.loads(sarif.render([ONE, TWO]))
    assert list(check.iter_errors(log)) == []
    log["runs"][0]["results"][0]["level"] = "fatal"
    assert list(check.iter_errors(log)) != []


def test_a_moved_line_keeps_its_fingerprint():
    import msgspec

    moved = msgspec.structs.replace(ONE, place=Place("other.py", 9), message="said otherwise")
    marks = [json.loads(sarif.render([one]))["runs"][0]["results"][0]["partialFingerprints"] for one in (ONE, moved)]
    assert marks[0] == marks[1]


def test_no_word_of_a_server_starts_a_workflow_command():
    lines = github.render([ONE, TWO]).splitlines()
    assert len(lines) == 2 and all(line.startswith("::") for line in lines)
    assert lines[0].startswith("::error title=earnest lint%3A read-only-but-writes,file=a b.py,line=3::")
    odd = Finding("x", "s", "t", None, "note", "low", "m", "", place=Place("a\n::error::,b", 1))
    assert len(github.render([odd]).splitlines()) == 1 and "%0A%3A%3Aerror" in github.render([odd])
    assert "50%25" in lines[1] and lines[1].startswith("::notice ")


HOSTILE = Finding(
    "name-rule", "::error::s", "t\n::error::x", None, "error", "high", "m\n::error::y ##[add-mask]z", "f\n  ::error::f"
)


def said(findings):
    lines = []
    text.render(findings, 1, 1, lambda line, tone: lines.append(line), True)
    return "\n".join(lines)


@pytest.mark.parametrize("write", [said, as_json.render, sarif.render, markdown.render])
def test_no_format_lets_a_server_speak_to_the_runner(write):
    shown = write([HOSTILE])
    assert not [line for line in shown.splitlines() if line.lstrip().startswith("::")] and "##[" not in shown


def test_a_link_of_a_server_is_none_in_sarif():
    shown = sarif.render([Finding("x", "s", "t", None, "note", "low", "see [docs](https://example.com) \x9b31m", "")])
    [result] = json.loads(shown)["runs"][0]["results"]
    assert result["message"]["text"] == "s/t see [docs] (https://example.com) <U+009B>31m"


def test_a_tool_without_a_name_is_not_the_server():
    assert "a tool without a name is" in said([Finding("x", "s", "", None, "note", "low", "is bad", "")])


def test_markdown_shows_foreign_text_as_text():
    bad = Finding("x", "s|![a](http://e)", "t", None, "note", "low", "<b>|\n| row", "")
    shown = markdown.render([bad])
    assert "\\<b\\>\\|" in shown and "![a]" not in shown and len(shown.strip().splitlines()) == 5


@pytest.mark.parametrize("every, lines", [(False, 1), (True, 5)])
def test_many_notes_alike_are_told_as_one(every, lines):
    said = []
    notes = [Finding("missing-hint", "s", f"t{n}", "open_world", "note", "low", "is absent", "") for n in range(5)]
    text.render(notes, 1, 5, lambda line, tone: said.append(line), every)
    assert sum("note[" in line for line in said) == lines
    assert said[-1] == "1 server, 5 tools: 0 errors, 0 warnings, 5 notes"
