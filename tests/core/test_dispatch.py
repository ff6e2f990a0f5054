"""A dispatcher is judged as its target; what cannot be followed is worst."""

import json

import pytest

from earnest.core.dispatch import BOUND, DispatchSpec, dispatch

RUN = DispatchSpec(tool="run_tool", name_argument="tool", arguments_argument="args")
KNOWN = {"delete_all": "the profile of delete_all", "safe": "the profile of safe"}


def test_a_meta_tool_is_judged_as_the_tool_it_hides() -> None:
    found = dispatch(RUN, {"tool": "delete_all", "args": {"deep": True}}, KNOWN.get)
    assert found == ("delete_all", {"deep": True}, "the profile of delete_all")


def test_a_nested_dispatch_is_read_by_the_same_parser() -> None:
    once = {"tool": "safe", "args": {"a": 1}}
    assert dispatch(RUN, {"tool": "run_tool", "args": once}, KNOWN.get) == ("safe", {"a": 1}, KNOWN["safe"])
    unknown = {"tool": "run_tool", "args": {"tool": "unknown", "args": {}}}
    assert dispatch(RUN, unknown, KNOWN.get) == ("unknown", {}, None)


def test_the_dispatcher_itself_is_never_the_answer_even_if_it_is_known() -> None:
    known = {**KNOWN, "run_tool": "claims to be read-only"}
    assert dispatch(RUN, {"args": {}}, known.get)[2] is None
    nested: dict[str, object] = {"tool": "safe"}
    for _ in range(BOUND):
        nested = {"tool": "run_tool", "args": nested}
    assert dispatch(RUN, nested, known.get)[2] is None


def test_nesting_is_followed_up_to_the_bound() -> None:
    nested: dict[str, object] = {"tool": "safe", "args": {}}
    for _ in range(BOUND - 1):
        nested = {"tool": "run_tool", "args": nested}
    assert dispatch(RUN, nested, KNOWN.get) == ("safe", {}, KNOWN["safe"])


def test_another_dispatcher_as_target_is_followed_too() -> None:
    batch = DispatchSpec(tool="invoke", name_argument="name")
    arguments = {"tool": "invoke", "args": {"name": "delete_all", "deep": 1}}
    known = {**KNOWN, "invoke": "harmless by itself"}
    found = dispatch(RUN, arguments, known.get, {"invoke": batch})
    assert found == ("delete_all", {"deep": 1}, KNOWN["delete_all"])


@pytest.mark.parametrize("name", [None, 3, ["safe"], {"name": "safe"}, "Safe", "safe ", "", "SAFE"])
def test_a_target_whose_name_is_not_exactly_known_is_unresolvable(name: object) -> None:
    assert dispatch(RUN, {"tool": name, "args": {}}, KNOWN.get)[2] is None


def test_arguments_may_be_absent_or_json_text() -> None:
    assert dispatch(RUN, {"tool": "safe"}, KNOWN.get)[1:] == ({}, KNOWN["safe"])
    assert dispatch(RUN, {"tool": "safe", "args": None}, KNOWN.get)[1:] == ({}, KNOWN["safe"])
    text = json.dumps({"a": [1, 2]})
    assert dispatch(RUN, {"tool": "safe", "args": text}, KNOWN.get)[1:] == ({"a": [1, 2]}, KNOWN["safe"])


UNREADABLE = ["{", '{"a":1,"a":2}', '{"a":{"b":1,"b":2}}', '{"a":NaN}', "[1]", "3", 7, [{}], True]


@pytest.mark.parametrize("args", UNREADABLE)
def test_arguments_that_cannot_be_read_in_one_way_make_it_unresolvable(args: object) -> None:
    assert dispatch(RUN, {"tool": "safe", "args": args}, KNOWN.get) == ("safe", {}, None)


def test_json_text_nested_too_deep_is_unresolvable_and_no_crash() -> None:
    assert dispatch(RUN, {"tool": "safe", "args": '{"a":' * 100_000}, KNOWN.get)[2] is None
