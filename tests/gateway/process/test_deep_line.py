"""A line that nests without end, in the input when the daemon is killed, ends no daemon that comes after."""

import json

import pytest

from earnest.gateway.process import handover

DEEP = b"[" * 200_000


@pytest.mark.parametrize("line", [b'{"id":1,"method":"x","params":' + DEEP, b'{"method":"\xff"}', b"\xff", DEEP])
def test_an_id_that_cannot_be_read_is_none(line: bytes) -> None:
    assert handover._id_of(line) == b""


def test_an_id_is_read_as_it_stands() -> None:
    assert handover._id_of(json.dumps({"id": "a", "method": "x"}).encode()) == b'"a"'
