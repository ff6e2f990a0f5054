"""The ways in which an argument can spell a path or a command: what the floor looks through before it compares.

A server takes its arguments apart in ways of its own: it decodes percent escapes, expands `~` and `$HOME`, reads `file:` URLs,
splits a command line, parses JSON that came as text. So each string is looked at in all of these readings; a reading too many
costs a refusal of something odd, one too few a hole.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import unquote, urlsplit

MAX_PATH: Final = 4096
MAX_WORDS: Final = 400
"""Words of one command line that are looked at as paths."""
_UNQUOTED: Final = 3
"""Rounds of percent escapes."""
JSON_DEPTH: Final = 4
"""Levels of JSON inside a string inside JSON."""

_ELSEWHERE: Final = re.compile(r"(?:https?|wss?|ftp|ssh|git)://", re.IGNORECASE)
_FILE_URL: Final = re.compile(r"[a-z+.-]*file:", re.IGNORECASE)
_USER: Final = re.compile(r"[A-Za-z_][\w.-]*|[+-]")
_VARIABLE: Final = re.compile(r"\$(?:(\w+)|\{(\w+)(?::?[-=?+][^}]*)?\})")
_INVISIBLE: Final = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
_NONE: Final[Mapping[str, str]] = {}
_SPLIT: Final = re.compile(r"[\s'\"`;|&<>()=,{}\[\]]+")
_SHELL_SPLIT: Final = re.compile(r"[\s;|&<>()=,]+")
QUOTING: Final = str.maketrans("", "", "'\"\\`")

COMMAND_ARGUMENTS: Final = frozenset(
    ("command", "commands", "cmd", "cmds", "cmdline", "commandline", "shellcommand", "bashcommand", "script", "code",
     "pythoncode", "python", "javascript", "snippet", "shell", "bash", "sh", "terminal", "args", "argv", "arguments",
     "program", "exec", "execute", "expression", "source", "stdin", "sql", "statement")
)  # fmt: skip
"""Names of arguments whose text is taken apart as a command line or a program, in small letters and without joints."""


def strings(value: object) -> Iterator[tuple[str, str, str]]:
    """All strings in a JSON value, keys too: the top-level argument they stand in, the nearest name, the text.

    JSON inside a string is taken apart as well. No recursion: the depth is the client's to choose.
    """
    stack: list[tuple[str, str, object, int]] = [("", "", value, 0)]
    while stack:
        top, near, item, depth = stack.pop()
        if isinstance(item, str):
            yield top, near, item
            inside = inner_json(item) if depth < JSON_DEPTH else None
            if inside is not None:
                stack.append((top, near, inside, depth + 1))
        elif isinstance(item, dict):
            for key, inner in item.items():
                # A name at the top is a parameter's, unless it looks like anything else.
                if top or not key.isidentifier():
                    yield top, near, key
                stack.append((top or key, key, inner, depth))
        elif isinstance(item, list):
            stack.extend((top, near, inner, depth) for inner in item)


def inner_json(text: str) -> object | None:
    """What a string holds as JSON, if that is an object, a list or a string."""
    if text.lstrip()[:1] not in ("{", "[", '"'):
        return None
    try:
        return json.loads(text)  # type: ignore[no-any-return]
    except (ValueError, RecursionError):
        return None


def paths(text: str, home: str, variables: Mapping[str, str] = _NONE) -> list[str]:
    """The paths a string may stand for, relative ones as they are; none for the address of something elsewhere.

    `variables`: what environment variables stand for, by name in capitals.
    """
    text = text.strip()
    if "/.." in text and (len(text) > MAX_PATH or "\n" in text or _ELSEWHERE.match(text)):
        # Who resolves a path by its letters alone does not mind a part that could not exist.
        text = os.path.normpath(text)
    elif len(text) > MAX_PATH and "/./" in text:
        text = os.path.normpath(text)
    if not text or len(text) > MAX_PATH or "\n" in text or _ELSEWHERE.match(text):
        return []
    found = [text.partition("\0")[0]] if "\0" in text else [text]
    if "\\" in text:
        found.append(text.replace("\\", "/"))
    if not text.isascii():
        found.append(_INVISIBLE.sub("", unicodedata.normalize("NFKC", text)))
    for _ in range(_UNQUOTED):
        if "%" not in found[-1] or (plain := unquote(found[-1])) == found[-1]:
            break
        found.append(plain)
    return [path for reading in found if "\0" not in (path := _expanded(reading, home, variables))]


def _expanded(text: str, home: str, variables: Mapping[str, str]) -> str:
    if _FILE_URL.match(text):
        try:
            text = unquote(urlsplit(text[text.casefold().index("file:") :]).path)
        except ValueError:
            return text
    if text[:1] == "~":
        user, slash, rest = text[1:].partition("/")
        # Whose home another name stands for is not known here; the person's own may have two names.
        if not user or user == home.rpartition("/")[2] or (slash and _USER.fullmatch(user)):
            return home + slash + rest
    elif text[:1] == "$" or "/$" in text:
        return _VARIABLE.sub(lambda found: variables.get(found[1] or found[2], found[0]), text).replace("//", "/")
    return text


def is_command(argument: str) -> bool:
    """Whether an argument of this name holds a command line or a program."""
    return argument.casefold().replace("_", "").replace("-", "") in COMMAND_ARGUMENTS


def command_words(text: str) -> list[str] | None:
    """The words of a command line or a program that can be paths; `None` if it has more than can be looked at."""
    if len(text) > MAX_PATH * 4:
        return None
    text = text.replace("\\\n", "")
    plain = text.translate(QUOTING)
    words = [*_SPLIT.split(text), *_SPLIT.split(plain)]
    if "[" in text or "{" in text:
        words += _SHELL_SPLIT.split(plain)  # with the brackets of patterns and variables
    found = list(dict.fromkeys(words))
    return found if len(found) <= MAX_WORDS else None


def squeezed(text: str) -> str:
    """A text without what a path may hold and still mean the same: doubled slashes, `/./`."""
    while "/./" in text:
        text = text.replace("/./", "/")
    return re.sub(r"/{2,}", "/", text) if "//" in text else text
