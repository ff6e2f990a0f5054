"""How a client would start one of its servers, as far as that can be known outside the client.

Theory. A client resolves its own references before it starts anything. Environment variables and the home folder are the same
here; what it asks a person for (`${input:…}`) or keeps to itself is not, and is never guessed: a command with such a reference
is not started from here, a variable with one is left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

import msgspec

from earnest.cli.init_plan import Surroundings
from earnest.config.clients.dialect import Dialect, Entry
from earnest.config.clients.registry import client

_NAME: Final = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|\$([A-Za-z_][A-Za-z0-9_]*)")


class Start(msgspec.Struct, frozen=True):
    """`unknown`: references of the command or folder that only the client can resolve; then the rest is no use. `without`:
    names of variables left out for the same reason."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    unknown: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


def start_of(entry: Entry, around: Surroundings) -> Start:
    """What the client would start: the entry's command, with its environment over the person's own, in its folder."""
    dialect = client(entry.file.client)
    folder = _folder(entry, around)
    unknown: list[str] = []

    def known(text: str, field: str) -> str:
        value = _resolved(dialect, text, around, entry.file.project)
        if value is None:
            unknown.append(f"{', '.join(dialect.variables(text))} in {field}")
        return value or ""

    first, *rest = entry.argv
    argv = (known(first, "command"), *(known(word, "args") for word in rest))
    cwd = known(entry.node.text("cwd"), "cwd") or folder
    env, without = dict(around.env), []
    table = entry.node.get("env")
    for member in table.members if table is not None else ():
        value = (
            _resolved(dialect, member.node.value, around, entry.file.project) if isinstance(member.node.value, str) else None
        )
        if value is None:
            without.append(member.key)
        else:
            env[member.key] = value
    return Start(argv, env, os.path.join(folder, cwd), tuple(dict.fromkeys(unknown)), tuple(without))


def _folder(entry: Entry, around: Surroundings) -> str:
    """Where the client starts it: in the project it belongs to, else at home."""
    if entry.file.project:
        return entry.file.project
    if entry.where[0] == "projects" and os.path.isdir(entry.where[1]):
        return entry.where[1]
    return around.home


def _resolved(dialect: Dialect, text: str, around: Surroundings, project: str) -> str | None:
    """The text as the client would read it, or None where it holds a reference that cannot be resolved here."""
    if not dialect.variable:
        return text
    failed = False

    def one(found: re.Match[str]) -> str:
        nonlocal failed
        word = found.group()
        fixed = {"${userHome}": around.home, "${pathSeparator}": "/", "${/}": "/"}
        if project:
            fixed |= {"${workspaceFolder}": project, "${workspaceFolderBasename}": os.path.basename(project)}
        if word in fixed:
            return fixed[word]
        named = _NAME.fullmatch(word)
        value = around.env.get(named[1] or named[3]) if named is not None else None
        if value is None and named is not None:
            value = named[2]
        failed = failed or value is None
        return value or ""

    resolved = re.sub(dialect.variable, one, text)
    return None if failed else resolved
