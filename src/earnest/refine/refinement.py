"""What a refiner says.

Theory. A refiner looks at the arguments of one call and makes a partial statement; whether its lowering
counts is settled by who ordered it (`core.profile.refine`). A refiner that cannot read its argument in
exactly one way says the worst, never nothing: what it was asked to look at decides what the call does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from earnest.core.profile import Labels, riskier


class Refinement(msgspec.Struct, frozen=True):
    """A statement about one call, and why, as a phrase for a person (`query deletes rows`)."""

    labels: Labels
    why: str


WORST_LABELS: Final = Labels(
    read_only=False,
    destructive=True,
    idempotent=False,
    open_world=True,
    reads_private=True,
    sees_untrusted=True,
    can_exfiltrate=True,
)
"""What is said of an argument that cannot be read."""


def combined(found: Sequence[Refinement]) -> Refinement | None:
    """One statement from several: where they disagree the riskier side counts; `None` if there are none."""
    if not found:
        return None
    sources = dict.fromkeys(one.labels.source for one in found if one.labels.source)
    labels = riskier([one.labels for one in found], ", ".join(sources))
    return Refinement(labels, "; ".join(dict.fromkeys(one.why for one in found)))
