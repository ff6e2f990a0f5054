"""Lanes: which of a contained server's processes a tool's calls go to, and what that makes impossible.

Theory. A contained server runs in several processes, each behind walls of its own. *Observe* has no network and writes nowhere
but into its own scratch; *net* the same with the hosts its operator named; *act* has what its operator granted. Which lane a
tool belongs to is chosen from what its server claims and its operator says, before anything is resolved: a claim costs nothing
here, because the lane makes it true. A tool that claims to read at home goes where it can do nothing else; if it lied, the lie
fails. A false claim can only take away from the tool, so it needs no trust.

What the walls make impossible is a statement like any other (`profile.Standing.contained`, row 2 of the table): it never
raises, and what the operator says stands above it. Where a tier cannot hold something, nothing is stated.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from earnest.core.hints import RawHints
from earnest.core.profile import NOTHING, Labels, entailed


class Lane(StrEnum):
    """One kind of process of a contained server."""

    OBSERVE = "observe"
    NET = "net"
    ACT = "act"
    PREVIEW = "preview"
    """A fresh process for one call: as act, without network, and what it writes stays in the box."""


LANES: Final = (Lane.OBSERVE, Lane.NET, Lane.ACT)
"""The lanes that calls go to."""


def lane_of(claims: RawHints, operator: Labels) -> Lane:
    """The lane of a tool, of what its server claims and its operator says (whose word counts where both speak).

    Read-only and closed-world is observe, read-only alone net, all else act. A hint that nobody speaks of has the
    specification's default, the riskier one.
    """
    said = entailed(operator)
    reads, opens = (
        stated if (stated := said.get(hint)) is not None else claims.get(hint) for hint in ("read_only", "open_world")
    )
    if reads is not True:
        return Lane.ACT
    return Lane.OBSERVE if opens is False else Lane.NET


def enforced(lane: Lane, *, closed: bool, holds_writes: bool, holds_network: bool, source: str) -> Labels:
    """What a lane makes impossible, as a statement. `closed`: it reaches no host. `holds_writes`, `holds_network`: what the
    tier can hold; where it cannot hold both, what may not get out one way might the other, so nothing is stated.
    `source` names lane and tier for a person.

    Nothing but observe makes a tool read-only: what net reaches may be changed by asking for it.
    """
    if not (holds_writes and holds_network) or not (closed or lane is Lane.OBSERVE):
        return NOTHING
    return Labels(read_only=True if lane is Lane.OBSERVE else None, open_world=False, can_exfiltrate=False, source=source)
