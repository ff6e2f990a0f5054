"""`earnest census`: what many servers say of their tools, recorded, counted, compared and shown."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from earnest.census import record as keeping
from earnest.census.ask import Timeouts
from earnest.census.dataset import opened, write
from earnest.census.diff import KINDS, Drift, compare
from earnest.census.figures import figures, queries, query
from earnest.census.record import Record
from earnest.census.run import EVERY_S, Summary
from earnest.census.run import run as carry_out
from earnest.census.schedule import schedule
from earnest.census.spec import Listing, Recording, check_cohort, load
from earnest.census.task import Settings
from earnest.cli.census_progress import progress
from earnest.cli.daemon import output
from earnest.cli.options import Json
from earnest.core.errors import EarnestError
from earnest.core.visible import visible

app = typer.Typer(no_args_is_help=True, add_completion=False)

_SHOWN_LINES = 12

_List = Annotated[str, typer.Argument(metavar="LIST", help="A list (TOML or JSON), or a recording or folder of recordings.")]
_Run = Annotated[list[Path], typer.Argument(metavar="RUN…", help="Folders of runs.")]
_Dataset = Annotated[Path, typer.Argument(metavar="DATASET", help="A dataset, or the folder of a run.")]
_Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Where to; made if it is not there.")]
_Only = Annotated[list[str] | None, typer.Option("--only", metavar="NAME", help="Only this server; may be repeated.")]


@app.command()
def run(
    list_: _List,
    out: _Out = Path("census"),
    jobs: Annotated[int, typer.Option("--jobs", help="Servers at once.", min=1, max=1000)] = 2,
    only: _Only = None,
    cohort: Annotated[str, typer.Option("--cohort", help="For a recording: the cohort it belongs to.")] = "",
    licence: Annotated[str, typer.Option("--licence", help="For a recording: the licence of its definitions.")] = "unknown",
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Ask those again that gave no answer.")] = False,
    scheduler: Annotated[str, typer.Option("--scheduler", help="local, or dask.")] = "local",
    address: Annotated[str, typer.Option("--address", metavar="URL", help="Of a Dask scheduler; else one is started.")] = "",
    every: Annotated[float, typer.Option("--every", help="Least seconds between two installs.", min=0.0)] = EVERY_S,
    timeout: Annotated[float, typer.Option("--timeout", help="Seconds a server has to open.", min=1.0)] = 90.0,
    install_timeout: Annotated[float, typer.Option("--install-timeout", help="Seconds an install has.", min=1.0)] = 600.0,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the prefixes in `work`.")] = False,
    as_json: Json = False,
) -> int:
    """Ask every server of a list what its tools claim; record it; make the dataset.

    \b
    earnest census run servers.toml --out july            install, start contained, ask in both eras, record
    earnest census run servers.toml --out july --jobs 4   again: only what is missing is asked
    earnest census run recordings/ --out old --cohort 2025-07
    earnest census run servers.toml --out july --scheduler dask --address tcp://10.0.0.1:8786

    A server that fails is a row with its reason. The folder may be used again after any end, kill -9 included. Exit code 0 if
    the run was carried out, 3 if no server at all answered.
    """
    listing = _listing(list_, cohort, licence, only)
    settings = Settings(Timeouts(open_s=timeout, leg_s=2 * timeout), install_s=install_timeout, keep=keep)
    names = [spec.name for spec in listing.servers]
    with progress(names, quiet=as_json) as told, schedule(scheduler, jobs, address) as workers:
        summary = carry_out(listing, out, workers, settings, told, jobs=jobs, every_s=every, retry_failed=retry_failed)
    made = write(_of_list(out, listing), out / "dataset")
    if as_json:
        typer.echo(msgspec.json.encode({"run": summary, "dataset": made}).decode())
    else:
        _tell(summary, out)
        output().line(f"{out / 'dataset'}: {sum(made.cohorts.values())} servers, {made.tools} tools, {made.findings} findings")
    return 3 if listing.servers and not summary.answered and not summary.kept and not summary.recordings else 0


@app.command()
def dataset(
    runs: _Run,
    out: _Out = Path("dataset"),
    cohort: Annotated[list[str] | None, typer.Option("--cohort", help="Only this cohort; may be repeated.")] = None,
    as_json: Json = False,
) -> None:
    """Make a dataset (Parquet and JSON Lines) from the records of runs, with the audits of this earnest.

    \b
    earnest census dataset july --out july/dataset
    earnest census dataset july old --out both            cohorts stay apart inside
    """
    wanted = set(cohort or ())
    for folder in runs:
        if not (folder / "records").is_dir():
            raise EarnestError("E1904", f"{folder} is no folder of a run", "`earnest census run LIST --out DIR` makes one.")
    found = (one for folder in runs for one in keeping.records(folder / "records") if not wanted or one.cohort in wanted)
    made = write(found, out)
    if as_json:
        typer.echo(msgspec.json.encode(made).decode())
    else:
        output().line(f"{out}: {sum(made.cohorts.values())} servers, {made.tools} tools, {made.findings} findings")


@app.command("figures")
def show_figures(
    folder: _Dataset,
    names: Annotated[list[str] | None, typer.Option("--query", metavar="NAME", help="Only this one; may be repeated.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="Name the queries and stop.")] = False,
    sql: Annotated[bool, typer.Option("--sql", help="Print the SQL and stop.")] = False,
    earlier: Annotated[Path | None, typer.Option("--earlier", help="An older dataset, for `drift`.")] = None,
    as_json: Json = False,
) -> None:
    """Figures of a dataset, by the queries of the repository; cohort by cohort.

    \b
    earnest census figures july                           all of them
    earnest census figures july --query totals --json
    earnest census figures july --list
    """
    chosen = [query(name) for name in names] if names else list(queries().values())
    if listed or sql:
        for one in chosen:
            output().line(one.sql if sql else f"{one.name.ljust(16)}{one.title}")
        return
    if names and earlier is None and any(one.needs_earlier for one in chosen):
        raise EarnestError("E1018", "drift compares two datasets", "Say which is the older: --earlier DATASET.")
    answers: dict[str, Any] = {}
    with opened(_dataset(folder), _dataset(earlier) if earlier is not None else None) as connection:
        for one in chosen:
            if one.needs_earlier and earlier is None:
                continue
            found = figures(connection, one)
            answers[one.name] = found.dicts()
            if not as_json:
                output().line(f"{one.title}", "strong")
                output().table(found.columns, [[_cell(value) for value in row] for row in found.rows])
                output().line()
    if as_json:
        typer.echo(msgspec.json.encode(answers).decode())


@app.command()
def report(
    folder: _Dataset,
    out: _Out = Path("report"),
    earlier: Annotated[Path | None, typer.Option("--earlier", metavar="DATASET", help="An older dataset: shows drift.")] = None,
    title: Annotated[str, typer.Option("--title", help="Of the site.")] = "MCP tool annotations: a census",
) -> None:
    """Make a static site of a dataset: pictures with their tables, servers and tools to search, a page for each server.

    \b
    earnest census report july --out site                 open site/index.html, or put the folder on any web server
    earnest census report july --out site --earlier may
    """
    from earnest.census.report.site import build

    pages = build(_dataset(folder), out, earlier=_dataset(earlier) if earlier is not None else None, title=title)
    output().line(f"{out / 'index.html'}: {pages} pages")


@app.command()
def diff(
    earlier: Annotated[Path, typer.Argument(metavar="A", help="The older dataset, or the folder of its run.")],
    later: Annotated[Path, typer.Argument(metavar="B", help="The newer one.")],
    every: Annotated[bool, typer.Option("--every", help="Every change in full.")] = False,
    as_json: Json = False,
) -> int:
    """What changed between two datasets: servers and tools that came or went, and changes by class.

    \b
    earnest census diff may july
    earnest census diff may july --json

    A change is neutral, tightening or loosening as for pins (docs/concepts.md). Exit code 0 if nothing but neutral changes and
    removals was found, 1 otherwise.
    """
    found = compare(_dataset(earlier), _dataset(later))
    if as_json:
        typer.echo(msgspec.json.encode(found).decode())
    else:
        for one in found:
            _draw(one, every)
    return 1 if any(one.worst for one in found) else 0


def _listing(word: str, cohort: str, licence: str, only: list[str] | None) -> Listing:
    path = Path(word)
    if path.is_dir() or path.suffix in (".jsonl", ".ndjson") or cohort:
        if not path.exists():
            raise EarnestError("E1019", f"{word}: there is no such file")
        if not cohort:
            raise EarnestError("E1018", f"{word} is a recording: say which cohort it belongs to", "Add --cohort NAME.")
        check_cohort(cohort, "--cohort")
        return Listing(recordings=(Recording(path=str(path), cohort=cohort, licence=licence),), name=path.stem)
    listing = load(path)
    if not only:
        return listing
    servers = tuple(spec for spec in listing.servers if spec.name in only)
    missing = set(only) - {spec.name for spec in servers}
    if missing:
        raise EarnestError("E1018", f"{word} names no server {', '.join(sorted(missing))}")
    return msgspec.structs.replace(listing, servers=servers, recordings=())


def _of_list(out: Path, listing: Listing) -> list[Record]:
    """The records of what the list names: a server that was taken off it leaves the dataset, not the disk."""
    wanted = {(spec.cohort, spec.name) for spec in listing.servers}
    cohorts = {recording.cohort for recording in listing.recordings}
    found = keeping.records(out / "records")
    return [one for one in found if (one.cohort, one.name) in wanted or (one.source == "file" and one.cohort in cohorts)]


def _dataset(folder: Path) -> Path:
    inner = folder / "dataset"
    return inner if inner.is_dir() and not (folder / "dataset.json").exists() else folder


def _tell(summary: Summary, out: Path) -> None:
    kept = f", {summary.kept} were there already" if summary.kept else ""
    read = f", {summary.recordings} recordings read" if summary.recordings else ""
    told = f"{summary.answered} of {summary.asked} servers answered in {summary.seconds:.0f} s{kept}{read}"
    output().line(f"{told}; records in {out / 'records'}")


def _draw(drift: Drift, every: bool) -> None:
    out = output()
    counts = drift.counts()
    out.line(f"{drift.earlier} ({drift.earlier_date}) -> {drift.later} ({drift.later_date})", "strong")
    if drift.earlier != drift.later:
        out.prose("The two cohorts have different names; they are compared because each dataset has only the one.", "dim")
    changed = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts[kind])
    out.line(f"{drift.servers} servers on both sides; tools: {drift.unchanged} unchanged{', ' + changed if changed else ''}")
    for word, names in (("new servers", drift.appeared), ("gone", drift.gone), ("no answer on one side", drift.silent)):
        if names:
            out.prose(f"{word}: {', '.join(map(visible, names))}", under="  ")
    for kind in KINDS:
        for change in drift.changes:
            if change.kind != kind:
                continue
            tone: Any = "bad" if kind in ("added", "loosening", "refused", "unreadable") else "dim"
            hints = f"  [{'; '.join(change.hints)}]" if change.hints else ""
            out.line(f"{kind.ljust(11)}{visible(f'{change.server}/{change.tool}{hints}')}", tone)
            for line in change.lines if every else ():
                out.line(f"    {visible(line)}")


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)
