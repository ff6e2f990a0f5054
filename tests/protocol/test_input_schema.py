"""Arguments against a tool's whole input schema, and schemas that are made to take for ever."""

import itertools
import json
from typing import Any

import pytest

from earnest.protocol.input_schema import MOST_STEPS, complaint

DEEP: dict[str, Any] = {
    "$defs": {"row": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string", "pattern": "^[A-Z]{2}$"}}}},
    "type": "object",
    "properties": {
        "rows": {"type": "array", "items": {"$ref": "#/$defs/row"}, "maxItems": 2},
        "kind": {"enum": ["a", "b"]},
        "when": {"oneOf": [{"type": "integer"}, {"const": "now"}]},
    },
    "required": ["rows"],
    "additionalProperties": False,
}
TREE = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "in": {"$ref": "#"}}}


def wrong(schema: Any, arguments: Any) -> str:
    return complaint(schema, arguments, len(json.dumps(arguments)))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"rows": []}, ""),
        ({"rows": [{"id": "AB"}], "kind": "a", "when": "now"}, ""),
        ({}, '"rows" is a required property'),
        ({"rows": [{"id": "ab"}]}, "rows/0/id: "),
        ({"rows": [{}]}, 'rows/0: "id" is a required property'),
        ({"rows": [{"id": "AB"}] * 3}, "rows: "),
        ({"rows": [], "kind": "c"}, "kind: "),
        ({"rows": [], "when": 1.5}, "when: "),
        ({"rows": [], "more": 1}, "Additional properties"),
    ],
)
def test_all_of_the_schema_counts(arguments: Any, said: str) -> None:
    found = wrong(DEEP, arguments)
    assert found.startswith(said) and bool(found) is bool(said)


def test_the_draft_is_the_one_that_the_schema_names() -> None:
    pair = {"properties": {"pair": {"items": [{"type": "string"}]}}}
    old = {"$schema": "http://json-schema.org/draft-07/schema#", **pair}
    assert wrong(old, {"pair": [1]}).startswith("pair/0: ")
    assert wrong(pair, {"pair": [1]}) == "", "in 2020-12 this is no schema, and its top level has nothing to say"


@pytest.mark.parametrize("schema", [None, [], True, {"type": "strnig"}, {"required": "x"}, {"$schema": "http://no.example/s"}])
def test_what_is_no_schema_refuses_nothing(schema: Any) -> None:
    assert wrong(schema, {"x": 1}) == ""


@pytest.mark.parametrize(
    "more",
    [
        {"$ref": "#"},
        {"properties": {"n": {"type": "integer"}, "o": {"$ref": "http://127.0.0.1:9/s.json"}}},
        {"properties": {"n": {"type": "integer"}, "o": {"$ref": "file:///etc/hosts"}}},
        {"properties": {"n": {"type": "integer"}, "o": {"pattern": "(?=a)b"}}},
    ],
)
def test_what_cannot_be_bounded_or_read_is_held_to_its_top_level(more: dict[str, Any]) -> None:
    schema = {"properties": {"n": {"type": "integer"}}, "required": ["n"], **more}
    assert (
        "required" in wrong(schema, {})
        and wrong(schema, {"n": "x"}).startswith("n: ")
        and wrong(schema, {"n": 1, "o": 2}) == ""
    )


def test_a_schema_that_refers_to_itself_too() -> None:
    assert wrong(TREE, {"name": "a", "in": {"name": "b"}}) == ""
    assert wrong(TREE, {"in": {"name": "b"}}) != ""


def test_references_that_branch_and_meet_take_no_time() -> (
    None
):  # 2 to the 60th comparisons, were they made, would end the test
    names = [f"a{number}" for number in range(60)]
    defs = {one: {"anyOf": [{"$ref": f"#/$defs/{two}"}, {"$ref": f"#/$defs/{two}"}]} for one, two in itertools.pairwise(names)}
    schema = {"$defs": {**defs, names[-1]: {"type": "string"}}, "$ref": "#/$defs/a0", "required": ["n"]}
    assert wrong(schema, {"n": 1}) == "" and wrong(schema, {}) == '"n" is a required property'


def test_many_errors_take_no_memory() -> None:
    schema = {"properties": {"a": {"items": {"anyOf": [{"const": f"x{number}"} for number in range(300)]}}}}
    arguments = {"a": [f"y{number}" for number in range(1500)]}
    assert len(json.dumps(arguments)) * 300 < MOST_STEPS
    assert wrong(schema, arguments).startswith("a/0: ")


def test_arguments_too_long_for_the_schema_are_held_to_the_top_level() -> None:
    schema = {"properties": {"a": {"type": "array", "items": {"enum": ["x"] * 5000}}}}
    assert wrong(schema, {"a": ["y"]}).startswith("a/0: ")
    assert wrong(schema, {"a": ["y"] * 20_000}) == "" and wrong(schema, {"a": "y" * 20_000}).startswith("a: ")
