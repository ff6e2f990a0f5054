"""Risk classes: what a tool may do at worst, by the resolved profile (core/profile.py), in six words.

    reads_closed  reads_open  adds_closed  adds_open  destroys_closed  destroys_open

Three classes of each tool: resolved for a server nobody trusts, for a trusted one, and for a trusted one whose claims count
only as far as its own description does not contradict them (findings of high confidence that say the tool does more than it
claims; they stand where an assay's violation would).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from earnest.core.hints import RawHints
from earnest.core.profile import Profile, Standing, Trust, resolve
from earnest.lint.model import Finding

CLASSES: Final = ("reads_closed", "reads_open", "adds_closed", "adds_open", "destroys_closed", "destroys_open")
"""From least to most."""

UNDERSTATED: Final = frozenset(
    (
        "read-only-but-writes",
        "destructive-denied",
        "read-only-and-destructive",
        "idempotent-denied",
        "closed-world-denied",
        "permission-denied",
    )
)
"""Audits that find a claim safer than the tool."""
OVERSTATED: Final = frozenset(("reads-but-not-read-only", "destructive-overstated", "http-method"))
"""Audits that find a tool safer than its claim, or than the default."""


def risk_class(profile: Profile) -> str:
    """The class of a profile."""
    act = "reads" if profile.read_only.value else "destroys" if profile.destructive.value else "adds"
    return f"{act}_{'open' if profile.open_world.value else 'closed'}"


def classes(claims: RawHints, findings: Iterable[Finding]) -> tuple[str, str, str]:
    """Untrusted, claimed, checked."""
    caught = {
        one.hint
        for one in findings
        if one.audit in UNDERSTATED and one.confidence == "high" and one.hint is not None and claims.get(one.hint) is not None
    }
    violated = frozenset(caught | ({"read_only"} if "destructive" in caught else set()))
    standings = (
        Standing(trust=Trust.UNTRUSTED, claims=claims),
        Standing(trust=Trust.TRUSTED, claims=claims),
        Standing(trust=Trust.TRUSTED, claims=claims, violated=violated),
    )
    untrusted, claimed, checked = (risk_class(resolve(standing)) for standing in standings)
    return untrusted, claimed, checked
