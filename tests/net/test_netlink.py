"""Frames of netlink: what is written is read again, and what is cut off or lies about its size ends the reading."""

import errno
import struct

import pytest

from earnest.net import netlink


def test_messages_are_read_as_they_were_written():
    data = netlink.message(20, netlink.REQUEST, b"abcd") + netlink.message(21, netlink.REQUEST | netlink.ACK, b"", 7)
    assert list(netlink.messages(data)) == [(20, b"abcd"), (21, b"")]
    assert data[:16] == struct.pack("=IHHII", 20, 20, 1, 0, 0)


@pytest.mark.parametrize("size", [0, 15, 21, 1 << 31])
def test_a_message_of_another_size_than_there_is_ends_the_reading(size):
    first = netlink.message(20, 0, b"")
    assert list(netlink.messages(first + struct.pack("=IHHII", size, 1, 0, 0, 0) + b"abcd")) == [(20, b"")]
    assert list(netlink.messages(first[:15])) == []


def test_how_it_went_is_an_error_number():
    assert netlink.outcome(struct.pack("=i", -errno.ENOENT) + b"what was asked") == errno.ENOENT
    assert netlink.outcome(struct.pack("=i", 0)) == 0
