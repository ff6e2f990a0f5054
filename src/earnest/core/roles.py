"""What each argument of a call steers.

Theory. A role comes from whoever may say so, in this order: the operator's or a pack's label, by path (`edits[].email`) or
by the
argument's name; then the schema: `format`, type, name. An argument that nobody knows, or that the schema does not list,
counts as
destination, selector and amount at once. Inference can only find out that something is content if the name says so and
nothing about it says otherwise: to mistake a destination for content would let it pass, the other mistake costs a question.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from earnest.core.intent import Lexicon, name_words


class Role(StrEnum):
    """What an argument steers."""

    DESTINATION = "destination"
    SELECTOR = "selector"
    AMOUNT = "amount"
    CONTENT = "content"
    VERB = "verb"
    OBJECT = "object"


Roles = frozenset[Role]
EVERYTHING: Final[Roles] = frozenset((Role.DESTINATION, Role.SELECTOR, Role.AMOUNT))
"""The roles of an argument of which nothing is known."""
SPELLINGS: Final = {"sink": Role.DESTINATION, "sel": Role.SELECTOR, "qty": Role.AMOUNT, **{str(role): role for role in Role}}
"""How labels may spell a role."""
_FORMATS: Final = {
    "email": Role.DESTINATION,
    "idn-email": Role.DESTINATION,
    "uri": Role.DESTINATION,
    "uri-reference": Role.DESTINATION,
    "url": Role.DESTINATION,
    "iri": Role.DESTINATION,
    "hostname": Role.DESTINATION,
    "ipv4": Role.DESTINATION,
    "ipv6": Role.DESTINATION,
    "uuid": Role.SELECTOR,
    "date": Role.AMOUNT,
    "time": Role.AMOUNT,
    "date-time": Role.AMOUNT,
    "duration": Role.AMOUNT,
}
_TYPES: Final = {"integer": Role.AMOUNT, "number": Role.AMOUNT}


def label(text: str) -> Role | None:
    """The role a label means, or None if it is no role."""
    return SPELLINGS.get(text)


def infer(name: str, schema: Mapping[str, Any] | None, lexicon: Lexicon) -> Roles:
    """The roles of an argument by its schema and its name. `schema`: that of the property, None where there is none."""
    if schema is not None:
        found = _FORMATS.get(str(schema.get("format", "")))
        if found is not None:
            return frozenset((found,))
    words = name_words(name)
    last = words[-1] if words else ""
    steering = {
        Role(role)
        for role in (Role.DESTINATION, Role.SELECTOR, Role.AMOUNT)
        for names in (lexicon.roles.get(role, frozenset()),)
        if last in names
    }
    if steering:
        return frozenset(steering)
    if last in lexicon.roles.get(Role.CONTENT, frozenset()):
        return frozenset((Role.CONTENT,))
    for word in reversed(words[:-1]):
        for role in (Role.DESTINATION, Role.SELECTOR, Role.AMOUNT):
            if word in lexicon.roles.get(role, frozenset()):
                return frozenset((role,))
    kind = schema.get("type") if schema is not None else None
    if isinstance(kind, str) and kind in _TYPES:
        return frozenset((_TYPES[kind],))
    return EVERYTHING


class ArgumentRoles:
    """The roles of one tool's arguments, made ready. `labels`: what operator or pack say, by name or path."""

    __slots__ = ("_found", "_labels", "_lexicon", "_properties")

    def __init__(self, labels: Mapping[str, Role], schema: Mapping[str, Any] | None, lexicon: Lexicon) -> None:
        self._labels = dict(labels)
        properties = schema.get("properties") if schema is not None else None
        self._properties: Mapping[str, Any] | None = properties if isinstance(properties, Mapping) else None
        self._lexicon = lexicon
        self._found: dict[str, Roles] = {}

    def of(self, path: str) -> Roles:
        """The roles of the value at a path such as `to[]` or `edits[].newText`."""
        found = self._found.get(path)
        if found is None:
            found = self._work_out(path)
            if len(self._found) < 256:
                self._found[path] = found
        return found

    def default(self, path: str) -> tuple[bool, Any]:
        """Whether the schema gives a top-level argument a default, and which."""
        schema = (self._properties or {}).get(path)
        if isinstance(schema, Mapping) and "default" in schema:
            return True, schema["default"]
        return False, None

    def unlisted(self, name: str) -> bool:
        """Whether a top-level argument is outside the schema, or has nothing said of it."""
        if self._properties is not None and name in self._properties:
            return False
        return not any(path == name or path.startswith((f"{name}.", f"{name}[")) for path in self._labels)

    def _work_out(self, path: str) -> Roles:
        if path in self._labels:
            return frozenset((self._labels[path],))
        bare = path.replace("[]", "")
        parts = bare.split(".")
        for end in range(len(parts), 0, -1):
            prefix = ".".join(parts[:end])
            if prefix in self._labels:
                return frozenset((self._labels[prefix],))
        top = parts[0]
        if self._properties is not None and top not in self._properties:
            return EVERYTHING
        schema = (self._properties or {}).get(top)
        known = schema if isinstance(schema, Mapping) else None
        if len(parts) > 1:
            own = infer(parts[-1], None, self._lexicon)
            outer = infer(top, None, self._lexicon)
            return own if own == outer or outer != frozenset((Role.CONTENT,)) else own | outer
        if known is not None and known.get("type") == "array" and isinstance(known.get("items"), Mapping):
            known = {**known.get("items", {}), "type": known["items"].get("type")}
        return infer(top, known, self._lexicon)
