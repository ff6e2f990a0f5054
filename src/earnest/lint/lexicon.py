"""The lexicon of effect verbs: `effects.toml` read once, with the other forms of each verb derived."""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from importlib.resources import files
from typing import Final, Literal, TypeAlias

import msgspec

Kind: TypeAlias = Literal["read", "compute", "create", "update", "delete", "overwrite", "send", "pay", "run", "manage", "save"]
"""What a verb does. `save` is a pattern, no verb: bytes go to a disk."""

WRITES: Final[frozenset[Kind]] = frozenset(("create", "update", "delete", "overwrite", "send", "pay", "manage", "save"))
"""Kinds that change something. `run` says nothing without its object."""

DESTROYS: Final[frozenset[Kind]] = frozenset(("delete", "overwrite"))

_ORDER: Final[tuple[Kind, ...]] = ("read", "compute", "create", "update", "delete", "overwrite", "send", "pay", "run", "manage")
_DOUBLED: Final = re.compile(r"[^aeiou][aeiou][bdgmnpt]$")


class Form(msgspec.Struct, frozen=True):
    """A word as a verb: its base, and which form it is (`base`, `third` person, `ing`)."""

    base: str
    form: Literal["base", "third", "ing"]
    kind: Kind


class Lexicon(msgspec.Struct, frozen=True):
    """Verbs in all their forms, kinds of objects, other words by what they are for, and patterns."""

    verbs: dict[str, Form]
    answer: frozenset[str]
    question: frozenset[str]
    durable: frozenset[str]
    words: dict[str, frozenset[str]]
    patterns: dict[str, re.Pattern[str]]


@lru_cache(maxsize=1)
def shipped() -> Lexicon:
    """The lexicon that ships."""
    raw = tomllib.loads(files("earnest.lint").joinpath("effects.toml").read_text("utf-8"))
    verbs: dict[str, Form] = {}
    for kind in _ORDER:
        for base in raw["verbs"][kind].split():
            for word, form in _forms(base):
                verbs.setdefault(word, Form(base, form, kind))
    nouns = {name: frozenset(words.split()) for name, words in raw["nouns"].items()}
    words = {name: frozenset(given.split()) for name, given in raw["words"].items()}
    patterns = {name: re.compile("|".join(f"(?:{one})" for one in ones)) for name, ones in raw["patterns"].items()}
    return Lexicon(verbs, nouns["answer"], nouns["question"], nouns["durable"], words, patterns)


def _forms(base: str) -> list[tuple[str, Literal["base", "third", "ing"]]]:
    if base.endswith(("s", "x", "z", "ch", "sh")):
        third = base + "es"
    elif base.endswith("y") and base[-2:-1] not in "aeiou":
        third = base[:-1] + "ies"
    else:
        third = base + "s"
    if base.endswith("e") and not base.endswith("ee"):
        ing = base[:-1] + "ing"
    elif _DOUBLED.search(base) and len(base) <= 5:
        ing = base + base[-1] + "ing"
    else:
        ing = base + "ing"
    found: list[tuple[str, Literal["base", "third", "ing"]]] = [(base, "base"), (third, "third"), (ing, "ing")]
    return [*found, (base + "ing", "ing")] if ing != base + "ing" and not base.endswith("e") else found
