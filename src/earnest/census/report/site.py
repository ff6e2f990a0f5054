"""The site: pages of a dataset, written to a folder. Static, without anything from elsewhere.

Every text of a server goes through `shown`: escaped, and with what cannot be seen spelled out. Pages carry a policy that
allows the site's own style sheet and script, and nothing else.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections import defaultdict
from collections.abc import Mapping
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Final

import msgspec

from earnest.census import grade as grading
from earnest.census.dataset import ABOUT, about, opened
from earnest.census.diff import Drift, compare
from earnest.census.figures import figures, queries
from earnest.census.reference import LABELS, REFERENCE
from earnest.census.report import pictures
from earnest.census.report.pictures import Picture
from earnest.census.schema import TABLES
from earnest.core.errors import EarnestError
from earnest.core.visible import visible

_MARKED: Final = re.compile(r"&lt;U\+([0-9A-F]{4,6})&gt;")
_LONGEST: Final = 12_000
"""Characters of one description on a page; what is left out is counted, and stands in the dataset."""
_FEW: Final = 60
"""Tools of a server whose details are open at first."""


def build(folder: Path, out: Path, *, earlier: Path | None = None, title: str) -> int:
    """Write the site; returns how many pages it has. Raises E1904, E1905, E1915, E1906 for a folder of other things."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise EarnestError("E1915", "Jinja2 is not installed", "pip install 'earnest[census]'") from None
    facts = about(folder)
    drifts = compare(earlier, folder) if earlier is not None else []
    _ready(out)
    environment = Environment(
        loader=PackageLoader("earnest.census.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"shown": shown, "thousands": thousands, "hint": _hint, "slug": slug}
    environment.globals |= {"title": title, "facts": facts, "RISK": pictures.RISK, "WIRE": pictures.WIRE}
    writing = _Site(environment, out)
    with opened(folder) as connection:
        found = {name: figures(connection, one) for name, one in queries().items() if not one.needs_earlier}
        tables = {name: _all(connection, name) for name in TABLES}
    totals = {row["cohort"]: row for row in found["totals"].dicts()}
    cohorts = list(totals)
    writing.page("index.html", "index.html", totals=totals, cohorts=cohorts, reference=REFERENCE, labels=LABELS)
    writing.page("method.html", "method.html", formula=_formula(), queries=queries(), tables=TABLES, cohorts=cohorts)
    for cohort in cohorts:
        _cohort(writing, cohort, totals[cohort], found, tables, [one for one in drifts if one.later == cohort])
    _copy(folder, out)
    return writing.pages


class _Site:
    def __init__(self, environment: Any, out: Path) -> None:
        self._environment, self._out, self.pages = environment, out, 0

    def page(self, name: str, template: str, **values: Any) -> None:
        """Write one page; `root` is the way from it to the site's own folder."""
        path = self._out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        root = "../" * name.count("/")
        path.write_text(self._environment.get_template(template).render(root=root, here=name, **values), "utf-8")
        self.pages += 1


def _cohort(
    site: _Site, cohort: str, total: Mapping[str, Any], found: Mapping[str, Any], tables: Mapping[str, Any], drifts: list[Drift]
) -> None:
    base = f"{slug(cohort)}/"
    rows = {name: one.dicts(cohort) for name, one in found.items()}
    servers = [row for row in tables["servers"] if row["cohort"] == cohort]
    tools, notes = _by_server(tables["tools"], cohort), _by_server(tables["findings"], cohort)
    for server in servers:
        server["key"] = (server["server"], server["provenance"])
        server["href"] = f"server/{slug(server['server'])}-{_short(server['server'] + chr(0) + server['provenance'])}.html"
    links = {server["server"]: server["href"] for server in servers}
    shown_pictures = _pictures(rows, links, drifts)
    common: dict[str, Any] = {"cohort": cohort, "base": base, "total": total}
    site.page(f"{base}index.html", "cohort.html", pictures=shown_pictures, failures=rows["failures"], rows=rows, **common)
    site.page(f"{base}servers.html", "servers.html", servers=servers, **common)
    site.page(f"{base}tools.html", "tools.html", servers=servers, tools=tools, **common)
    for server in servers:
        listed = tools.get(server["key"], [])
        said: dict[str | None, list[Any]] = defaultdict(list)
        for note in notes.get(server["key"], []):
            said[note["tool"]].append(note)
        site.page(
            f"{base}{server['href']}",
            "server.html",
            server=server,
            tools=listed,
            findings=said,
            few=len(listed) <= _FEW,
            **common,
        )


def _pictures(rows: Mapping[str, Any], links: Mapping[str, str], drifts: list[Drift]) -> list[Picture]:
    made = [
        pictures.hints(rows["hints"]),
        pictures.coverage(rows["coverage"], links),
        pictures.combinations(rows["combinations"]),
        pictures.risk(rows["risk"]),
        pictures.contradictions(rows["contradictions"]),
        pictures.findings(rows["findings"]),
        pictures.eras(rows["eras"]),
        pictures.grades(rows["grades"]),
    ]
    for one in drifts:
        table = [(change.server, change.tool, change.kind, "; ".join(change.hints)) for change in one.changes]
        told = (
            f"{one.earlier} ({one.earlier_date}) beside {one.later} ({one.later_date}): {one.servers} servers that answered "
            "both times, tools by the change classes of pins."
        )
        made.append(pictures.drift(one.counts(), one.unchanged, table, told))
    return [one for one in made if one.table]


def _by_server(rows: list[dict[str, Any]], cohort: str) -> dict[tuple[str, str], list[dict[str, Any]]]:
    found: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["cohort"] == cohort:
            found[(row["server"], row["provenance"])].append(row)
    return found


def _all(connection: Any, table: str) -> list[dict[str, Any]]:
    columns = [name for name in TABLES[table] if name != "definition"]
    answer = connection.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY cohort, server").fetchall()
    rows = [dict(zip(columns, row, strict=True)) for row in answer]
    for row in rows:
        if table == "tools":
            row["arguments"] = _arguments(row.pop("input_schema"))
    return rows


def _arguments(schema: str | None) -> list[str]:
    try:
        value = msgspec.json.decode(schema or "{}")
    except msgspec.MsgspecError:
        return []
    properties = value.get("properties") if isinstance(value, dict) else None
    return [str(name) for name in properties] if isinstance(properties, dict) else []


def shown(text: object) -> Any:
    """A server's text as markup: escaped, lines kept, what cannot be seen as a marked `U+202E`."""
    from markupsafe import Markup, escape

    whole = str(text)
    cut = whole[:_LONGEST]
    lines = [visible(line) for line in cut.replace("\r\n", "\n").split("\n")]
    escaped = str(escape("\n".join(lines)))
    marked = _MARKED.sub(r'<mark class="unseen">U+\1</mark>', escaped)
    if len(whole) > _LONGEST:
        marked += f" … ({len(whole) - _LONGEST} more characters)"
    return Markup(marked)


def thousands(number: int | float | None) -> str:
    """A number for people."""
    return "–" if number is None else f"{number:,.0f}"


def slug(name: str) -> str:
    """A name as a part of an address."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:60] or "unnamed"


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:6]


def _hint(value: bool | None) -> tuple[str, str]:
    """Class and word of a hint."""
    return ("absent", "–") if value is None else ("true", "true") if value else ("false", "false")


def _formula() -> list[str]:
    return (grading.__doc__ or "").strip().split("\n\n")


def _ready(out: Path) -> None:
    """Make the folder; refuse one that holds something else than a site of ours."""
    mark = out / ".earnest-census"
    if out.exists() and any(out.iterdir()) and not mark.exists():
        raise EarnestError("E1906", f"{out} is not empty and no report", "Give an empty or a new folder with `--out`.")
    if out.exists():
        shutil.rmtree(out)
    (out / "assets").mkdir(parents=True)
    mark.write_text("A report of `earnest census report`; it is made anew each time.\n")
    for entry in files("earnest.census.report").joinpath("assets").iterdir():
        with as_file(entry) as path:
            shutil.copyfile(path, out / "assets" / entry.name)


def _copy(folder: Path, out: Path) -> None:
    (out / "data").mkdir()
    for name in (ABOUT, *(f"{table}.parquet" for table in TABLES)):
        if (folder / name).exists():
            shutil.copyfile(folder / name, out / "data" / name)
