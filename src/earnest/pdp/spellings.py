"""The ways in which an argument can spell a path or a command: what the floor looks through before it compares.

A server takes its arguments apart in ways of its own: it decodes percent escapes, expands `~` and `$HOME`, reads `file:` URLs,
splits a command line, parses JSON that came as text. So each string is looked at in all of these readings; a reading too many
costs a refusal of something odd, one too few a hole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import unquote, urlsplit

MAX_PATH: Final = 4096
MAX_WORDS: Final = 400
"""Words of one command line that are looked at as paths."""
_UNQUOTED: Final = 3
"""Rounds of percent escapes."""
_JSON_DEPTH: Final = 4
"""Levels of JSON inside a string inside JSON."""

_ELSEWHERE: Final = re.compile(r"(?:https?|wss?|ftp|ssh|git)://", re.IGNORECASE)
_FILE_URL: Final = re.compile(r"[a-z+.-]*file:", re.IGNORECASE)
_SPLIT: Final = re.compile(r"[\s'\"`;|&<>()=,{}\[\]]+")
_QUOTING: Final = str.maketrans("", "", "'\"\\`")

COMMAND_ARGUMENTS: Final = frozenset(
    ("command", "commands", "cmd", "cmdline", "command_line", "script", "code", "shell", "bash", "sh", "args", "argv",
     "program", "exec", "execute", "expression", "source", "stdin")
)  # fmt: skip
"""Names of arguments whose text is taken apart as a command line or a program."""

_COMMANDS: Final = "trust|labels|pins|approvals|conversation|init|policy|config|stop|serve|run"
_EARNEST: Final = r"(?:(?<![\w.-])|(?<=-m))earnest(?:@[\w.]+|==[\w.]+)?"
_OWN_COMMAND: Final = re.compile(rf"{_EARNEST}(?:[\s,)\]]|\\[tn])+[^;&|\n]*?\b(?:{_COMMANDS})\b", re.IGNORECASE)
_OWN_MODULES: Final = re.compile(r"(?<![\w.-])earnest(?:\.(?:cli|gateway|store|pdp|shim|__main__)\b|/shim/boot|/__main__)")
_OWN_WORD: Final = re.compile(r"(?:.*/)?(?:-m)?earnest(?:@.*|==.*)?", re.IGNORECASE | re.DOTALL)


def strings(value: object) -> Iterator[tuple[str, str, str]]:
    """All strings in a JSON value, keys too: the top-level argument they stand in, the nearest name, the text.

    JSON inside a string is taken apart as well. No recursion: the depth is the client's to choose.
    """
    stack: list[tuple[str, str, object, int]] = [("", "", value, 0)]
    while stack:
        top, near, item, depth = stack.pop()
        if isinstance(item, str):
            yield top, near, item
            inside = _json(item) if depth < _JSON_DEPTH else None
            if inside is not None:
                stack.append((top, near, inside, depth + 1))
        elif isinstance(item, dict):
            for key, inner in item.items():
                if top:
                    yield top, near, key
                stack.append((top or key, key, inner, depth))
        elif isinstance(item, list):
            stack.extend((top, near, inner, depth) for inner in item)


def _json(text: str) -> object | None:
    """What a string holds as JSON, if that is an object, a list or a string."""
    if text.lstrip()[:1] not in ("{", "[", '"'):
        return None
    try:
        return json.loads(text)  # type: ignore[no-any-return]
    except (ValueError, RecursionError):
        return None


def paths(text: str, home: str) -> list[str]:
    """The paths a string may stand for, relative ones as they are; none for the address of something elsewhere."""
    text = text.strip()
    if not text or len(text) > MAX_PATH or "\0" in text or "\n" in text or _ELSEWHERE.match(text):
        return []
    found = [text]
    for _ in range(_UNQUOTED):
        if "%" not in found[-1] or (plain := unquote(found[-1])) == found[-1]:
            break
        found.append(plain)
    return [path for reading in found if "\0" not in (path := _expanded(reading, home))]


def _expanded(text: str, home: str) -> str:
    if _FILE_URL.match(text):
        try:
            text = unquote(urlsplit(text[text.casefold().index("file:") :]).path)
        except ValueError:
            return text
    for start in ("~" + home.rpartition("/")[2], "~", "$HOME", "${HOME}"):
        if text == start or text.startswith(start + "/"):
            return home + text[len(start) :]
    return text


def command_words(text: str) -> list[str]:
    """The words of a command line or a program that can be paths."""
    if len(text) > MAX_PATH * 4:
        return []
    text = text.replace("\\\n", "")
    plain = text.translate(_QUOTING)
    return list(dict.fromkeys([*_SPLIT.split(text), *_SPLIT.split(plain)]))[:MAX_WORDS]


def squeezed(text: str) -> str:
    """A text without what a path may hold and still mean the same: doubled slashes, `/./`."""
    while "/./" in text:
        text = text.replace("/./", "/")
    return re.sub(r"/{2,}", "/", text) if "//" in text else text


def runs_own_command(text: str) -> bool:
    """Whether a text runs the part of earnest's command line that is a person's."""
    # A shell goes on behind a backslash at the end of a line, and takes `ear''nest` for `earnest`.
    plain = text.replace("\\\r\n", " ").replace("\\\n", " ").translate(_QUOTING)
    return "earnest" in plain.casefold() and _OWN_COMMAND.search(plain) is not None


def reaches_own_modules(text: str) -> bool:
    """Whether a program names earnest's inner modules: with them it could do what the command line does."""
    return _OWN_MODULES.search(text) is not None


def argv_runs_own_command(value: object) -> bool:
    """Whether lists of words run it (`["earnest", "trust", …]`), or words in arguments beside each other (program and args).

    Looked for in every object and list, JSON inside strings included.
    """
    commands = _COMMANDS.split("|")
    stack: list[tuple[object, int]] = [(value, 0)]
    while stack:
        item, depth = stack.pop()
        inner: Sequence[object] = list(item.values()) if isinstance(item, dict) else item if isinstance(item, list) else ()
        words: list[str] = []
        for one in inner:
            if isinstance(one, str):
                words.append(one)
                inside = _json(one) if depth < _JSON_DEPTH else None
                if inside is not None:
                    stack.append((inside, depth + 1))
            elif isinstance(one, (dict, list)):
                stack.append((one, depth))
                if isinstance(one, list):
                    words.extend(w for w in one if isinstance(w, str))
        folded = [w.strip().casefold() for w in words]
        if any("earnest" in w and _OWN_WORD.fullmatch(w) for w in folded) and any(w in commands for w in folded):
            return True
    return False
