"""Calls are read exactly, and edits leave every other byte alone."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earnest.core.canonical import build, members
from earnest.protocol import calls
from earnest.protocol.envelope import WireError
from earnest.protocol.methods import lookup
from properties import examples


def read(params: bytes) -> tuple[dict[str, bytes], str, bytes]:
    """A tool call as the gateway reads it: all members, the tool's name, its arguments."""
    seen = calls.read_params(params)
    return seen, calls.text(seen, "name"), calls.arguments(seen)


def renamed(seen: dict[str, bytes], name: str) -> bytes:
    """The params under another tool name, as the gateway forwards them."""
    return build({**seen, "name": calls.string(name)})


def test_reads_a_tool_call() -> None:
    seen, name, arguments = read(b'{"name":"a\\/b","arguments":{"n":1E2},"_meta":{"progressToken":7},"x":null}')
    assert (name, arguments, seen["_meta"]) == ("a/b", b'{"n":1E2}', b'{"progressToken":7}')
    assert seen["x"] == b"null"


@pytest.mark.parametrize("params", [b'{"name":"t"}', b'{"name":"t","arguments":null,"_meta":null}'])
def test_absent_arguments_are_an_empty_object(params: bytes) -> None:
    assert read(params)[2] == b"{}"


@pytest.mark.parametrize(
    "params",
    [
        b"",
        b"{}",
        b'{"name":7}',
        b'{"name":null}',
        b'{"name":"t","arguments":[]}',
        b'{"name":"t","arguments":"{}"}',
        b'{"name":"a","name":"b"}',
        b'{"name":"a","Name":"b"}',
        b'{"name":"t","arguments":{},"Arguments":{"x":1}}',
        b'{"name":"t","Arguments":{"x":1}}',
        '{"name":"t","ａrguments":{"x":1}}'.encode(),
        b'{"name":"t","_META":{}}',
    ],
)
def test_refuses_what_could_be_read_in_two_ways(params: bytes) -> None:
    with pytest.raises(WireError) as caught:
        read(params)
    assert caught.value.rpc_code == -32602


@pytest.mark.parametrize(
    ("method", "params", "subject"),
    [
        ("tools/call", b'{"name":"t"}', calls.Subject("tool", "t")),
        ("prompts/get", b'{"name":"p"}', calls.Subject("prompt", "p")),
        ("resources/read", b'{"uri":"file:///x"}', calls.Subject("resource", "file:///x")),
        ("tasks/get", b'{"taskId":"1"}', calls.Subject("task", "1")),
        ("completion/complete", b'{"ref":{"type":"ref/prompt","name":"p"}}', calls.Subject("prompt", "p")),
        ("completion/complete", b'{"ref":{"type":"ref/resource","uri":"u"}}', calls.Subject("resource", "u")),
        ("tools/list", b"{}", None),
    ],
)
def test_names_the_object(method: str, params: bytes, subject: calls.Subject | None) -> None:
    row = lookup(method, "modern")
    assert row is not None
    assert calls.subject(row, calls.read_params(params)) == subject


@pytest.mark.parametrize("params", [b"{}", b'{"ref":1}', b'{"ref":{"type":"ref/tool","name":"p"}}'])
def test_a_call_without_its_object_is_refused(params: bytes) -> None:
    row = lookup("completion/complete", "modern")
    assert row is not None
    with pytest.raises(WireError):
        calls.subject(row, calls.read_params(params))


def test_both_content_fields_and_labels_are_otherwise_unchanged() -> None:
    structured = b'{"f":1.10,"id":9007199254740993}'
    result = b'{ "content":[{"type":"text","text":"1"}],\n"structuredContent":' + structured + b" }"
    marked = calls.with_meta(result, "dev.earnest/receipt", b'"r1"')
    before, after = members(result), members(marked)
    assert after.pop("_meta") == b'{"dev.earnest/receipt":"r1"}'
    assert after == before


def test_a_key_that_is_already_there_is_replaced_and_its_neighbours_kept() -> None:
    result = b'{"_meta":{"a.example/k": 1.0,"dev.earnest/receipt":"forged"},"content":[]}'
    marked = calls.with_meta(result, "dev.earnest/receipt", b'"r1"')
    assert marked == b'{"_meta":{"a.example/k":1.0,"dev.earnest/receipt":"r1"},"content":[]}'


@pytest.mark.parametrize("meta", [b"null", b"7", b'"x"'])
def test_meta_that_is_no_object_is_replaced(meta: bytes) -> None:
    assert members(calls.with_meta(b'{"_meta":' + meta + b"}", "k", b"1")) == {"_meta": b'{"k":1}'}


def test_a_tool_keeps_unknown_fields_when_it_gets_resolved_hints() -> None:
    claimed = b'{"readOnlyHint":true,"category":"input","futureHint":[1]}'
    tool = b'{"name":"x","annotations":' + claimed + b',"_meta":{"a.example/k":1},"unknownTopLevel":{"z":1}}'
    annotations = calls.with_member(members(tool)["annotations"], "readOnlyHint", b"false")
    served = calls.with_meta(calls.with_member(tool, "annotations", annotations), "dev.earnest/profile", b"{}")
    value = json.loads(served)
    assert value["annotations"] == {"readOnlyHint": False, "category": "input", "futureHint": [1]}
    assert value["_meta"] == {"a.example/k": 1, "dev.earnest/profile": {}}
    assert value["unknownTopLevel"] == {"z": 1}


def test_renaming_keeps_arguments_byte_for_byte() -> None:
    arguments = b'{"id":9223372036854775807,"z":-0.0,"e":1E2}'
    seen, _, _ = read(b'{"arguments":' + arguments + b',"name":"alias"}')
    assert renamed(seen, "orig/inal") == b'{"arguments":' + arguments + b',"name":"orig/inal"}'


NAME = st.text(st.characters(codec="utf-8"), max_size=5)
VALUE = st.sampled_from(['{"a": 1.0}', "1E2", '"x"', "null", "[ ]"])


@settings(max_examples=examples(100), deadline=None)
@given(st.dictionaries(st.sampled_from(["a", "b", "é", "_meta", "x y", ""]), VALUE), NAME, VALUE)
def test_setting_a_member_sets_that_one_alone(old: dict[str, str], name: str, value: str) -> None:
    raw = ("{" + " , ".join(f"{json.dumps(key)} :{text}" for key, text in old.items()) + " }").encode()
    if name.casefold() in {key.casefold() for key in old} - {name}:
        return
    expected: dict[str, Any] = {
        **{key: json.loads(text) for key, text in old.items()},
        name: json.loads(value),
    }
    got = calls.with_member(raw, name, value.encode())
    assert json.loads(got) == expected
    assert list(json.loads(got)) == list(expected)


def _lenient(pairs: list[tuple[str, Any]], *, first: bool, fold: bool) -> dict[str, Any]:
    """An object as a parser reads it that takes the first or last of duplicates, and may fold case."""
    seen: dict[str, Any] = {}
    for name, value in pairs:
        key = name.casefold() if fold else name
        if not (first and key in seen):
            seen[key] = value
    return seen


KEY = st.sampled_from(["name", "arguments", "Name", "ARGUMENTS", "ｎame", "x", "_meta", "na\u006de"])
ITEM = st.sampled_from(['"a"', '"b"', '{"n":1}', '{"n":1.0}', "null", "7"])


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.tuples(KEY, ITEM), max_size=4), st.booleans(), st.booleans(), st.booleans())
def test_every_parser_reads_the_forwarded_call_as_it_was_judged(
    pairs: list[tuple[str, str]], first: bool, fold: bool, escaped: bool
) -> None:
    pairs = [("name", '"t"'), *pairs]
    raw = "{" + ",".join(f"{json.dumps(key, ensure_ascii=escaped)}:{value}" for key, value in pairs) + "}"
    try:
        seen, name, arguments = read(raw.encode())
    except WireError:
        return
    again = json.loads(renamed(seen, "original"), object_pairs_hook=lambda found: _lenient(found, first=first, fold=fold))
    assert again["name"] == "original"
    assert (again.get("arguments") or {}) == json.loads(arguments)
    assert name == "t"
