"""The lexicon as it ships: TOML files beside the program, one a language and one for the concepts.

What the words are for is in `core.intent`. A language is a file; adding one changes no code.
"""

from __future__ import annotations

import tomllib
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

from earnest.core.intent import TURNS, Lexicon, Thing, Verb
from earnest.core.values import Calendar, fold

CONCEPTS: Final = "concepts"
LANGUAGES: Final = ("de", "en", "es", "ja", "zh")
"""The languages that ship, by their ISO 639 code."""


def load(languages: tuple[str, ...] = LANGUAGES) -> Lexicon:
    """The lexicon of these languages together. Raises `FileNotFoundError` for one that does not ship."""
    concepts = _read(CONCEPTS)
    spoken = [_read(language) for language in languages]

    def words(kind: str, concept: str) -> tuple[str, ...]:
        return tuple(word for language in spoken for word in language[kind].get(concept, ()))

    def joined(name: str) -> tuple[str, ...]:
        return tuple(word for language in spoken for word in language["words"][name])

    calendar = Calendar(
        months={name: number for language in spoken for name, number in language["months"].items()},
        numbers={fold(word): str(number) for language in spoken for word, number in language["numbers"].items()},
        hours={fold(word): hour for language in spoken for word, hour in language["hours"].items()},
        durations={fold(word): minutes for language in spoken for word, minutes in language.get("durations", {}).items()},
        between=frozenset(joined("between")),
    )
    return Lexicon(
        verbs={
            name: Verb(tuple(entry["tool"]), words("verbs", name), entry.get("reading", False), entry.get("binding", False))
            for name, entry in concepts["verbs"].items()
        },
        objects={
            name: Thing(tuple(entry["tool"]), words("objects", name), entry.get("implied", False), entry.get("which", False))
            for name, entry in concepts["objects"].items()
        },
        calendar=calendar,
        negations=joined("negations"),
        after=joined("after"),
        affirming=joined("affirming"),
        generic=frozenset(fold(word) for word in joined("generic")),
        computed=joined("computed"),
        starts=joined("starts"),
        leads=frozenset(fold(word) for word in joined("leads")),
        delegates=joined("delegates"),
        turns={name: joined(name) for name in TURNS},
        roles={role: frozenset(names) for role, names in concepts["roles"].items()},
        loaded=tuple(concepts["loaded"]["patterns"]),
    )


@lru_cache(maxsize=1)
def shipped() -> Lexicon:
    """The lexicon of all languages that ship, read once."""
    return load()


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(files("earnest").joinpath("lexicon", f"{name}.toml").read_text("utf-8"))
