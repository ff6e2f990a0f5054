"""What all HTTP links share: headers, errors for statuses, and which notification belongs where."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from earnest import __version__
from earnest.core.errors import EarnestError
from earnest.net.message import fields
from earnest.protocol.envelope import Limits

MESSAGE_LIMIT: Final = 24 * 1024 * 1024
"""Bytes of one message of a server; a longer one ends its request (E1226)."""
PARSE_LIMITS: Final = Limits(max_bytes=MESSAGE_LIMIT)
EXCERPT: Final = 300

WIDE: Final = frozenset(
    (
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
    )
)
"""Notifications about the server as a whole; no request of a client causes one."""

ACCEPT: Final = b"Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
UNREACHABLE: Final = frozenset(("E1220", "E1221", "E1222", "E1223", "E1229", "E1234"))
"""Errors that every further attempt would meet as well."""

_FRAMING: Final = ("connection", "content-length", "expect", "host", "keep-alive", "te", "trailer")
_OURS: Final = frozenset(
    (*_FRAMING, "accept", "accept-encoding", "content-type", "last-event-id", "transfer-encoding", "upgrade")
)
_VISIBLE: Final = re.compile(r"[\x21-\x7e]{1,512}\Z")


def configured(name: str, headers: Mapping[str, str]) -> bytes:
    """The operator's headers for one server, encoded once. Raises E1238; a value is never part of the
    message."""
    for header in headers:
        if header.lower() in _OURS or header.lower().startswith("mcp-"):
            raise EarnestError(
                "E1238",
                f"server {name!r}: the header {header!r} is set by earnest itself",
                "Remove it from `headers`.",
            )
    given = list(headers.items())
    if not any(header.lower() == "user-agent" for header in headers):
        given.append(("User-Agent", f"earnest/{__version__}"))
    for pair in given:
        try:
            fields((pair,))
        except (ValueError, UnicodeEncodeError):
            raise EarnestError(
                "E1238",
                f"server {name!r}: the header {pair[0]!r} has a name or value that HTTP cannot carry",
                "Header values are printable characters without line breaks.",
            ) from None
    return fields(given)


def session_id(value: str | None) -> str | None:
    """A session id as the specification allows it (visible ASCII), None for anything else."""
    return value if value is not None and _VISIBLE.match(value) else None


class Redactor:
    """Excerpts of what a server said, without the header values that were sent to it and what else `scrub` knows."""

    def __init__(self, headers: Mapping[str, str], scrub: Callable[[str], str]) -> None:
        self._scrub = scrub
        secrets: set[str] = set()
        for value in headers.values():
            secrets.update(part for part in (value, value.rpartition(" ")[2]) if len(part) >= 4)
        self._secrets = sorted(secrets, key=len, reverse=True)

    def __call__(self, body: bytes) -> str:
        text = body[: 4 * EXCERPT].decode("utf-8", "replace")
        for secret in self._secrets:
            text = text.replace(secret, "…")
        text = self._scrub(text)
        return " ".join(text.split())[:EXCERPT]


def status_error(name: str, status: int, excerpt: str) -> EarnestError:
    """The error for an answer that is no MCP message."""
    if status in (401, 403):
        return EarnestError(
            "E1234",
            f"server {name!r} refused earnest's credentials (HTTP {status})",
            "Check `headers` in its configuration; a server that wants OAuth cannot be used this way.",
            exit_code=3,
        )
    if 300 <= status < 400:
        return EarnestError(
            "E1231",
            f"server {name!r} redirects elsewhere (HTTP {status}), which is not followed",
            "Configure the address it redirects to, if you trust it.",
            exit_code=3,
        )
    return EarnestError("E1231", f"server {name!r} answered with HTTP {status}", exit_code=3, said=excerpt)


def parameters(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Of a caller's headers those that a server may see: `Mcp-Param-*`."""
    return [(name, value) for name, value in headers if name.lower().startswith("mcp-param-")]
