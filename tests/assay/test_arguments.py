"""Arguments from schemas: each valid by another implementation's eyes, guesses first, and nothing hostile hangs."""

import time
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earnest.assay.arguments.answers import dressed, spoken
from earnest.assay.arguments.complaints import Complaints
from earnest.assay.arguments.generate import Candidates
from earnest.assay.arguments.guess import Guesses
from earnest.assay.arguments.harvest import Harvest, Made, filled
from earnest.assay.arguments.literals import Literals, of_text
from earnest.assay.arguments.plan import Planner
from earnest.assay.arguments.schema import Document
from earnest.assay.arguments.strings import by_pattern
from earnest.assay.fixture import Fixture
from earnest.assay.model import Answer, Step, ToolUnder
from earnest.core.hints import RawHints

FIXTURE = Fixture("/nowhere", "/home/ada")


def obj(required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties) if required is None else required}


SCHEMAS = {
    "recursive reference": {
        **obj(node={"$ref": "#/$defs/node"}),
        "$defs": {
            "node": {
                "type": "object",
                "properties": {
                    "value": {"type": "integer"},
                    "next": {"$ref": "#/$defs/node"},
                    "all": {"items": {"$ref": "#/$defs/node"}},
                },
                "required": ["value"],
            }
        },
    },
    "recursion that must end": {
        **obj(tree={"$ref": "#/$defs/tree"}),
        "$defs": {
            "tree": {"oneOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#/$defs/tree"}, "minItems": 1}]}
        },
    },
    "anchor": {**obj(a={"$ref": "#word"}), "$defs": {"x": {"$anchor": "word", "type": "string", "minLength": 30}}},
    "prefixItems": obj(
        p={"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer", "minimum": 5}], "items": False}
    ),
    "contains": obj(p={"type": "array", "contains": {"const": 7}, "minContains": 2, "items": {"type": "integer"}}),
    "uniqueItems": obj(p={"type": "array", "items": {"type": "integer"}, "minItems": 4, "uniqueItems": True}),
    "dependentRequired": {
        **obj(["card"], card={"type": "integer"}, bill={"type": "string"}),
        "dependentRequired": {"card": ["bill"]},
    },
    "dependentSchemas": {
        **obj(["card"], card={"type": "integer"}),
        "dependentSchemas": {
            "card": {"properties": {"code": {"type": "string", "pattern": "^[0-9]{3}$"}}, "required": ["code"]}
        },
    },
    "if then else": {
        **obj(["kind"], kind={"enum": ["a", "b"]}, x={"type": "string"}, y={"type": "integer"}),
        "if": {"properties": {"kind": {"const": "a"}}},
        "then": {"required": ["x"]},
        "else": {"required": ["y"]},
    },
    "oneOf": obj(
        v={"oneOf": [{"type": "string", "pattern": "^[A-Z]{3}-\\d{1,4}$"}, {"type": "integer", "multipleOf": 7, "minimum": 10}]}
    ),
    "anyOf with null": obj(v={"anyOf": [{"type": "null"}, {"type": "string", "format": "date"}]}),
    "allOf": {"allOf": [obj(a={"type": "string"}), obj(b={"type": "integer", "minimum": 3})]},
    "not": obj(v={"type": "string", "not": {"enum": ["sample"]}, "minLength": 4}),
    "unevaluatedProperties": {
        "type": "object",
        "allOf": [{"properties": {"a": {"type": "string"}}}],
        "properties": {"b": {"const": 3}},
        "unevaluatedProperties": False,
        "required": ["a", "b"],
    },
    "minProperties": {"type": "object", "minProperties": 2, "additionalProperties": {"type": "integer"}},
    "patternProperties": {
        "type": "object",
        "patternProperties": {"^x-[a-z]{2}$": {"type": "integer"}},
        "additionalProperties": False,
        "minProperties": 1,
    },
    "bounds": obj(
        n={"type": "number", "exclusiveMinimum": 0, "maximum": 1}, i={"type": "integer", "minimum": 100, "maximum": 101}
    ),
    "type list": obj(v={"type": ["null", "boolean", "integer"]}),
    "draft 7 definitions": {**obj(v={"$ref": "#/definitions/w"}), "definitions": {"w": {"enum": ["one", "two"]}}},
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_candidates_are_valid_and_differ(name: str) -> None:
    schema = SCHEMAS[name]
    made = Candidates(Document(schema), lambda place, part: ()).make(8)
    assert made
    check = jsonschema.Draft202012Validator(schema)
    for value in made:
        check.validate(value)
    assert len({repr(value) for value in made}) == len(made)
    assert made == Candidates(Document(schema), lambda place, part: ()).make(8)


plain = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer", "minimum": 2},
        {"type": "boolean"},
        {"enum": [1, "x", None]},
        {"const": [1]},
        {"type": "null"},
    ]
)
nested = st.recursive(
    plain,
    lambda inner: st.one_of(
        st.fixed_dictionaries({"type": st.just("array"), "items": inner, "maxItems": st.integers(1, 3)}),
        st.builds(lambda a, b: {"anyOf": [a, {"allOf": [b]}]}, st.just({"type": "string"}), inner),
        st.builds(lambda a, b, c: obj(["a"], a=a, b=b, c=c), inner, inner, inner),
    ),
    max_leaves=8,
)


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from(["path", "id", "query", "count", "x"]), nested, min_size=1))
def test_any_schema_of_these_parts_gets_valid_arguments(properties: dict[str, Any]) -> None:
    schema = obj(**properties)
    guesses = Guesses("read_thing", "", FIXTURE, lambda name: ())
    made = Candidates(Document(schema), guesses).make(4)
    valid = [value for value in made if jsonschema.Draft202012Validator(schema).is_valid(value)]
    assert valid == made and made


def test_a_hostile_schema_neither_hangs_nor_fetches() -> None:
    began = time.monotonic()
    hostile = [
        obj(v={"type": "string", "pattern": "^(a+)+$"}),
        obj(v={"type": "string", "pattern": "((x{999}){999}){999}"}),
        obj(v={"type": "array", "minItems": 10**9, "items": {"type": "string"}}),
        obj(v={"type": "string", "minLength": 10**9}),
        obj(v={"$ref": "http://127.0.0.1:1/schema.json"}),
        {"$ref": "#"},
        {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}},
        {"allOf": [{"$ref": "#"}]},
        {"type": 7, "properties": [1], "required": "x"},
    ]
    for schema in hostile:
        Candidates(Document(schema), lambda place, part: ()).make(4)
    assert time.monotonic() - began < 20


def test_a_pattern_is_matched_by_what_is_made_for_it() -> None:
    import random
    import re

    for pattern in (r"^\d{4}-[A-F]{2}$", r"^(?<year>\d{4})$", r"[^@]+@[a-z]+\.org", r"^\/[a-z]+\/$"):
        made = by_pattern(pattern, random.Random(1))
        assert made is not None and re.search(pattern.replace("(?<y", "(?P<y").replace(r"\/", "/"), made)


def tool(name: str, **properties: Any) -> ToolUnder:
    return ToolUnder(name, "", obj(**properties), RawHints(), b"{}")


def first(under: ToolUnder, harvest: Harvest | None = None) -> dict[str, Any]:
    return Planner(FIXTURE, Literals(), {}).candidates(under, harvest or Harvest())[0]


TEXT = {"type": "string"}


def test_readers_get_what_is_there_and_writers_what_is_not() -> None:
    assert first(tool("read_file", path=TEXT)) == {"path": "/home/ada/workspace/notes.txt"}
    assert first(tool("write_file", path=TEXT, content=TEXT))["path"] == "/home/ada/workspace/made.txt"
    assert first(tool("list_directory", path=TEXT)) == {"path": "/home/ada/workspace"}
    assert first(tool("git_add", repo_path=TEXT, files={"type": "array", "items": TEXT})) == {
        "repo_path": "/home/ada/repo",
        "files": ["gamma.txt"],
    }


def answered(name: str, arguments: dict[str, Any], parsed: Any, effective: bool = True) -> Made:
    return Made(Step(name, arguments), Answer("done", parsed, "" if not isinstance(parsed, str) else parsed, 0.1), effective)


def test_an_id_goes_from_its_producer_to_its_consumer_and_its_call_before_it() -> None:
    harvest = Harvest()
    harvest.add(answered("list_todos", {}, {"todos": []}, effective=False))
    harvest.add(answered("create_todo", {"title": "sample"}, {"todo": {"id": "t-81f3", "title": "sample"}}))
    arguments = first(tool("delete_todo", todo_id=TEXT), harvest)
    assert arguments == {"todo_id": "t-81f3"}
    prologue, step = harvest.prologue(Step("delete_todo", arguments))
    assert [one.tool for one in prologue] == ["create_todo"]
    fresh = [Answer("done", {"todo": {"id": "t-0000", "title": "sample"}}, "", 0.1)]
    assert filled(step, fresh) == {"todo_id": "t-0000"}


def test_an_id_in_prose_is_taken_too() -> None:
    assert ("id", "7d2c3f1e-8a4b-4c5d-9e6f-0a1b2c3d4e5f") in list(spoken("Created 7d2c3f1e-8a4b-4c5d-9e6f-0a1b2c3d4e5f."))
    harvest = Harvest()
    harvest.add(answered("add_task", {"text": "x"}, "Task created with ID: 42"))
    assert first(tool("finish_task", task_id={"type": "integer"}), harvest)["task_id"] in (42, 1)
    assert first(tool("finish_task", task_id=TEXT), harvest) == {"task_id": "42"}


@pytest.mark.parametrize(
    "parsed, text, bad",
    [
        ({"error": True, "code": "not_found"}, "", True),
        ({"success": False}, "", True),
        ({"status": "error", "message": "x"}, "", True),
        ("Error: no such file", "Error: no such file", True),
        ("Todo not found", "Todo not found", True),
        ("entity 'x' does not exist", "entity 'x' does not exist", True),
        ({"error": None, "items": []}, "", False),
        ({"errors": [], "ok": True}, "", False),
        ("The report on errors was written", "The report on errors was written", False),
        ("no results", "no results", False),
        ([{"error": "of one of many"}], "", False),
    ],
)
def test_an_error_in_the_clothing_of_success_is_one(parsed: Any, text: str, bad: bool) -> None:
    assert dressed(parsed, text) is bad


def test_values_a_source_compares_with_are_found_in_both_languages() -> None:
    found = of_text("if word == 'xyzzy': pass\nif amount > 4711: pass\nif mode in ('a', 'purge'): pass\nif n % 7 == 3: pass")
    assert {(one.subject[-1], one.value) for one in found} >= {
        ("word", "xyzzy"),
        ("amount", 4712),
        ("mode", "purge"),
        ("n", 10),
    }
    found = of_text('if (args.word === "xyzzy") {}\nswitch (x) { case "purge": }\nif (p.endsWith(".bak")) {}')
    assert {one.value for one in found} >= {"xyzzy", "purge", ".bak"}


def test_what_a_complaint_offers_is_tried_next() -> None:
    planner = Planner(FIXTURE, Literals(), {})
    under = tool("read_range", path=TEXT, sheet=TEXT)
    tried = {"path": "/x", "sheet": "x"}
    planner.complaints.add("read_range", tried, "Sheet 'x' not found. Available sheets: 'Tab 9'.")
    planner.complaints.add("read_range", tried, "Path '/x' must point to an Excel file (.xlsx, .xlsm).")
    assert planner.candidates(under, Harvest())[0] == {"path": "/home/ada/workspace/book.xlsx", "sheet": "Tab 9"}


@pytest.mark.parametrize(
    "given, said, name, offered",
    [
        ({"sheet": "x", "name": "x"}, "Sheet 'x' not found. Available sheets: 'Tab'.", "sheet", ["Tab"]),
        ({"sheet": "x", "name": "x"}, "Sheet 'x' not found. Available sheets: 'Tab'.", "name", []),
        ({"source": "Data!A1"}, "Sheet 'Data' not found. Available sheets: 'Tab'.", "source", ["Tab!A1"]),
        ({"name": "alpha"}, "A sheet named 'alpha' already exists.", "name", ["alpha2"]),
        ({"path": "a.txt"}, "Path 'a.txt' must be absolute, e.g. '/home/me/a.txt'.", "path", []),
        ({"mode": "x"}, "mode: expected one of 'list', 'add'", "mode", ["list", "add"]),
    ],
)
def test_a_complaint_is_laid_to_what_it_is_about(given: dict[str, Any], said: str, name: str, offered: list[str]) -> None:
    heard = Complaints()
    heard.add("tool", given, said)
    assert heard.offers("tool", name) == offered


def test_complaints_tell_bounds_members_and_kinds() -> None:
    heard = Complaints()
    heard.add("tool", {"start": 0}, "Invalid arguments: start: must be at least 1")
    heard.add("tool", {"rule": {"kind": "list"}}, "list validation needs either options or source.")
    heard.add("tool", {"rule": {"axis": 1}}, "A list rule does not use axis, axis_color.")
    heard.add("tool", {}, "Branch name is required for create operation")
    heard.add("tool", {"picture": "x.txt"}, "'x.txt' must point to an image (.jpeg, .png).")
    heard.add("tool", {"colors": ["red"]}, "A scale needs 2 or 3 colors.")
    assert heard.numbers("tool", "start") == [1] and heard.bad("tool", "start", 0)
    wishes = {name: heard.wish("tool", name) for name in ("options", "source", "axis", "branchName", "other")}
    assert wishes == {"options": True, "source": False, "axis": False, "branchName": True, "other": None}
    assert heard.endings("tool", "picture") == ["jpeg", "png"] and heard.least("tool", "colors") == 2
