"""Whatever a server lists, lint says something or nothing, and never fails."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earnest.lint.outputs import github, markdown, sarif
from earnest.lint.outputs import json as as_json
from earnest.lint.propose import propose
from earnest.lint.reading import read_bytes
from earnest.lint.run import Selection, lint
from earnest.lint.stores.profile import check
from earnest.lint.stores.registry import PROFILES
from properties import examples

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = ["description", "title", "annotations", "inputSchema", "outputSchema", "_meta", "icons", "name"]
SCHEMA_KEYS = ["type", "properties", "enum", "$ref", "oneOf", "default", "action", "mode"]
HINTS = ["readOnlyHint", "destructiveHint", "openWorldHint", "idempotentHint", "title"]
SCHEMAS = st.dictionaries(
    st.sampled_from(SCHEMA_KEYS), VALUES | st.dictionaries(st.sampled_from(SCHEMA_KEYS), VALUES), max_size=4
)
TOOLS = st.dictionaries(
    st.sampled_from(KEYS),
    VALUES
    | SCHEMAS
    | st.dictionaries(st.sampled_from(HINTS), st.booleans() | VALUES)
    | st.dictionaries(st.just("properties"), SCHEMAS),
)


@settings(max_examples=examples(80), deadline=None)
@given(st.lists(TOOLS, max_size=3))
def test_no_definition_breaks_an_audit_a_profile_or_an_output(tools):
    servers = read_bytes(json.dumps({"server": "s", "tools": tools}).encode(), "s")
    found = lint(servers, Selection(persona="pedantic"))
    for write in (as_json.render, sarif.render, github.render, markdown.render):
        assert isinstance(write(found), str)
    for profile in PROFILES:
        assert len(check(servers[0], profile)) == len(servers[0].tools)
    propose(servers[0], {}, lower=True)


@pytest.mark.parametrize(
    "text",
    [
        "a " * 200_000,
        "-" * 200_000,
        "Use this tool to " * 20_000,
        "*" * 100_000 + "x",
        "`" * 100_001,
        "save " * 50_000,
        "\n- " * 100_000,
        "(" * 200_000,
    ],
    ids=["words", "dashes", "openers", "stars", "ticks", "saves", "items", "brackets"],
)
def test_no_description_takes_long(text):
    tool = {"name": "x", "description": text, "inputSchema": {"type": "object"}}
    start = time.process_time()
    lint(read_bytes(json.dumps([tool]).encode(), "s"))
    assert time.process_time() - start < 2


def test_a_deep_schema_is_read_to_a_depth():
    schema: dict[str, object] = {"type": "object"}
    for _ in range(300):
        schema = {"type": "object", "properties": {"a": schema}}
    lint(read_bytes(json.dumps([{"name": "x", "description": "y", "inputSchema": schema}]).encode(), "s"))
