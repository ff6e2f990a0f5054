"""The reference survey: figures of an earlier, smaller survey of annotations, to be set beside ours.

Only its totals are known: 14 servers, 288 tools. What it did not count is None.
"""

from __future__ import annotations

from typing import Final

REFERENCE: Final[dict[str, int | None]] = {
    "servers": 14,
    "tools": 288,
    "annotated": 262,
    "hinted": None,
    "all_four": None,
    "readonly_true": 145,
    "readonly_false": 117,
    "destructive_true": 5,
    "destructive_false": 44,
    "idempotent_true": 126,
    "idempotent_false": 12,
    "openworld_true": 17,
    "openworld_false": 27,
    "annotations_title": 13,
}
"""Columns of `queries/totals.sql`."""

LABELS: Final = {
    "servers": "servers",
    "tools": "tools",
    "annotated": "with an annotations object",
    "hinted": "with at least one hint",
    "all_four": "with all four hints",
    "readonly_true": "readOnlyHint true",
    "readonly_false": "readOnlyHint false",
    "destructive_true": "destructiveHint true",
    "destructive_false": "destructiveHint false",
    "idempotent_true": "idempotentHint true",
    "idempotent_false": "idempotentHint false",
    "openworld_true": "openWorldHint true",
    "openworld_false": "openWorldHint false",
    "annotations_title": "with annotations.title",
}
