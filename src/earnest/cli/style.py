"""How commands draw on a terminal. Colours are off with NO_COLOR, `--no-color`, TERM=dumb and away from a
terminal.

Rich is loaded when the first coloured table or panel is drawn, and never elsewhere: most commands print
plain lines, and a pipe gets plain aligned text. Whatever comes from outside (names, commands, arguments)
goes through `core.visible` here, so no control sequence of a server's reaches a terminal. Nothing is ever
cut: long cells are folded.
"""

from __future__ import annotations

import difflib
import shutil
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, TextIO

from earnest.core.errors import EarnestError
from earnest.core.visible import visible

Tone = Literal["good", "warn", "bad", "dim", "strong"]

_PADDED: Final = 128
"""Columns of a table away from a terminal are at most this wide, but for the cells that are wider."""
_CODES: Final[dict[str, str]] = {"good": "32", "warn": "33", "bad": "31", "dim": "2", "strong": "1"}


def several(number: int, word: str) -> str:
    """`1 tool`, `2 tools`."""
    return f"{number} {word}{'' if number == 1 else 's'}"


class Terminal:
    """One output, and the input that belongs to it. `interactive`: a person can be asked."""

    def __init__(self, out: TextIO, inp: TextIO | None, env: Mapping[str, str], *, no_color: bool = False) -> None:
        self._out, self._in = out, inp
        tty = out.isatty()
        self.colour = tty and not no_color and not env.get("NO_COLOR") and env.get("TERM") != "dumb"
        self.interactive = tty and inp is not None and inp.isatty()

    def paint(self, text: str, tone: Tone | None = None) -> str:
        """Text from outside, made visible, in a tone where colours are on."""
        shown = visible(text)
        return f"\x1b[{_CODES[tone]}m{shown}\x1b[0m" if tone and self.colour else shown

    def line(self, text: str = "", tone: Tone | None = None) -> None:
        """Print one line of text; a line feed in it is shown as what it is, so that no name from outside makes lines of its
        own."""
        self._out.write(self.paint(text, tone) + "\n")
        self._out.flush()

    def lines(self, text: str, tone: Tone | None = None) -> None:
        """Print a text of several lines, all of them one's own, or whole content from outside."""
        for part in text.split("\n"):
            self.line(part, tone)

    def prose(self, text: str, tone: Tone | None = None, *, under: str = "") -> None:
        """Print sentences: on a terminal broken between words, with `under` before each further line; elsewhere one line.

        Not for what is to be pasted.
        """
        width = shutil.get_terminal_size().columns
        if not self._out.isatty() or len(text) < width:
            return self.line(text, tone)
        wrapped = textwrap.wrap(
            visible(text), max(width - 1, 30), subsequent_indent=under, break_long_words=False, break_on_hyphens=False
        )
        for part in wrapped:
            self.line(part, tone)

    def error(self, error: EarnestError) -> None:
        """Print what happened and what to do about it."""
        self.lines(f"{error.code}: {error.told}", "bad")
        if error.remedy:
            self.lines(f"  {error.remedy}")

    def table(self, headers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Print a table: folded to the width of a terminal, unfolded elsewhere, where a very long cell moves its own row alone.
        Where a terminal is so narrow that words would have to be broken, each row becomes a few lines."""
        cells = [[visible(cell) for cell in row] for row in rows]
        if self._out.isatty() and self._too_wide([headers, *cells]):
            self._records(headers, cells)
            return
        if self.colour:
            self._rich_table(headers, cells)
            return
        widths = [max(n for n in map(len, column) if n <= _PADDED) for column in zip(headers, *cells, strict=True)]
        for row in (headers, *cells):
            self._out.write("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() + "\n")
        self._out.flush()

    def _too_wide(self, rows: Sequence[Sequence[str]]) -> bool:
        columns = list(zip(*rows, strict=True))
        whole = [max(map(len, column)) for column in columns]
        words = [max(len(word) for cell in column for word in (cell.split() or [""])) for column in columns]
        needed = sum(words) + 3 * len(words) if self.colour else sum(whole) + 2 * len(whole) - 2
        return needed > shutil.get_terminal_size().columns

    def _records(self, headers: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
        for first, *others in cells:
            self.line(first, "strong")
            pairs = [f"{header}: {cell}" if header else cell for header, cell in zip(headers[1:], others, strict=True) if cell]
            self.prose(f"  {' · '.join(pairs)}", under="  ")

    def _rich_table(self, headers: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
        for header in headers:
            table.add_column(Text(header), overflow="fold")
        for row in cells:
            table.add_row(*(Text(cell) for cell in row))
        Console(file=self._out, highlight=False).print(table)

    def diff(self, path: str, before: str, after: str, *, becomes: str = "with earnest") -> None:
        """Print a unified diff; `becomes` says in a word or two what the file will be."""
        lines = difflib.unified_diff(
            before.expandtabs(4).splitlines(),
            after.expandtabs(4).splitlines(),
            path,
            f"{path} ({becomes})",
            n=2,
            lineterm="",
        )
        for text in lines:
            tone: Tone | None = None
            if text.startswith(("+++", "---")):
                tone = "strong"
            elif text.startswith("@@"):
                tone = "dim"
            elif text.startswith(("+", "-")):
                tone = "good" if text[0] == "+" else "bad"
            self.line(text, tone)

    def ask(self, question: str, choices: Mapping[str, str], default: str) -> str:
        """Ask until one of `choices` (a letter, and the word it stands for) is typed; an empty line is the
        default, and so is the end of input. The answer is the letter."""
        offered = "/".join(letter.upper() if letter == default else letter for letter in choices)
        while True:
            self._out.write(f"{visible(question)} [{offered}] ")
            self._out.flush()
            typed = self._in.readline() if self._in is not None else ""
            answer = typed.strip().lower()
            if not typed or not answer:
                return default
            for letter, word in choices.items():
                if answer in (letter, word):
                    return letter
            self.line("  " + ", ".join(f"{letter} = {word}" for letter, word in choices.items()))
