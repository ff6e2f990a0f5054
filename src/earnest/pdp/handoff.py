"""What a hook and the gateway tell each other of one call.

A host asks its hook before it calls a gateway's tool, and tells it the result after. The hook announces the call here, so that
the gateway knows whose session it is; the gateway notes here that the call came, so that the hook knows that it was decided.
Both go by the gateway's own knowledge: host process, server, tool and arguments. A name alone proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from earnest.core import canonical
from earnest.core.errors import EarnestError
from earnest.core.flow import Key

KEPT_S: Final = 900.0
"""Seconds an announced call may take until it comes and is settled."""
MOST: Final = 1000
"""Announced calls of one host; the oldest is forgotten first, and then counts as none."""

_Call = tuple[str, str, str]


class _Announced:
    __slots__ = ("at", "came", "keys")

    def __init__(self, at: float) -> None:
        self.at = at
        self.came = 0
        self.keys: list[Key] = []


class Handoff:
    """The calls of all hosts. One thread."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._hosts: dict[Key, dict[_Call, _Announced]] = {}

    def announce(self, host: Key, server: str, tool: str, sha256: str, key: Key) -> None:
        """A session is about to make this call. `sha256`: digest of its arguments in canonical form."""
        calls = self._hosts.setdefault(host, {})
        found = calls.get((server, tool, sha256))
        now = self._clock()
        if found is None or now - found.at > KEPT_S:
            if len(calls) >= MOST:
                del calls[next(iter(calls))]
            found = calls[server, tool, sha256] = _Announced(now)
        found.at = now
        found.keys.append(key)

    def grounds(self, host: Key) -> tuple[str, object, object, object]:
        """What it stands on (`net.tracks`) that no call of this host is any session's."""
        return ("lacks", self._hosts, host, None)

    def owner(self, host: Key, server: str, tool: str, arguments: bytes) -> Key:
        """Whose call it is that came to the gateway: the session that announced it, or the host where none did, or several."""
        calls = self._hosts.get(host)
        if not calls:
            return host
        try:
            found = calls.get((server, tool, canonical.digest(arguments or b"{}")))
        except EarnestError:
            return host
        if found is None or self._clock() - found.at > KEPT_S:
            return host
        found.came += 1
        return found.keys[0] if len(set(found.keys)) == 1 else host

    def settle(self, host: Key, server: str, tool: str, sha256: str, key: Key) -> bool:
        """A session's call is over. Whether the gateway had it."""
        calls = self._hosts.get(host, {})
        found = calls.get((server, tool, sha256))
        if found is None or key not in found.keys:
            return False
        found.keys.remove(key)
        came = found.came > 0
        if not found.keys:
            del calls[server, tool, sha256]
        if not calls:
            self._hosts.pop(host, None)
        return came
