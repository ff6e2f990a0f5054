"""The parser of conditions, worked out beforehand: `scripts/grammar-table` writes `grammar.table`.

To work it out takes lark a seventh of a second, a third of a daemon's whole start; to read what it worked out takes a
fortieth of that. The table is of one version of lark and of one grammar, which its first bytes tell; with others installed it
is not used, and the parser is worked out as ever. A test holds it to what is installed.
"""

from __future__ import annotations

import hashlib
import marshal
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

TABLE: Final = Path(__file__).with_name("grammar.table")
_MARK: Final = 16


def mark(grammar: str) -> bytes:
    """Of what version and grammar a table is."""
    import lark

    return hashlib.sha256(f"{lark.__version__}\n{grammar}".encode()).digest()[:_MARK]


def load(grammar: str, callbacks: Mapping[str, Any]) -> Any:
    """The parser from the table; None where that is of something else."""
    from lark import Lark

    try:
        raw = TABLE.read_bytes()
        if raw[:_MARK] != mark(grammar):
            return None
        return Lark.__new__(Lark)._load(marshal.loads(zlib.decompress(raw[_MARK:])), lexer_callbacks=dict(callbacks))
    except (OSError, ValueError, zlib.error):
        return None


def dump(grammar: str, parser: Any) -> bytes:
    """What the table of a parser holds."""
    from lark.grammar import Rule
    from lark.lexer import TerminalDef

    data, memo = parser.memo_serialize([TerminalDef, Rule])
    data["options"] = {name: value for name, value in data["options"].items() if name != "lexer_callbacks"}
    return mark(grammar) + zlib.compress(marshal.dumps(_plain({"data": data, "memo": memo})), 9)


def _plain(value: Any) -> Any:
    """Dictionaries, lists and scalars alone: marshal takes no subclass of them."""
    if isinstance(value, dict):
        return {_plain(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(inner) for inner in value]
    if isinstance(value, str):
        return str(value)
    return value if value is None or isinstance(value, (bool, float)) else int(value)
