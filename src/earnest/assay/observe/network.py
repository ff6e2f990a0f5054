"""What a box reached for, as effects: names and addresses contacted, requests that send, sockets, what the box stopped."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import Final

from earnest.assay.model import Effect
from earnest.assay.observe.masks import masked_path
from earnest.assay.observe.places import Lay
from earnest.sandbox.box import Event

READING: Final = frozenset({"", "GET", "HEAD", "OPTIONS", "CONNECT", "TRACE", "PROPFIND", "QUERY"})
_HOUSE_SOCKETS: Final = (
    "/dev/log",
    "/run/nscd",
    "/var/run/nscd",
    "/run/systemd/journal",
    "/run/user/",
    "/tmp/tsx-",
    "/run/dbus",
)


_INSTALLING: Final = re.compile(
    r"\b(?:npm|npx|yarn|pnpm|pip3?|uv|uvx|pipx|poetry|cargo|gem|apt-get|apt|apk|dnf|brew|go)\b[^\n]{0,80}?\b(?:install|add|i|ci|get|exec)\b"
)
"""Programs that fetch other programs: worth telling of any tool that starts one."""


def here(subject: str) -> bool:
    """Whether a name or address is this machine itself (RFC 6761, RFC 4291), read as an address and never as text."""
    name = subject.strip("[]").rstrip(".").lower()
    if name in ("", "localhost", "localhost.localdomain", "ip6-localhost", "0.0.0.0", "::") or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def effects(events: Iterable[Event], lay: Lay, known: frozenset[str] = frozenset()) -> list[Effect]:
    """Events as effects. `known`: subjects that are contacted without any call."""
    found: dict[tuple[str, str, str], Effect] = {}
    for event in events:
        effect = _effect(event, lay)
        if effect is not None and effect.subject not in known:
            found.setdefault((effect.nature, effect.subject, effect.area), effect)
    return list(found.values())


def _effect(event: Event, lay: Lay) -> Effect | None:
    match event.doing:
        case "name":
            if here(event.subject):
                return None
            return Effect("contacted", "network", event.subject, "", f"looked up {event.subject}", False, external=True)
        case "datagram" if not event.subject:
            return Effect("refused", "network", "datagram", "", f"asked for {event.detail}", False)
        case "connect" | "datagram":
            if here(event.subject) or not event.subject:
                return None
            port = f" port {event.port}" if event.port else ""
            verb = "connected to" if event.doing == "connect" else "sent a datagram to"
            return Effect("contacted", "network", event.subject, "", f"{verb} {event.subject}{port}", False, external=True)
        case "request":
            return _request(event)
        case "socket":
            return _socket(event, lay)
        case "start":
            found = _INSTALLING.search(event.subject)
            if found is None:
                return None
            return Effect("started", "process", found.group(), "", f"started `{event.subject[:120]}`", False)
        case "refused":
            return _refused(event, lay)
    return None


def _request(event: Event) -> Effect | None:
    external = not here(event.subject)
    if not external:
        return None
    target = f"{event.method} {event.subject}{event.target}"
    body = f" with {len(event.body)} bytes" if event.body else ""
    nature = "contacted" if event.method.upper() in READING else "sent"
    return Effect(nature, "network", event.subject, event.method, f"{target}{body}", False, external=True)  # type: ignore[arg-type]


def _socket(event: Event, lay: Lay) -> Effect | None:
    path = event.subject
    if not path or path.startswith(("@", *_HOUSE_SOCKETS)):
        return None
    shown = lay.shown(path)
    return Effect("contacted", "socket", shown, "", f"connected to the UNIX socket {shown}", False)


def _refused(event: Event, lay: Lay) -> Effect | None:
    path = event.subject
    if not path.startswith("/"):
        return Effect("refused", "process", event.subject, "", f"was stopped: {event.detail or event.subject}", False)
    place = lay.place(path, False)
    soft = place in ("cache", "log", "temp", "side")
    shown = lay.shown(path)
    what = f"tried to write {shown}, which the sandbox stopped"
    return Effect("refused", place, masked_path(shown), "", what, not soft)
