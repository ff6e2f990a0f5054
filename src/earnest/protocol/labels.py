"""Labels that servers put on tools and results: read into facts that restrict and facts that relax, kept
apart.

Theory. Many vocabularies, one question: is what comes back private, and was it written by strangers? A fact
that restricts (`private` or `untrusted` is true) is believed from anyone; a fact that relaxes (false) counts
only from a trusted server, which is not decided here. So the two are never merged into one value. Absent says
nothing. A value outside its vocabulary, or of the wrong type, restricts: it was meant to say something, and
the worst is assumed.

| carrier | vocabulary |
|---|---|
| `_meta["io.modelcontextprotocol/trust-annotations"]` | `sensitive`, `untrusted` (booleans) |
| `_meta["io.modelcontextprotocol/action-metadata"]`, also in `annotations` | `returnMetadata` {`source`,
`sensitivity`} |
| `_meta.ifc` | `integrity` (`trusted`), `confidentiality` (`public`) |
| `_meta["dev.earnest/labels"]` | `private`, `untrusted` (booleans), as earnest writes them |
| `annotations` of a tool, `_meta.annotations` of a result (SEP-1913) | `returnMetadata`,
`maliciousActivityHint`, on results `openWorldHint` |
| the same, older and smaller proposals | `sensitiveHint`, `privateHint`, `secretHint`, `sensitiveDataHint`,
`unsafeOutputHint`, `untrustedContentHint` |

Earnest writes as well: `written` puts what a result was taken for into its `_meta`, under its own name always and as
`trust-annotations` for a client that declared that extension. What it writes contains what the server restricted, so that
nobody reads less from it than from the server's own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from earnest.core import canonical

TRUST_ANNOTATIONS: Final = "io.modelcontextprotocol/trust-annotations"
ACTION_METADATA: Final = "io.modelcontextprotocol/action-metadata"
OWN: Final = "dev.earnest/labels"
DECLARED: Final = b'"io.modelcontextprotocol/trust-annotations"'
"""In the raw capabilities of a client that reads them."""

PRIVATE: Final = 1
UNTRUSTED: Final = 2
NOT_PRIVATE: Final = 4
NOT_UNTRUSTED: Final = 8
WORST: Final = PRIVATE | UNTRUSTED
"""Facts as bits, for folding many blocks."""

_TRUSTED_SOURCES: Final = frozenset(("trustedPublic", "internal", "user", "system", "first-party", "first_party"))
_OPEN_SENSITIVITY: Final = frozenset(("none", "public"))

_BOOLEANS: Final = {
    "sensitive": (PRIVATE, NOT_PRIVATE),
    "untrusted": (UNTRUSTED, NOT_UNTRUSTED),
    "private": (PRIVATE, NOT_PRIVATE),
    "privateHint": (PRIVATE, NOT_PRIVATE),
    "secretHint": (PRIVATE, NOT_PRIVATE),
    "sensitiveDataHint": (PRIVATE, NOT_PRIVATE),
    "unsafeOutputHint": (UNTRUSTED, NOT_UNTRUSTED),
    "untrustedContentHint": (UNTRUSTED, NOT_UNTRUSTED),
    "maliciousActivityHint": (UNTRUSTED, 0),
    "openWorldHint": (UNTRUSTED, NOT_UNTRUSTED),
}
_TRUST_NAMES: Final = ("sensitive", "untrusted")
_OWN_NAMES: Final = ("private", "untrusted")
_HINT_NAMES: Final = (
    "privateHint",
    "secretHint",
    "sensitiveDataHint",
    "unsafeOutputHint",
    "untrustedContentHint",
    "maliciousActivityHint",
)


class Facts(msgspec.Struct, frozen=True):
    """What labels say. `None` says nothing. In restricting facts only true occurs, in relaxing ones only
    false."""

    private: bool | None = None
    untrusted: bool | None = None


class Labelled(msgspec.Struct, frozen=True):
    """Facts found on one object. A relaxing fact is left out where a restricting one contradicts it."""

    restrict: Facts = Facts()
    relax: Facts = Facts()


def settle(bits: int) -> Labelled:
    """Bits as facts; what restricts silences what relaxes."""
    return _SETTLED[bits & 15]


def _settled(bits: int) -> Labelled:
    return Labelled(
        Facts(True if bits & PRIVATE else None, True if bits & UNTRUSTED else None),
        Facts(
            False if bits & NOT_PRIVATE and not bits & PRIVATE else None,
            False if bits & NOT_UNTRUSTED and not bits & UNTRUSTED else None,
        ),
    )


_SETTLED: Final = tuple(_settled(bits) for bits in range(16))


def meta_bits(meta: object) -> int:
    """Facts in a decoded `_meta` of a result or a content block. Null says nothing; no object is worst."""
    if meta is None:
        return 0
    if not isinstance(meta, Mapping):
        return WORST
    bits = _carried(meta)
    if "annotations" in meta:
        bits |= _annotation_bits(meta["annotations"], response=True)
    return bits


def tool_labels(tool: bytes) -> Labelled:
    """Facts that a raw Tool object states of what it returns. Never raises; what cannot be read restricts."""
    try:
        value: Any = msgspec.json.decode(tool)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return settle(WORST)
    if not isinstance(value, dict):
        return settle(WORST)
    bits = 0
    meta = value.get("_meta")
    if meta is not None:
        bits |= _carried(meta) if isinstance(meta, Mapping) else WORST
        if isinstance(meta, Mapping) and "annotations" in meta:
            bits |= _annotation_bits(meta["annotations"], response=False)
    # On a tool `openWorldHint` is one of the four hints and is resolved with them, not here.
    bits |= _annotation_bits(value.get("annotations"), response=False)
    return settle(bits)


class Listed(msgspec.Struct, frozen=True):
    """Which names or URIs a listed object stands for, and what it restricts of them (`PRIVATE`, `UNTRUSTED`). `pieces`: what
    stands between the variables of a template; one for what has none."""

    pieces: tuple[str, ...]
    bits: int

    def covers(self, name: str) -> bool:
        """Whether a name is meant. A variable of a template stands for anything."""
        first, *rest = self.pieces
        if not rest:
            return name == first
        if not name.startswith(first):
            return False
        at = len(first)
        for piece in rest[:-1]:
            found = name.find(piece, at)
            if found < 0:
                return False
            at = found + len(piece)
        return name.endswith(rest[-1]) and len(name) - len(rest[-1]) >= at


class _Item(msgspec.Struct):
    name: str = ""
    uri: str = ""
    uriTemplate: str = ""


_VARIABLE: Final = re.compile(r"\{[^{}]*\}")


def listed(item: bytes) -> Listed | None:
    """What a listed prompt, resource or template restricts; None where that is nothing."""
    found = tool_labels(item).restrict
    bits = (PRIVATE if found.private else 0) | (UNTRUSTED if found.untrusted else 0)
    if not bits:
        return None
    try:
        value = msgspec.json.decode(item, type=_Item)
    except msgspec.MsgspecError:
        return Listed(("", ""), bits)
    if value.uriTemplate:
        return Listed(tuple(_VARIABLE.split(value.uriTemplate)), bits)
    return Listed((value.uri or value.name,), bits)


def _carried(meta: Mapping[str, Any]) -> int:
    """The carriers that look the same on tools, results and blocks."""
    bits = 0
    if TRUST_ANNOTATIONS in meta:
        bits |= _booleans(meta[TRUST_ANNOTATIONS], _TRUST_NAMES)
    if OWN in meta:
        bits |= _booleans(meta[OWN], _OWN_NAMES)
    if "ifc" in meta:
        bits |= _ifc(meta["ifc"])
    if ACTION_METADATA in meta:
        bits |= _action(meta[ACTION_METADATA])
    return bits


def _annotation_bits(value: object, *, response: bool) -> int:
    if value is None:
        return 0
    if not isinstance(value, Mapping):
        # A tool's own malformed annotations claim nothing; a malformed label on a result was meant as one.
        return WORST if response else 0
    bits = _booleans(value, _HINT_NAMES)
    if response:
        bits |= _booleans(value, ("openWorldHint",))
    bits |= _sensitive_hint(value.get("sensitiveHint"))
    if "returnMetadata" in value:
        bits |= _returned(value["returnMetadata"])
    if ACTION_METADATA in value:
        bits |= _action(value[ACTION_METADATA])
    return bits


def _booleans(value: object, names: tuple[str, ...]) -> int:
    if value is None:
        return 0
    if not isinstance(value, Mapping):
        return WORST
    bits = 0
    for name in names:
        state = value.get(name)
        if state is None:
            continue
        true, false = _BOOLEANS[name]
        bits |= false if state is False else true
    return bits


def _sensitive_hint(value: object) -> int:
    """`sensitiveHint` was a boolean in one text and a level in another; low is neither public nor
    protected."""
    if value is None or value == "low":
        return 0
    return NOT_PRIVATE if value is False else PRIVATE


def _ifc(value: object) -> int:
    """Labels of information flow control: only the bottom of each lattice relaxes."""
    if value is None:
        return 0
    if not isinstance(value, Mapping):
        return WORST
    bits = 0
    integrity, confidentiality = value.get("integrity"), value.get("confidentiality")
    if integrity is not None:
        bits |= NOT_UNTRUSTED if integrity == "trusted" else UNTRUSTED
    if confidentiality is not None:
        bits |= NOT_PRIVATE if confidentiality == "public" else PRIVATE
    return bits


def _action(value: object) -> int:
    if value is None:
        return 0
    if not isinstance(value, Mapping):
        return WORST
    return _returned(value["returnMetadata"]) if "returnMetadata" in value else 0


def _returned(value: object) -> int:
    """`ReturnMetadata`: one value or a set of possible ones; a set relaxes only if all of it does."""
    if value is None:
        return 0
    if not isinstance(value, Mapping):
        return WORST
    bits = 0
    if value.get("source") is not None:
        bits |= NOT_UNTRUSTED if _all_in(value["source"], _TRUSTED_SOURCES) else UNTRUSTED
    if value.get("sensitivity") is not None:
        bits |= NOT_PRIVATE if _all_in(value["sensitivity"], _OPEN_SENSITIVITY) else PRIVATE
    return bits


def _all_in(value: object, allowed: frozenset[str]) -> bool:
    values = value if isinstance(value, list) else [value]
    return bool(values) and all(isinstance(one, str) and one in allowed for one in values)


def said(bits: int) -> bytes:
    """The member of `_meta` that says of a result whether it is private and untrusted (`PRIVATE`, `UNTRUSTED`)."""
    return _SAID[bits & WORST]


def written(result: bytes, members: Mapping[str, bytes], bits: int, *, annotations: bool) -> bytes:
    """A result with what it was taken for in its `_meta`; all else keeps its bytes. `members`: the result's own, raw.
    `annotations`: the client declared `trust-annotations`. A `_meta` that is no object is replaced."""
    old = members.get("_meta", b"null")
    if old == b"null" and not annotations and "_meta" not in members:
        head = b'{"_meta":{' + _SAID[bits & WORST] + b"}"
        return head + b"}" if not members else head + b"," + result[1:]
    inner = canonical.members(old) if old[:1] == b"{" else {}
    inner[OWN] = _VALUES[bits & WORST]
    if annotations:
        theirs = inner.get(TRUST_ANNOTATIONS, b"null")
        kept = canonical.members(theirs) if theirs[:1] == b"{" else {}
        private, untrusted = bool(bits & PRIVATE), bool(bits & UNTRUSTED)
        kept |= {"sensitive": _JSON[private], "untrusted": _JSON[untrusted]}
        inner[TRUST_ANNOTATIONS] = canonical.build(kept)
    return canonical.build({**members, "_meta": canonical.build(inner)})


_JSON: Final = {True: b"true", False: b"false"}
_VALUES: Final = tuple(
    b'{"private":%b,"untrusted":%b}' % (_JSON[bool(bits & PRIVATE)], _JSON[bool(bits & UNTRUSTED)]) for bits in range(4)
)
_SAID: Final = tuple(b'"dev.earnest/labels":' + value for value in _VALUES)
