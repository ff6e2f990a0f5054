"""An argument that is an HTTP method.

Theory. RFC 9110 (section 9.2.1) calls GET, HEAD and OPTIONS safe: the client asks for no effect. They are
still a way out (the address carries data to whom it names) and a source of text by strangers. Every other
method may have any effect. A header or field that overrides the method makes the method mean nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from earnest.core.profile import Labels
from earnest.refine.refinement import WORST_LABELS, Refinement

_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_IDEMPOTENT: Final = frozenset({"PUT", "DELETE"})
_OVERRIDES: Final = ("method-override", "x-http-method", "_method")


class HttpRule(msgspec.Struct, frozen=True):
    """Which argument is the method, and what its absence means (`GET` only if the tool documents that)."""

    argument: str
    default: str = ""
    source: str = ""


def look(rule: HttpRule, arguments: Mapping[str, Any]) -> Refinement:
    """What the method says."""
    method = arguments.get(rule.argument)
    if method is None:
        method = rule.default
    method = method.upper() if isinstance(method, str) and method.isascii() and method.isalpha() else ""
    others = {key: value for key, value in arguments.items() if key != rule.argument}
    if not method:
        return Refinement(_said(WORST_LABELS, rule), f"{rule.argument} is no HTTP method")
    if _overridden(others):
        return Refinement(_said(WORST_LABELS, rule), "another argument may override the HTTP method")
    leaves = Labels(read_only=True, open_world=True, sees_untrusted=True, can_exfiltrate=True)
    if method in _SAFE:
        return Refinement(_said(leaves, rule), f"{method} asks for no effect, but sends its address out")
    idempotent = None if method in _IDEMPOTENT else False
    effect = msgspec.structs.replace(leaves, read_only=False, destructive=True, idempotent=idempotent)
    return Refinement(_said(effect, rule), f"{method} may have any effect")


def _said(labels: Labels, rule: HttpRule) -> Labels:
    return msgspec.structs.replace(labels, source=rule.source)


def _overridden(value: object, depth: int = 0) -> bool:
    if depth > 32:
        return True
    if isinstance(value, str):
        return any(word in value.casefold() for word in _OVERRIDES)
    if isinstance(value, Mapping):
        return any(_overridden(item, depth + 1) for pair in value.items() for item in pair)
    if isinstance(value, list | tuple):
        return any(_overridden(item, depth + 1) for item in value)
    return False
