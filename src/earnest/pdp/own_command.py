"""Whether a call runs the part of earnest's command line that is a person's: it raises trust, labels, accepts and answers.

A command stands where a command can. In an argument that is a command line or a program (`COMMAND_ARGUMENTS`) earnest's name
with one of those words behind it is enough. In any other text it must begin the text or follow a separator or what starts
programs, and go on as the command line does (`labels set …`), because people also write about being earnest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from earnest.pdp.spellings import COMMAND_ARGUMENTS, JSON_DEPTH, QUOTING, inner_json

_COMMANDS: Final = "trust|labels|pins|approvals|conversation|init|policy|config|stop"
_EARNEST: Final = r"(?:(?<![\w.-])|(?<=-m))earnest(?:@[\w.]+|==[\w.]+)?"
_LINE: Final = re.compile(rf"{_EARNEST}(?:[\s,)\]]|\\[tn])+[^;&|\n]*?\b(?:{_COMMANDS})\b", re.IGNORECASE)
_KILLS: Final = re.compile(r"\b(?:pkill|killall|pgrep|pidof)\b[^;&|\n]*\bearnest\b", re.IGNORECASE)
_STARTERS: Final = r"sudo|doas|env|nohup|exec|time|command|uvx|npx|xargs|pipx[ \t]+run|uv[ \t]+run|(?:ba|z|da)?sh[ \t]+-\w*c"
_STARTS: Final = (
    r"(?:^|[;&|(){}\n]|\bpython[\d.]*[ \t]+(?:-\w+[ \t]+)*-m"
    rf"|\b(?:{_STARTERS})(?:[ \t]+-\S+(?:[ \t]+\w+)?)*|\b\w+=\S*)[ \t]*"
)
_END: Final = r"[ \t]*(?:$|[;&|)\n])"
_VERBS: Final = (
    rf"(?:trust[ \t]+\S+(?:[ \t]+--|{_END})|labels[ \t]+(?:set|unset)\b|pins[ \t]+(?:accept|noise)\b"
    rf"|approvals[ \t]+(?:yes|no)\b|approvals{_END}|conversation[ \t]+(?:end|endorse)\b|config[ \t]+approve\b"
    rf"|init(?:[ \t]*--|{_END})|stop(?:[ \t]*--|{_END}))"
)
_SPOKEN: Final = re.compile(rf"{_STARTS}(?:[\w./~-]*/)?{_EARNEST}\s+(?:-\S+\s+(?:[^-\s]\S*\s+)??)*{_VERBS}", re.IGNORECASE)
_MODULES: Final = re.compile(r"(?<![\w.-])earnest(?:\.(?:cli|gateway|store|pdp|shim|__main__)\b|/shim/boot|/__main__)")
_WORD: Final = re.compile(r"(?:.*/)?(?:-m)?earnest(?:@.*|==.*)?", re.IGNORECASE | re.DOTALL)
_WORDS: Final = frozenset(_COMMANDS.split("|"))


def runs_own_command(text: str, argument: str) -> bool:
    """Whether a text runs it. `argument`: the nearest name the text stands under."""
    if "e" not in text and "E" not in text:
        return False
    # A shell goes on behind a backslash at the end of a line, and takes `ear''nest` for `earnest`.
    plain = text.replace("\\\r\n", " ").replace("\\\n", " ").translate(QUOTING)
    if "earnest" not in plain.casefold():
        return False
    if argument.casefold() in COMMAND_ARGUMENTS:
        return _LINE.search(plain) is not None or _KILLS.search(plain) is not None
    return _SPOKEN.search(plain) is not None


def reaches_own_modules(text: str) -> bool:
    """Whether a program names earnest's inner modules: with them it could do what the command line does."""
    return _MODULES.search(text) is not None


def argv_runs_own_command(value: object) -> bool:
    """Whether a list of words runs it (`["earnest", "trust", …]`), or words in arguments beside each other (program and args).

    Looked for in every object and list, JSON inside strings included. Beside each other in an object counts where one of the
    names is a command's or one of the values a list.
    """
    stack: list[tuple[object, int]] = [(value, 0)]
    while stack:
        item, depth = stack.pop()
        inner: Sequence[object] = list(item.values()) if isinstance(item, dict) else item if isinstance(item, list) else ()
        groups: list[list[str]] = []
        for one in inner:
            if isinstance(one, str):
                groups.append([one.strip().casefold()])
                inside = inner_json(one) if depth < JSON_DEPTH else None
                if inside is not None:
                    stack.append((inside, depth + 1))
            elif isinstance(one, (dict, list)):
                stack.append((one, depth))
                if isinstance(one, list):
                    groups.append([w.strip().casefold() for w in one if isinstance(w, str)])
        named = [index for index, words in enumerate(groups) if any("earnest" in w and _WORD.fullmatch(w) for w in words)]
        if not named:
            continue
        if isinstance(item, list):
            behind = groups[named[0] + 1 :]
        elif any(len(words) != 1 for words in groups) or not COMMAND_ARGUMENTS.isdisjoint(map(str.casefold, item)):  # type: ignore[call-overload]
            behind = [words for index, words in enumerate(groups) if index != named[0]]
        else:
            continue
        if any(w.partition(" ")[0] in _WORDS for words in behind for w in words):
            return True
    return False
