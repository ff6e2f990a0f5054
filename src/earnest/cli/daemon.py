"""Talking to the daemon, and to the person at the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from earnest.cli.style import Terminal
from earnest.config.settings import load
from earnest.core.errors import EarnestError
from earnest.gateway.process.control import Control, connect_control
from earnest.shim import paths


def connect(config: str = "") -> Control:
    """A connection to this configuration's daemon, started if none runs. Raises `EarnestError` with the daemon's own words."""
    control = connect_control(os.environ, config)
    assert control is not None  # None only where `start=False`
    return control


def current(config: str = "") -> Control:
    """The same, with a daemon that goes by what the configuration says now: where the file changed since it was read, it is
    read again, and that is told on standard error. Raises E10xx where it cannot be used any more."""
    path, named = paths.config_path(os.environ, config)
    settings = load(path, named, os.environ)
    control = connect(config)
    try:
        if control.call("status")["config_sha256"] != settings.sha256:
            control.call("reload")
            Terminal(sys.stderr, None, os.environ).line(f"{path} has changed; the daemon has read it again.", "dim")
    except BaseException:
        control.close()
        raise
    return control


def running(config: str = "") -> Control | None:
    """The same, but None where no daemon runs."""
    return connect_control(os.environ, config, start=False)


def instance(config: str = "") -> str:
    """The folder of this configuration's instance; it may not exist yet."""
    return paths.instance(os.environ, config)


def kept_in(config: str = "") -> str:
    """The same, for commands that only look at what is kept there. Raises E1001 for a `--config` that is not there and that
    left nothing either: it is misspelled."""
    folder = paths.instance(os.environ, config)
    if config and not os.path.exists(config) and not os.path.isdir(folder):
        raise EarnestError("E1001", f"{config}: no such file", "Correct the path.")
    return folder


def output() -> Terminal:
    """Standard output, with what stands on standard input for answers."""
    return Terminal(sys.stdout, sys.stdin, os.environ)


@contextmanager
def person(what: str) -> Iterator[Terminal]:
    """The terminal at which a person does `what` ("changing trust").

    Raises E1610 where there is none: a model can run this command too, and nothing it can run may raise trust, write a label,
    accept a pin or answer an ask. The daemon refuses in addition whatever descends from a client or a server.
    """
    opened: TextIO | None = None
    try:
        if not sys.stdin.isatty():
            raise _nobody(what)
        out = sys.stderr
        if not out.isatty():
            try:
                opened = out = open("/dev/tty", "w", encoding="utf-8")  # noqa: SIM115
            except OSError:
                raise _nobody(what) from None
        yield Terminal(out, sys.stdin, os.environ)
    finally:
        if opened is not None:
            opened.close()


def confirm(what: str, question: str, *shown: str) -> None:
    """Show lines and ask the person for a yes. Raises E1610 without a terminal, E1611 (exit code 1) for anything but yes."""
    with person(what) as terminal:
        for line in shown:
            terminal.line(line)
        if terminal.ask(question, {"y": "yes", "n": "no"}, "n") != "y":
            raise EarnestError("E1611", "nothing was changed", exit_code=1)


def _nobody(what: str) -> EarnestError:
    return EarnestError(
        "E1610",
        f"{what} takes a person at a terminal, and this is none: a model can run commands too",
        "Run it yourself in a terminal, with input and output not redirected.",
    )
