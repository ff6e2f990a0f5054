"""The words a policy condition may use, and the facts that give them values.

Every name has a type and, where that is finite, its values, so that a condition can be checked before it is
ever asked. `args` alone is dynamic: it is whatever the client sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec

from earnest.core.profile import NAMES as PROFILE_NAMES
from earnest.core.profile import Basis, Profile, Trust


class Asks(StrEnum):
    """Whom a client's in-band question reaches, as the operator marked it. `nobody` unless marked."""

    PERSON = "person"
    NOBODY = "nobody"


PRIVATE: Final = 1
"""Flow bit: the conversation has read a private source. Same bit as `flow.PRIVATE`."""
UNTRUSTED: Final = 2
"""Flow bit: the conversation has seen untrusted content. Same bit as `flow.UNTRUSTED`."""
ENDORSED: Final = 4
"""Flow bit: this call passes the integrity rule on the user's own words (`flow.endorsed`)."""
COMBINATIONS: Final = 8
"""How many combinations of the flow bits there are."""


class Word(msgspec.Struct, frozen=True):
    """One name: `kind` is `bool`, `enum` or `string`; `values` of an enum; `optional` where it may be
    absent."""

    name: str
    kind: str
    doc: str
    values: tuple[str, ...] = ()
    optional: bool = False


_BOOLEANS: Final = {
    "read_only": "it changes nothing",
    "destructive": "it may destroy or overwrite; false where read_only is true",
    "idempotent": "a second identical call changes nothing more; true where read_only is true",
    "open_world": "it reaches beyond a closed set of systems",
    "reads_private": "its results may hold private data",
    "sees_untrusted": "its results may hold text that strangers wrote",
    "can_exfiltrate": "its arguments may reach someone outside",
}

WORDS: Final[Mapping[str, Word]] = {
    word.name: word
    for word in (
        *(Word(f"tool.{name}", "bool", doc) for name, doc in _BOOLEANS.items()),
        *(Word(f"tool.basis.{name}", "enum", f"how `tool.{name}` is known", tuple(Basis)) for name in PROFILE_NAMES),
        Word("tool.name", "string", "the tool's name as its server gives it"),
        Word("tool.title", "string", "the tool's title; test with `has(tool.title)`", optional=True),
        Word("call.method", "string", "the MCP method, such as `tools/call` or `resources/read`"),
        Word("server.name", "string", "the server's name in the configuration"),
        Word("server.trust", "enum", "how far the operator trusts the server", tuple(Trust)),
        Word("client.name", "string", "the client's name in the configuration"),
        Word("client.asks", "enum", "whom the client's questions reach", tuple(Asks)),
        Word("flow.private", "bool", "the conversation has read private data"),
        Word("flow.untrusted", "bool", "the conversation has seen untrusted content"),
        Word("flow.endorsed", "bool", "all that steers this call comes from the user's own words"),
    )
}

FLOW_BITS: Final = {"flow.private": PRIVATE, "flow.untrusted": UNTRUSTED, "flow.endorsed": ENDORSED}

FUNCTIONS: Final[Mapping[str, str]] = {
    "has(args.x)": "whether the field is there; also `has(tool.title)`",
    "size(x)": "characters of a string, entries of a list or map; also `x.size()`",
    "x.startsWith(s)": "whether the string begins with `s`",
    "x.endsWith(s)": "whether the string ends with `s`",
    "x.contains(s)": "whether the string contains `s`",
    "x.matches(p)": "whether the regular expression `p`, a literal, occurs in the string; linear time, no "
    "back-references and no look-around; anchor it with `^` and `$`",
    "list.exists(v, p)": "whether `p` holds for some entry `v` of the list (or some key of the map)",
    "list.all(v, p)": "whether `p` holds for every entry",
}


class ToolFacts(msgspec.Struct, frozen=True):
    """Everything a row is compiled for. `title` is None where the tool has none; `method` is the MCP
    method."""

    server: str
    name: str
    profile: Profile
    trust: Trust = Trust.UNTRUSTED
    title: str | None = None
    method: str = "tools/call"
    client: str = ""
    client_asks: Asks = Asks.NOBODY


def environment(facts: ToolFacts) -> dict[str, bool | str | None]:
    """The value of each static name of `WORDS` for these facts; None for an absent optional one. No flow
    names.

    The moot rule holds whatever the profile says: a read-only tool is neither destructive nor not idempotent.
    """
    profile = facts.profile
    found: dict[str, bool | str | None] = {
        "tool.name": facts.name,
        "tool.title": facts.title,
        "call.method": facts.method,
        "server.name": facts.server,
        "server.trust": str(facts.trust),
        "client.name": facts.client,
        "client.asks": str(facts.client_asks),
    }
    for name in PROFILE_NAMES:
        value = profile.get(name)
        found[f"tool.{name}"] = value.value
        found[f"tool.basis.{name}"] = str(value.basis)
    if profile.read_only.value:
        found["tool.destructive"] = False
        found["tool.idempotent"] = True
    return found


def flow_environment(bits: int) -> dict[str, bool | str | None]:
    """The three flow names for one combination of bits."""
    return {name: bool(bits & bit) for name, bit in FLOW_BITS.items()}
