"""Bounds of the HTTP engine. Sizes are bytes, times are seconds; every one has an error that names it."""

from __future__ import annotations

import msgspec

KIB = 1024
MIB = 1024 * KIB


class ServerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a listener accepts.

    `headers` counts fields, `header_bytes` is the whole request head. `head_s` runs from the first byte of
    a request to the end of its head, `body_s` from there to the end of its body, `keep_alive_s` between
    requests. `stalled_s` is how long a client may leave written bytes unread; `queued_bytes` how many may
    wait before the next event disconnects it. `comment_s` is the longest silence on an event stream.
    """

    body: int = 4 * MIB
    headers: int = 100
    header_bytes: int = 32 * KIB
    target: int = 8 * KIB
    connections: int = 1024
    pipelined: int = 16
    head_s: float = 10.0
    body_s: float = 30.0
    keep_alive_s: float = 75.0
    stalled_s: float = 60.0
    linger_s: float = 2.0
    comment_s: float = 15.0
    queued_bytes: int = 8 * MIB


class ClientLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a pool accepts of the servers it talks to.

    `head_s` runs from the request to the end of the answer's head, 0 means no limit. `idle_s` is how long
    an unused connection may be taken again: shorter than the five seconds after which common servers close
    it, because a request on a connection that just died cannot be sent again.
    """

    headers: int = 200
    header_bytes: int = 64 * KIB
    connections: int = 128
    waiting: int = 1024
    connect_s: float = 10.0
    head_s: float = 0.0
    idle_s: float = 4.0
