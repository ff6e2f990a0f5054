"""The made parts of docs/census.md: `python -m earnest.census.page PAGE [DATASET…]`.

Schema, queries and grade come from the code. With datasets, so do the figures: a column for each cohort, in the order given,
beside the reference survey. Without, the figures stay as they are.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from earnest.census import grade
from earnest.census.dataset import opened
from earnest.census.figures import figures, queries, query
from earnest.census.reference import LABELS, REFERENCE
from earnest.census.schema import TABLES

_MORE: Final = {
    "malformed": "hints that are no boolean",
    "tool_title": "with title",
    "titles_differ": "title and annotations.title differ",
    "servers_any_annotated": "servers with any annotation",
    "servers_all_annotated": "servers with all tools annotated",
    "readonly_and_destructive": "read-only and destructive",
    "readonly_destructive_set": "read-only, and destructiveHint set",
    "readonly_idempotent_set": "read-only, and idempotentHint set",
    "readonly_idempotent_false": "… of these idempotentHint false",
    "annotated_without_readonly": "annotated, readOnlyHint absent",
    "destructive_by_default": "hinted, not read-only, destructiveHint absent",
    "output_schema": "with outputSchema",
    "icons": "with icons",
    "execution": "with execution",
    "meta": "with _meta",
    "no_description": "without description",
    "description_median": "description, median characters",
    "description_p90": "description, 90th percentile",
    "description_longest": "description, longest",
    "description_over_1024": "description over 1,024",
    "description_over_4096": "description over 4,096",
    "names_outside_rule": "names outside the rule",
    "names_twice_on_a_server": "names twice on one server",
    "names_on_several_servers": "names found on two servers or more",
}


def made(datasets: Sequence[Path] = ()) -> dict[str, str]:
    """The parts by name, as Markdown."""
    parts = {"schema": _schema(), "queries": _queries(), "grade": _grade()}
    if datasets:
        parts["figures"] = _figures(datasets)
    return parts


def filled(text: str, parts: Mapping[str, str]) -> str:
    """The page with its parts made anew. Raises ValueError where it has no place for one."""
    for name, part in parts.items():
        begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
        if begin not in text or end not in text:
            raise ValueError(f"the page has no place for {name}")
        head, rest = text.split(begin, 1)
        text = f"{head}{begin}\n\n{part}\n\n{end}{rest.split(end, 1)[1]}"
    return text


def _schema() -> str:
    parts = []
    for name, columns in TABLES.items():
        rows = [f"| `{column}` | {kind} | {about} |" for column, (kind, about) in columns.items()]
        parts.append("\n".join([f"**{name}**\n", "| column | type | meaning |", "|---|---|---|", *rows]))
    return "\n\n".join(parts)


def _queries() -> str:
    rows = [f"| `{one.name}` | {one.title} |" for one in queries().values()]
    return "\n".join(["| query | what |", "|---|---|", *rows])


def _grade() -> str:
    text = (grade.__doc__ or "").strip()
    return "\n\n".join(re.sub(r"\s*\n", " ", part) for part in text.split("\n\n")[1:])


def _figures(datasets: Sequence[Path]) -> str:
    totals: dict[str, dict[str, Any]] = {}
    for folder in datasets:
        with opened(folder) as connection:
            for row in figures(connection, query("totals")).dicts():
                totals[row["cohort"]] = row
    names = list(totals)
    head = [
        "| tools, unless said otherwise | reference survey | " + " | ".join(names) + " |",
        "|---|--:|" + "--:|" * len(names),
    ]
    lines = [*head]
    for key, label in LABELS.items():
        cells = [_cell(totals[name]["answered" if key == "servers" else key]) for name in names]
        lines.append(f"| {label} | {_cell(REFERENCE[key])} | {' | '.join(cells)} |")
    for key, label in _MORE.items():
        lines.append(f"| {label} | – | {' | '.join(_cell(totals[name][key]) for name in names)} |")
    return "\n".join(lines)


def _cell(value: Any) -> str:
    return "–" if value is None else f"{value:,.0f}" if not isinstance(value, float) or value.is_integer() else f"{value:,.1f}"


def main(argv: Sequence[str]) -> int:
    """Writes the page; 2 for a mistake in the call."""
    if not argv:
        print("python -m earnest.census.page PAGE [DATASET…]", file=sys.stderr)
        return 2
    page = Path(argv[0])
    page.write_text(filled(page.read_text("utf-8"), made([Path(one) for one in argv[1:]])), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
