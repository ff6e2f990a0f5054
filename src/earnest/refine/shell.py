"""An argument that is a command line of a POSIX shell.

Theory. A shell line is a program, so it is read by a grammar, not by patterns: tree-sitter's grammar of Bash, which is kept up
with the language, says where it could not read, and is under a licence that this project can use (bashlex, the other parser
there is, is under the GPL). It lowers only what can be read in one way: lists and pipelines of commands that are in
`shell.toml`, with flags that are there, of literal words. Any redirection, substitution, expansion, assignment, glob, escape,
keyword or comment, and any byte that no leaf of the tree accounts for, makes the whole line worst. That a name means the
program it usually means is the shell's own affair (aliases, functions, `PATH`): who can change that has won already.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import msgspec

from earnest.core.profile import Labels
from earnest.refine.refinement import WORST_LABELS, Refinement

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_BYTES: Final = 16 * 1024
"""A longer line is worst."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./:=@%+,-]+")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_JOINTS: Final = frozenset((";", "&&", "||", "|", "\n"))
_BLANK: Final = b" \t\n"


class ShellRule(msgspec.Struct, frozen=True):
    """Which argument is the command line."""

    argument: str
    source: str = ""


class Looking(msgspec.Struct, frozen=True):
    """A command that only looks. `operands`: the most words that are no flags, 0 for any."""

    flags: str = ""
    long: frozenset[str] = frozenset()
    first: frozenset[str] = frozenset()
    operands: int = 0
    quiet: bool = False


class Unclear(Exception):
    """A line that cannot be read in one way, or does more than look; its text says why."""


def look(rule: ShellRule, arguments: Mapping[str, Any]) -> Refinement:
    """What the command line says."""
    line = arguments.get(rule.argument)
    if not isinstance(line, str) or not line.strip():
        return Refinement(_said(WORST_LABELS, rule), f"{rule.argument} is no command line")
    try:
        found = commands(line)
        quiet = all([_only_looks(words) for words in found])
    except Unclear as error:
        return Refinement(_said(WORST_LABELS, rule), str(error))
    labels = Labels(
        read_only=True,
        destructive=False,
        idempotent=True,
        open_world=False,
        reads_private=not quiet,
        sees_untrusted=not quiet,
        can_exfiltrate=False,
    )
    return Refinement(_said(labels, rule), "only looks: " + ", ".join(dict.fromkeys(words[0] for words in found)))


def commands(line: str) -> list[list[str]]:
    """The simple commands of a line, each as literal words. Raises `Unclear` for anything more."""
    raw = line.encode("utf-8", "surrogatepass")
    if len(raw) > MAX_BYTES or _CONTROL.search(line):
        raise Unclear("the line is too long, or holds control characters")
    root = _parser().parse(raw).root_node
    if root.has_error:
        raise Unclear("the line cannot be parsed")
    at = 0
    for leaf in _leaves(root):
        if raw[at : leaf.start_byte].strip(_BLANK):
            raise Unclear("the line cannot be read in one way")
        at = leaf.end_byte
    if raw[at:].strip(_BLANK):
        raise Unclear("the line cannot be read in one way")
    found: list[list[str]] = []
    _collect(root, found)
    if not found:
        raise Unclear("the line holds no command")
    return found


def _collect(node: Node, found: list[list[str]]) -> None:
    for child in node.children:
        if child.type == "command":
            found.append([_word(part) for part in child.children])
        elif child.type in ("list", "pipeline"):
            _collect(child, found)
        elif child.is_named or child.type not in _JOINTS:
            raise Unclear(f"the line holds more than plain commands ({child.type})")


def _word(node: Node) -> str:
    """The literal text of a word."""
    text = (node.text or b"").decode("utf-8", "replace")
    if node.type == "command_name" and node.child_count == 1 and node.children[0].type == "word":
        node = node.children[0]
    if node.type in ("word", "number") and not node.child_count and _PLAIN.fullmatch(text):
        return text
    if node.type == "raw_string" and text[:1] == text[-1:] == "'" and "'" not in text[1:-1]:
        return text[1:-1]
    if node.type == "string" and all(part.type in ('"', "string_content") for part in node.children):
        inner = text[1:-1]
        if not set(inner) & set('$`\\"!'):
            return inner
    raise Unclear("the line holds a word that is not literal")


def _leaves(node: Node) -> Iterator[Node]:
    if not node.child_count or node.type in ("string", "raw_string"):
        yield node
        return
    for child in node.children:
        yield from _leaves(child)


def _only_looks(words: list[str]) -> bool:
    """Whether what the command prints is its own. Raises `Unclear` for one that may do more than look."""
    name, rest = words[0], words[1:]
    known = _commands().get(name)
    if known is None:
        raise Unclear(f"{name!r} is not a command that only looks")
    if known.first:
        if not rest or rest[0] not in known.first:
            raise Unclear(f"{name} {rest[0] if rest else ''} is not known to only look".replace("  ", " "))
        rest = rest[1:]
    operands = 0
    for number, word in enumerate(rest):
        if word == "--":
            operands += len(rest) - number - 1
            break
        if word.startswith("--"):
            if word[2:].partition("=")[0] not in known.long:
                raise Unclear(f"{name} {word.partition('=')[0]} is not known to only look")
        elif word.startswith("-") and len(word) > 1:
            if not set(word[1:]) <= set(known.flags):
                raise Unclear(f"{name} {word} is not known to only look")
        else:
            operands += 1
    if known.operands and operands > known.operands:
        raise Unclear(f"{name} with {operands} operands may write")
    return known.quiet


def _said(labels: Labels, rule: ShellRule) -> Labels:
    return msgspec.structs.replace(labels, source=rule.source)


@lru_cache(maxsize=1)
def _commands() -> dict[str, Looking]:
    text = files("earnest.refine").joinpath("shell.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, Looking])


@lru_cache(maxsize=1)
def _parser() -> Parser:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))
