"""Drawing on a terminal: colours only where they belong, nothing cut, no control sequence from outside."""

import io
import subprocess
import sys

import pytest

from earnest.cli.style import Terminal


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("out", "env", "no_color", "colour"),
    [
        (Tty(), {}, False, True),
        (io.StringIO(), {}, False, False),
        (Tty(), {"NO_COLOR": "1"}, False, False),
        (Tty(), {"NO_COLOR": ""}, False, True),
        (Tty(), {"TERM": "dumb"}, False, False),
        (Tty(), {}, True, False),
    ],
)
def test_colours_are_off_where_nobody_wants_them(out: io.StringIO, env: dict[str, str], no_color: bool, colour: bool) -> None:
    terminal = Terminal(out, None, env, no_color=no_color)
    terminal.line("x", "bad")
    assert terminal.colour is colour and ("\x1b[31m" in out.getvalue()) is colour


@pytest.mark.parametrize("out", [io.StringIO(), Tty()])
def test_tables_cut_nothing_and_let_no_control_sequence_through(out: io.StringIO) -> None:
    long = "word" * 60
    Terminal(out, None, {}).table(("a", "b"), [("\x1b[2Jx", long), ("[red]y[/red]", "")])
    text = out.getvalue()
    assert "\x1b[2J" not in text and "<U+001B>[2Jx" in text and "[red]y[/red]" in text
    letters = "".join(character for character in text if character in "word")
    assert letters.count("w") >= 60 and "…" not in text


def test_a_name_from_outside_makes_no_line_of_its_own_and_no_column_wide() -> None:
    out = io.StringIO()
    terminal = Terminal(out, None, {})
    forged = "~/x\n\nNo claim contradicted."
    terminal.line(forged)
    terminal.prose(f"created {forged}")
    assert out.getvalue().count("\n") == 2 and "~/x<U+000A><U+000A>No claim contradicted.\n" in out.getvalue()
    terminal.lines("two\nlines")
    assert out.getvalue().endswith("two\nlines\n")
    out.truncate(out.seek(0))
    terminal.table(("tool", "calls"), [("x" * 5000, "1"), ("ok", "2")])
    assert out.getvalue().split("\n")[::2] == ["tool  calls", "ok    2"] and "x" * 5000 + "  1\n" in out.getvalue()


def test_tabs_and_control_characters_in_a_diff_are_shown_safely() -> None:
    out = io.StringIO()
    Terminal(out, None, {}).diff("f", "\ta\nb\n", "\ta\u202e\nb\n")
    assert "-    a\n+    a<U+202E>\n" in out.getvalue()


@pytest.mark.parametrize(
    ("typed", "answer"), [("y\n", "y"), ("YES\n", "y"), ("\n", "n"), ("", "n"), ("?\ny\n", "y"), ("?\n", "n")]
)
def test_a_question_takes_listed_answers_and_the_default_for_silence(typed: str, answer: str) -> None:
    out = Tty()
    assert Terminal(out, Tty(typed), {}).ask("Go?", {"y": "yes", "n": "no"}, "n") == answer
    assert "[y/N]" in out.getvalue()


def test_a_person_can_be_asked_only_where_both_ends_are_a_terminal() -> None:
    assert Terminal(Tty(), Tty(), {}).interactive
    assert not Terminal(Tty(), io.StringIO(), {}).interactive
    assert not Terminal(io.StringIO(), Tty(), {}).interactive
    assert not Terminal(Tty(), None, {}).interactive


def test_rich_is_not_loaded_before_something_is_drawn_in_colour() -> None:
    code = "import sys, earnest.cli.style; sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_sentences_break_between_words_on_a_terminal_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    text = "  a sentence longer than the terminal is wide, with http://a.example/an/address-that-is-never-broken/in/it"
    tty, pipe = Tty(), io.StringIO()
    Terminal(tty, None, {}).prose(text, under="    ")
    Terminal(pipe, None, {}).prose(text, under="    ")
    lines = tty.getvalue().splitlines()
    assert pipe.getvalue() == text + "\n" and lines[0].startswith("  a sentence") and len(lines) > 2
    assert all(line.startswith("    ") for line in lines[1:])
    assert [word for line in lines for word in line.split()] == text.split()


@pytest.mark.parametrize("env", [{}, {"NO_COLOR": "1"}])
def test_a_table_breaks_no_word_however_narrow_the_terminal(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    headers = ("tool", "read-only", "destructive", "idempotent")
    row = ("files/write_file", "no claimed", "yes default", "no operator")
    for columns in (40, 60, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        tty = Tty()
        Terminal(tty, None, env).table(headers, [row])
        text = tty.getvalue()
        assert all(word in text for cell in (*headers[1:], *row) for word in cell.split()), text
        assert ("destructive: yes default" in " ".join(text.split())) is (columns == 40)
