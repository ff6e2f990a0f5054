"""The text a person reads before saying yes: who wants to do what, with which arguments, and why it is
asked."""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from earnest.core.canonical import canonical, members
from earnest.core.errors import EarnestError
from earnest.core.visible import visible

ARGUMENT_CHARS: Final = 1000
"""Longest argument shown in full."""

TOTAL_CHARS: Final = 8000
"""Once the arguments shown exceed this, each further one is folded to `SHORT_CHARS`."""

SHORT_CHARS: Final = 80
LINE_CHARS: Final = 300


class HintFact(msgspec.Struct, frozen=True):
    """One hint: its name, what the server claims (`None` is nothing), what was resolved, and on which
    basis."""

    name: str
    claimed: bool | None
    resolved: bool
    basis: str


class PromptFacts(msgspec.Struct, frozen=True):
    """All that a person is shown. `arguments` is raw JSON; `title` is `""` if the tool has none."""

    server: str
    tool: str
    title: str
    hints: tuple[HintFact, ...]
    arguments: bytes
    reasons: tuple[str, ...]
    client: str = ""
    preview: tuple[str, ...] = ()
    """What the call does, as it was run over a copy: lines, visible and bounded already."""


_MOOT: Final = frozenset(("destructive", "idempotent"))
"""Hints that say nothing of a tool that only reads."""
_CLAIM: Final = {True: "claims yes", False: "claims no", None: "claims nothing"}


def folded(text: str, longest: int) -> str:
    """Visible text; where longer than `longest` characters its head, with the length and digest of the
    whole."""
    if len(text) <= longest:
        return visible(text)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{visible(text[:longest])} … [folded: {len(text)} characters in all, sha256 {digest[:16]}]"


def render_prompt(facts: PromptFacts) -> str:
    """The prompt as plain text of several lines. Every text of a stranger stays on its own line, made
    visible."""
    lines = [f"Server: {folded(facts.server, LINE_CHARS)}", f"Tool: {folded(facts.tool, LINE_CHARS)}"]
    if facts.title:
        lines.append(f"Title (the server's own word): {folded(facts.title, LINE_CHARS)}")
    if facts.client:
        lines.append(f"Client: {folded(facts.client, LINE_CHARS)}")
    for reason in facts.reasons:
        lines.append(f"Asked because: {folded(reason, LINE_CHARS)}")
    reads = any(hint.name == "read_only" and hint.resolved for hint in facts.hints)
    for hint in facts.hints:
        resolved = "yes" if hint.resolved else "no"
        basis = "it only reads" if reads and hint.name in _MOOT else hint.basis
        lines.append(f"{hint.name}: {resolved} ({basis}; the server {_CLAIM[hint.claimed]})")
    lines.extend(_arguments(facts.arguments))
    lines.extend(facts.preview)
    return "\n".join(lines)


def _arguments(raw: bytes) -> list[str]:
    try:
        seen = members(raw)
    except EarnestError:
        return [f"Arguments (malformed): {folded(raw.decode('utf-8', 'backslashreplace'), ARGUMENT_CHARS)}"]
    if not seen:
        return ["Arguments: none"]
    lines = [f"Arguments ({len(seen)}):"]
    shown = 0
    for name, value in seen.items():
        # Canonical text undoes escapes that hide what a string says, and keeps numbers as written.
        try:
            text = canonical(value).decode()
        except EarnestError:
            text = value.decode("utf-8", "backslashreplace")
        line = folded(text, ARGUMENT_CHARS if shown < TOTAL_CHARS else SHORT_CHARS)
        shown += len(line)
        lines.append(f"  {folded(name, LINE_CHARS)} = {line}")
    return lines
