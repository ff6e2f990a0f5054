"""Whether a call runs the part of earnest's command line that is a person's: it raises trust, labels, accepts and answers.

A command stands where a command can. In an argument that is a command line or a program (`is_command`) earnest's name
with one of those words behind it is enough. In any other text it must begin the text or follow a separator or what starts
programs, and go on as the command line does (`labels set …`), because people also write about being earnest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from earnest.pdp.spellings import JSON_DEPTH, QUOTING, inner_json, is_command

_COMMANDS: Final = "trust|labels|pins|approvals|conversation|init|policy|config|stop|hook"
_EARNEST: Final = r"(?:(?<![\w.-])|(?<=-m))earnest(?:@[\w.]+|==[\w.]+)?"
_LINE: Final = re.compile(rf"{_EARNEST}(?:[\s,)\]]|\\[tn])+[^;&|\n]*?(?<![\w./-])(?:{_COMMANDS})(?![\w./-])", re.IGNORECASE)
_HIDDEN: Final = re.compile(
    rf"\bxargs\b[^;&|\n]*{_EARNEST}|{_EARNEST}[ \t]+[$]"
    rf"|[\w-]=[^\s;&|]{{0,200}}{_EARNEST}(?=[\s;&|]).*(?<![\w./-])(?:{_COMMANDS})(?![\w./-])",
    re.IGNORECASE | re.DOTALL,
)
"""Its words from elsewhere: `… | xargs earnest`, `earnest $X`, `E=earnest; $E trust`."""
_KILLS: Final = re.compile(r"\b(?:pkill|killall|pgrep|pidof)\b[^;&|\n]*\bearnest\b", re.IGNORECASE)
_STARTERS: Final = r"sudo|doas|env|nohup|exec|time|command|uvx|npx|xargs|pipx[ \t]+run|uv[ \t]+run|(?:ba|z|da)?sh[ \t]+-\w*c"
_STARTS: Final = (
    r"(?:^|[;&|(){}\n]|\bpython[\d.]*[ \t]+(?:-\w+[ \t]+)*-m"
    rf"|\b(?:{_STARTERS})(?:[ \t]+-\S+(?:[ \t]+\w+)?)*[ \t]|\b\w+=\S{{0,100}}[ \t])[ \t]*"
)
_END: Final = r"[ \t]*(?:$|[;&|)\n])"
_VERBS: Final = (
    rf"(?:trust[ \t]+\S+(?:[ \t]+--|{_END})|labels[ \t]+(?:set|unset)\b|pins[ \t]+(?:accept|noise)\b"
    rf"|approvals[ \t]+(?:yes|no)\b|approvals{_END}|conversation[ \t]+(?:end|endorse)\b|config[ \t]+approve\b"
    r"|hook[ \t]+(?:install|claude-code|codex|gemini-cli|cursor)\b"
    rf"|init(?:[ \t]*--|{_END})|stop(?:[ \t]*--|{_END}))"
)
_SPOKEN: Final = re.compile(
    rf"{_STARTS}(?:[\w./~-]{{0,200}}/)?{_EARNEST}\s+(?:-\S+\s+(?:[^-\s]\S*\s+)??)*{_VERBS}", re.IGNORECASE
)
_MODULES: Final = re.compile(
    r"(?<![\w.-])earnest(?:\.(?:cli|gateway|store|pdp|shim|hook|daemon|__main__)\b|/shim/boot|/__main__)"
    r"|\bfrom\s+earnest\s+import\s+[(\w, ]{0,200}\b(?:cli|gateway|store|pdp|shim|__main__)\b|\brun_module\(\W*earnest\b"
)
_NAME: Final = re.compile("earnest", re.IGNORECASE)
_BEFORE: Final = 200
_BEHIND: Final = 600
MAX_MENTIONS: Final = 100
"""Mentions of earnest in one text; a text with more is judged as one that runs it."""
_WORD: Final = re.compile(r"(?:.*/)?(?:-m)?earnest(?:@.*|==.*)?", re.IGNORECASE | re.DOTALL)
_WORDS: Final = frozenset(_COMMANDS.split("|"))


def runs_own_command(text: str, argument: str) -> bool:
    """Whether a text runs it. `argument`: the nearest name the text stands under."""
    if "e" not in text and "E" not in text:
        return False
    # A shell goes on behind a backslash at the end of a line, and takes `ear''nest` for `earnest`.
    plain = text.replace("\\\r\n", " ").replace("\\\n", " ").translate(QUOTING)
    patterns = (_LINE, _HIDDEN, _KILLS) if is_command(argument) else (_SPOKEN,)
    # Looked for around each mention of the name, so that no text makes the search slow.
    for number, mention in enumerate(_NAME.finditer(plain)):
        around = plain[max(0, mention.start() - _BEFORE) : mention.end() + _BEHIND]
        if number >= MAX_MENTIONS or any(pattern.search(around) for pattern in patterns):
            return True
    return False


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
        elif any(len(words) != 1 for words in groups) or any(map(is_command, item)):  # type: ignore[call-overload]
            behind = [words for index, words in enumerate(groups) if index != named[0]]
        else:
            continue
        if any(w.partition(" ")[0] in _WORDS for words in behind for w in words):
            return True
    return False
