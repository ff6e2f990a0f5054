"""Databases that run inside the sandbox for the server under assay, compared by rows before and after a call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from earnest.assay.model import Effect
from earnest.assay.observe.masks import masked


def compared(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Effect]:
    """Effects between two dumps: lists of rows as texts, by area (database and table, or kind of key)."""
    found = []
    for area in sorted(before.keys() | after.keys()):
        old = Counter(masked(str(row)) for row in before.get(area) or ())
        new = Counter(masked(str(row)) for row in after.get(area) or ())
        gone, added = old - new, new - old
        if area not in after:
            found.append(Effect("deleted", "database", area, "", f"{area} is gone", True, True))
        elif area not in before:
            found.append(Effect("created", "database", area, "", f"{area} is new, with {sum(new.values())} rows", True))
        elif gone:
            what = f"{area}: {sum(gone.values())} rows gone or changed, {sum(added.values())} new"
            found.append(Effect("overwritten", "database", area, "", what, True, True))
        elif added:
            found.append(Effect("appended", "database", area, "", f"{area}: {sum(added.values())} rows new", True))
    return found
