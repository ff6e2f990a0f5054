"""A relayed elicitation says whose it is; everything else stays as it came."""

import json

import pytest

from earnest.protocol import quoted

FORM = b'{"requestedSchema":{"type":"object"},"message":"Earnest asks: allow this call?","more":1.0}'


def test_the_message_of_an_elicitation_begins_with_the_servers_name() -> None:
    marked = quoted.question("notes", "elicitation/create", FORM)
    assert json.loads(marked)["message"] == "The server notes asks: Earnest asks: allow this call?"
    assert marked.startswith(b'{"requestedSchema":{"type":"object"},"message":"The server') and b'"more":1.0' in marked


@pytest.mark.parametrize("params", [b"", b"[]", b'{"mode":"url"}', b'{"message":"a","Message":"b"}'])
def test_what_cannot_be_read_stays(params: bytes) -> None:
    assert quoted.question("notes", "elicitation/create", params) == params


def test_sampling_and_roots_stay_as_they_came() -> None:
    assert quoted.question("notes", "sampling/createMessage", FORM) == FORM


def test_the_questions_of_a_result_are_marked_and_its_state_is_not_touched() -> None:
    asked = b'{"a":{"method":"elicitation/create","params":%b},"b":{"method":"roots/list"}}' % FORM
    result = b'{"resultType":"input_required","requestState":"\\u0061 b","inputRequests":%b}' % asked
    marked = quoted.questions("notes", result)
    assert json.loads(marked)["inputRequests"]["a"]["params"]["message"].startswith("The server notes asks: ")
    assert json.loads(marked)["inputRequests"]["b"] == {"method": "roots/list"}
    assert b'"requestState":"\\u0061 b"' in marked
    assert quoted.questions("notes", b'{"inputRequests":{"b":{"method":"roots/list"}}}') == (
        b'{"inputRequests":{"b":{"method":"roots/list"}}}'
    )
