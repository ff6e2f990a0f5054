"""The id of a message that cannot be read: found where it can be told in one way, else nobody's."""

from __future__ import annotations

import pytest

from earnest.protocol import envelope
from earnest.protocol.envelope import WireError
from earnest.protocol.salvage import salvage

DEEP = b"[" * 200 + b"]" * 200
HALF = b'"\\ud83d"'


@pytest.mark.parametrize(
    ("data", "kind", "id"),
    [
        (b'{"jsonrpc":"2.0","id":53,"method":"tools/call","params":{"a":%b}}' % HALF, "request", b"53"),
        (b'{"jsonrpc":"2.0","id":"x-1","method":"m","params":{"a":%b}}' % DEEP, "request", b'"x-1"'),
        (b'{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":"x"}}', "response", b"7"),
        (b'{"jsonrpc":"2.0","id":7,"result":{"a":%b}}' % HALF, "response", b"7"),
        (b'{"jsonrpc":"2.0","result":{"id":9,"a":%b} , "id" : 7 }' % DEEP, "response", b"7"),
        (b'{"jsonrpc":"2.0","id":7,"result":{"a":"\xff"}}', "response", b"7"),
        (b'{"jsonrpc":"2.0","id":7,"method":1}', "request", b"7"),
        (b'{"jsonrpc":"2.0","id":7,"result":{},"result":{}}', "response", b"7"),
    ],
)
def test_the_id_is_found_in_what_cannot_be_read(data: bytes, kind: str, id: bytes) -> None:
    with pytest.raises(WireError):
        envelope.parse(data)
    found = salvage(data)
    assert found is not None and (found.kind, found.id) == (kind, id)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"garbage",
        b'"',
        b'{"id":7,"id":8,"result":1}',
        b'{"id":7,"Id":8,"result":1}',
        b'{"id":7,"\\u0069d":8,"result":1}',
        b'{"ID":7,"result":1}',
        b'{"id":7.0,"result":1}',
        b'{"id":[7],"result":1}',
        b'{"id":"\\u0037","result":1}',
        b'{"id":7,"result":{"a":1}',
        b'{"id":7,"result":[}]}',
        b'{"id":7,"result":1}{"id":8}',
        b'{"id":7,"result":"open}',
        b'{"id" 7,"result":1}',
        b'{"id":7,"result":1,"method":"m"}',
        b'{"id":7}',
        b'[{"id":7,"result":1}]',
        b'{"a":{"id":7},"result":1}',
        b'{"id":%b,"result":1}' % (b"1" * 2000),
    ],
)
def test_an_id_that_is_not_sure_is_nobodys(data: bytes) -> None:
    assert salvage(data) is None


def test_a_lone_surrogate_is_named_and_a_whole_pair_is_none() -> None:
    for text, found in ((HALF, True), (b'"\\ud83d\\ude00', False), (b'"\\\\ud83d', False)):
        with pytest.raises(WireError) as caught:
            envelope.parse(b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":%b}}' % text)
        assert ("lone surrogate" in caught.value.message) is found
        assert not found or '"params":{"a":' in caught.value.message
