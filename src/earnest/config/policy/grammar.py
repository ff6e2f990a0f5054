"""CEL text to a tree, by the grammar that cel-python ships. Only its grammar is used, and only when a
condition is read."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import Any, Final

from earnest.config.policy import grammar_table
from earnest.config.policy.findings import Wrong

LONGEST: Final = 8192
"""How many characters a condition may have."""


@cache
def _parser() -> Any:
    """The LALR parser, made once for the process."""
    return grammar_table.load(grammar_text(), _CALLBACKS) or worked_out()


def grammar_text() -> str:
    """The grammar of cel-python. Raises `Wrong` E1103 where that is not installed."""
    # `find_spec` of the package finds its folder without running it: importing cel-python takes longer than
    # all else here.
    spec = importlib.util.find_spec("celpy")
    if spec is None or spec.origin is None:
        raise Wrong("E1103", "cel-python is not installed", 0, "install earnest with its dependencies")
    return (Path(spec.origin).parent / "cel.lark").read_text()


def worked_out() -> Any:
    """The parser from its grammar, which takes a tenth of a second."""
    import re

    from lark import Lark

    return Lark(
        grammar_text(),
        parser="lalr",
        start="expr",
        lexer_callbacks=dict(_CALLBACKS),
        propagate_positions=True,
        maybe_placeholders=False,
        priority="invert",
        g_regex_flags=re.M,
    )


def _literal(token: Any) -> Any:
    return type(token).new_borrow_pos("BOOL_LIT", token.value, token) if token.value in ("true", "false") else token


_CALLBACKS: Final = {"IDENT": _literal}


def parse(text: str) -> Any:
    """The lark tree of a condition. Raises `Wrong` E1103 with the offset of what is unexpected."""
    from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

    if len(text) > LONGEST:
        raise Wrong("E1103", f"a condition of more than {LONGEST} characters", 0, "split the rule in two")
    if not text.strip():
        raise Wrong("E1103", "an empty condition", 0, "leave out `when` for a rule that always matches")
    try:
        return _parser().parse(text)
    except UnexpectedToken as error:
        if error.token.type == "$END":
            raise Wrong("E1103", "the condition ends too early", len(text), _missing(text)) from None
        at = error.token.start_pos or 0
        raise Wrong("E1103", f"`{error.token}` is not expected here", at, _hint(text, at)) from None
    except UnexpectedCharacters as error:
        at = error.pos_in_stream or 0
        raise Wrong("E1103", f"`{text[at]}` is not expected here", at, _hint(text, at)) from None
    except UnexpectedInput as error:  # pragma: no cover - lark has no other today
        raise Wrong("E1103", "not a condition", error.pos_in_stream or 0) from None


_ALIKE: Final = {
    "=": "write `==` to compare",
    "&": "write `&&` for and",
    "|": "write `||` for or",
    "and": "write `&&` for and",
    "or": "write `||` for or",
    "not": "write `!` for not",
    "is": "write `==` to compare",
}


def _hint(text: str, at: int) -> str:
    rest = text[at:]
    word = rest.split(None, 1)[0] if rest.split() else ""
    before = text[:at].split()
    if before and before[-1] == "not":
        return _ALIKE["not"]
    return _ALIKE.get(word) or _ALIKE.get(rest[:1]) or _missing(text)


def _missing(text: str) -> str:
    for left, right in ("()", "[]"):
        if text.count(left) > text.count(right):
            return f"a `{right}` is missing"
    if text.count("'") % 2 or text.count('"') % 2:
        return "a quote is missing"
    return "conditions are CEL: names, `==`, `&&`, `||`, `!`, `in`, `( )`"
