"""What arguments steer."""

import pytest

from earnest.config.lexicon import shipped
from earnest.core.roles import EVERYTHING, ArgumentRoles, Role, infer

LEXICON = shipped()


@pytest.mark.parametrize(
    "name, role",
    [
        ("recipients", Role.DESTINATION),
        ("to", Role.DESTINATION),
        ("webhook_url", Role.DESTINATION),
        ("userEmail", Role.DESTINATION),
        ("email_id", Role.SELECTOR),
        ("file_path", Role.SELECTOR),
        ("message_id", Role.SELECTOR),
        ("amount", Role.AMOUNT),
        ("start_time", Role.AMOUNT),
        ("body", Role.CONTENT),
        ("email_body", Role.CONTENT),
        ("subject", Role.CONTENT),
    ],
)
def test_a_name_tells_a_role(name, role):
    assert infer(name, None, LEXICON) == {role}


@pytest.mark.parametrize("name", ["command", "query", "code", "x", "arg1", "location", "payload"])
def test_what_nobody_knows_steers_everything(name):
    assert infer(name, None, LEXICON) == EVERYTHING


def test_a_format_outweighs_a_name():
    assert infer("note", {"type": "string", "format": "email"}, LEXICON) == {Role.DESTINATION}
    assert infer("foo", {"type": "integer"}, LEXICON) == {Role.AMOUNT}


def test_a_label_outweighs_both_and_reaches_inside():
    roles = ArgumentRoles({"note": Role.DESTINATION, "edits[].text": Role.CONTENT}, None, LEXICON)
    assert roles.of("note") == {Role.DESTINATION}
    assert roles.of("edits[].text") == {Role.CONTENT}
    assert roles.of("note[].x") == {Role.DESTINATION}


def test_an_argument_outside_the_schema_steers_everything():
    roles = ArgumentRoles({}, {"type": "object", "properties": {"body": {"type": "string"}}}, LEXICON)
    assert roles.of("body") == {Role.CONTENT}
    assert roles.of("summary") == EVERYTHING


def test_a_destination_inside_content_is_no_content():
    roles = ArgumentRoles({}, None, LEXICON)
    assert Role.DESTINATION in roles.of("content.email")
