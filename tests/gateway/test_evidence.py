"""What rows of evidence say of a tool as it is now."""

import pytest

from earnest.gateway.evidence import holds, known, start_of, told
from earnest.gateway.served import Launch
from earnest.store.base import Evidence


def row(verdict: str, **changes: str) -> Evidence:
    facts = {"identity": "i", "tool": "t", "hint": "read_only", "pin": "v1:a", "artefact": "sha256:x"} | changes
    return Evidence(**facts, verdict=verdict, detail='{"start":"s","reason":"why","calls":3}')


NOW = ("t", "v1:a", "sha256:x", "s")


def test_support_holds_for_one_pin_one_artefact_and_one_start() -> None:
    assert known([row("supported")], *NOW) == (frozenset(), {"read_only"})
    for changed in ({"pin": "v1:b"}, {"artefact": "sha256:y"}, {"tool": "u"}):
        assert known([row("supported", **changed)], *NOW).supported == frozenset(), changed
    assert known([row("supported")], "t", "v1:a", "sha256:x", "other").supported == frozenset()
    assert not holds(row("supported", artefact=""), "v1:a", "", "s")


def test_a_violation_holds_whatever_the_pin_and_beats_support() -> None:
    rows = [row("violated", pin="v1:old", artefact="sha256:old"), row("supported")]
    assert known(rows, *NOW) == ({"read_only"}, frozenset())
    assert told(rows[0], *NOW[1:])["holds"] and told(rows[0], *NOW[1:])["reason"] == "why"


@pytest.mark.parametrize("detail", ["", "[]", "{", '{"start": 1}'])
def test_a_row_that_cannot_be_read_supports_nothing(detail: str) -> None:
    broken = Evidence("i", "t", "read_only", "v1:a", "sha256:x", "supported", detail)
    assert not holds(broken, *NOW[1:])


def test_the_start_is_arguments_folder_and_the_variables_that_count() -> None:
    launch = Launch(argv=("server", "x"), env={"KEY": "1", "PATH": "/bin"}, cwd="/w")
    same = start_of(launch, ["KEY"])
    assert same == start_of(Launch(argv=("server", "x"), env={"KEY": "1", "PATH": "/other"}, cwd="/w"), ["KEY"])
    for other in (
        Launch(argv=("server", "y"), env={"KEY": "1"}, cwd="/w"),
        Launch(argv=("server", "x"), env={"KEY": "2"}, cwd="/w"),
        Launch(argv=("server", "x"), env={"KEY": "1"}, cwd="/v"),
        Launch(argv=("server", "x"), cwd="/w"),
    ):
        assert start_of(other, ["KEY"]) != same
