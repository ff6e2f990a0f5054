"""How a census goes on: a bar on a terminal, a line for each server elsewhere. On standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from earnest.census.record import Record, tools_of
from earnest.cli.style import Terminal
from earnest.core.visible import visible


class Lines:
    """A line for each server that is done."""

    def __init__(self, total: int, quiet: bool) -> None:
        self._out = Terminal(sys.stderr, None, os.environ)
        self._total, self._done, self._quiet = total, 0, quiet

    def begins(self, name: str) -> None:
        """Not told: the end is."""

    def done(self, record: Record) -> None:
        """How it went."""
        self._done += 1
        if not self._quiet:
            told = visible(outcome(record))  # a failure has the server's own words
            self._out.line(f"[{self._done}/{self._total}] {told}", None if record.failure is None else "warn")

    def kept(self, count: int) -> None:
        """So many need not be asked."""
        self._done += count
        if count and not self._quiet:
            self._out.line(f"[{self._done}/{self._total}] {count} have a record already")


class Bar:
    """A bar, with what is under way and a line for each that is done."""

    def __init__(self, drawn: Any, task: Any) -> None:
        self._drawn, self._task = drawn, task
        self._under_way: list[str] = []

    def begins(self, name: str) -> None:
        """It is shown beside the bar."""
        self._under_way.append(name)
        self._show()

    def done(self, record: Record) -> None:
        """A line above the bar."""
        from rich.text import Text

        if record.name in self._under_way:
            self._under_way.remove(record.name)
        self._drawn.console.print(Text(visible(outcome(record)), style="" if record.failure is None else "yellow"))
        self._drawn.advance(self._task)
        self._show()

    def kept(self, count: int) -> None:
        """The bar begins further on."""
        self._drawn.advance(self._task, count)

    def _show(self) -> None:
        self._drawn.update(self._task, description=visible(", ".join(self._under_way)) or "…")


def outcome(record: Record) -> str:
    """One line about a record."""
    if record.failure is not None:
        return f"{record.name}: no answer ({record.failure.step}: {record.failure.code} {record.failure.message[:160]})"
    main = record.main
    eras = {leg.modern for leg in record.legs if leg.failure is None}
    spoken = "both eras" if len(eras) == 2 else "2026-07-28 only" if True in eras else main.version if main else ""
    return f"{record.name}: {len(tools_of(main)) if main else 0} tools, {spoken}"


@contextmanager
def progress(names: Sequence[str], *, quiet: bool) -> Iterator[Lines | Bar]:
    """What to tell of a run over these servers."""
    terminal = Terminal(sys.stderr, None, os.environ)
    if quiet or not terminal.colour or not names:
        yield Lines(len(names), quiet)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=Console(stderr=True)) as drawn:
        yield Bar(drawn, drawn.add_task("…", total=len(names)))
