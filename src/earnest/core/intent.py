"""What the user asked for: verbs and objects in their words, against the verb and object of a tool.

Theory. A lexicon names concepts (`delete`, `file`) and the words that mean them in each language; a tool's name and title
are read by the
lexicon's words for tools. A call is what the user asked for if one of their sentences (or two that follow each other) holds a
word of one of the tool's verbs and a word of one of its objects. A tool whose name holds no known verb is asked for by its own
words. Negated verbs ("do not delete") ask for nothing.

Verbs of reading need not be asked for: any request implies looking. Verbs of commitment (`binding`: pay, book, invite) bind the
user to somebody; what they bind to has to be in the user's words, a trusted source does not do (see `integrity`).

The lexicon is data, handed in. More words of the user can only add wishes, except after a negation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from earnest.core.values import Calendar, fold, path, tokens


class Verb(msgspec.Struct, frozen=True):
    """A verb of the lexicon: words in names of tools, words people use, whether it only reads, whether it binds."""

    tool: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    reading: bool = False
    binding: bool = False


class Thing(msgspec.Struct, frozen=True):
    """An object of the lexicon: words in names of tools, words people use, whether spelling it out names it, whether it only
    says which ones (`unread`)."""

    tool: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    implied: bool = False
    which: bool = False


class Lexicon(msgspec.Struct, frozen=True):
    """The words of all languages together. `after`: negations that follow what they negate. `affirming`: phrases that hold a
    negation and negate nothing that follows ("don't forget to"). `generic`: values that say little by themselves. `computed`:
    words that ask for a number to be worked out. `starts`: words that say how a name begins. `leads`: words after which a word
    that may be a noun (`email~`) is a verb. `delegates`: words that leave to a text what is to be done ("follow the
    instructions"). `turns`: by name, words that say how a value is to be found (`TURNS`). `roles`: by role, words in names of
    arguments. `loaded`: names of files that something runs or obeys later, as regular expressions."""

    verbs: Mapping[str, Verb] = {}
    objects: Mapping[str, Thing] = {}
    calendar: Calendar = Calendar()
    negations: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    affirming: tuple[str, ...] = ()
    generic: frozenset[str] = frozenset()
    computed: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()
    leads: frozenset[str] = frozenset()
    delegates: tuple[str, ...] = ()
    turns: Mapping[str, tuple[str, ...]] = {}
    roles: Mapping[str, frozenset[str]] = {}
    loaded: tuple[str, ...] = ()


class ToolIntent(msgspec.Struct, frozen=True):
    """What a tool does, as its name says: concepts and, where the lexicon knows none, plain words."""

    verbs: frozenset[str] = frozenset()
    objects: frozenset[str] = frozenset()
    plain_verbs: frozenset[str] = frozenset()
    plain_objects: frozenset[str] = frozenset()
    which: frozenset[str] = frozenset()
    implied: bool = False
    reading: bool = False
    binding: bool = False


TURNS: Final = ("details", "refunds", "based", "described", "every")
"""Ways to say how a value is to be found: the information is in a place; what was paid is to be paid back; as some text says;
whoever or whichever fits a description; all there are."""
_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+|[。！？；\n]+")
_QUOTED: Final = re.compile(
    r"(?<!\w)'[^'\n]{1,240}'(?!\w)|\"[^\"\n]{1,240}\"|“[^”\n]{1,240}”|„[^“”\n]{1,240}[“”]|«[^»\n]{1,240}»|「[^」\n]{1,240}」"
)
_WORD: Final = re.compile(r"[^\W\d_][\w'’-]*")
_CJK: Final = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af]")
_KINDS: Final = {"p": ("file",), "u": ("web",), "i": ("money",), "e": ("user", "contact")}
"""What a value of a type names by itself: who writes a path speaks of a file."""
_ENDS_NEGATION: Final = re.compile(r"[,，、:]|\bbut\b|\baber\b|\bpero\b")
_INTERRUPTED: Final = re.compile(r"(?:\b(?:not|don['’]?t|never|nunca|jamás|niemals|nie)|不要|别|勿)\s*[,，][^,，]{1,80}[,，]")
"""`Do not, under any circumstances, send`: the negation goes on behind the second comma."""
_ENDS_CLAUSE: Final = re.compile(
    r"[,:(]|\bund\b|\boder\b|\bdann\b|\baber\b|\bsondern\b|\bwenn\b|\bdass\b|\bweil\b|\bobwohl\b|\bob\b"
)
_PASSIVE: Final = frozenset(("be", "get", "gets", "getting", "have", "being"))
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_AFTER_JA: Final = re.compile(r"^.{0,4}(?:ないで|なくて|しない|せず|ません)")

_NOT_JA: Final = re.compile(r"ないで|なくて|しない|せず|ません")
_ENDS_REACH: Final = re.compile(r"[,，、:(]|\b(?:but|and|then|aber|sondern|und|dann|pero|sino|y)\b")
"""What ends how far a verb reaches to what it is done with."""


def name_words(name: str) -> list[str]:
    """The words of a tool's or argument's name: `sendDirectMessage`, `send-direct_message`."""
    return [word for word in re.split(r"[\W_]+", _CAMEL.sub(" ", name).casefold()) if word]


class _Finder:
    """Finds which concepts a sentence holds. Words, beginnings (`lösch*`), phrases and words of scripts without blanks."""

    def __init__(self, words: Mapping[str, Sequence[str]], leads: frozenset[str] = frozenset()) -> None:
        self.exact: dict[str, list[str]] = {}
        self.nouns: dict[str, list[str]] = {}
        self.starts: dict[str, list[str]] = {}
        self.inside: list[tuple[str, str]] = []
        self.leads = leads
        for concept, entries in words.items():
            for entry in entries:
                entry = fold(entry)
                if _CJK.search(entry):
                    self.inside.append((entry.rstrip("*"), concept))
                elif " " in entry:
                    self.inside.append((entry, concept))
                elif entry.endswith("~"):
                    self.nouns.setdefault(entry[:-1], []).append(concept)
                elif entry.endswith("*"):
                    self.starts.setdefault(entry[:-1], []).append(concept)
                else:
                    self.exact.setdefault(entry, []).append(concept)

    def find(self, sentence: str, words: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
        found: list[tuple[str, int]] = []
        for number, (word, at) in enumerate(words):
            for concept in self.exact.get(word, ()):
                found.append((concept, at))
            lead = not number or words[number - 1][0] in self.leads or sentence[at - 2 : at - 1] in ",:;(-"
            if lead and word in self.nouns:
                found.extend((concept, at) for concept in self.nouns[word])
            if word.endswith("ed") and (not number or words[number - 1][0] not in _PASSIVE):
                continue  # "the scheduled one", "what he deleted": told, not asked
            for length in range(2, len(word) + 1):
                for concept in self.starts.get(word[:length], ()):
                    found.append((concept, at))
        for entry, concept in self.inside:
            at = sentence.find(entry)
            while at >= 0:
                apart = _CJK.search(entry) is not None or (
                    not sentence[max(0, at - 1) : at].isalnum()
                    and not sentence[at + len(entry) : at + len(entry) + 1].isalnum()
                )
                if apart:
                    found.append((concept, at))
                at = sentence.find(entry, at + 1)
        return found


class Reader:
    """The lexicon made ready. Immutable after construction; one serves all conversations."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        self.calendar = lexicon.calendar
        self._verbs = _Finder({concept: verb.words for concept, verb in lexicon.verbs.items()}, lexicon.leads)
        self._objects = _Finder({concept: thing.words for concept, thing in lexicon.objects.items()})
        self._computed = _Finder({"computed": lexicon.computed})
        self._delegates = _Finder({"delegated": lexicon.delegates})
        self._turns = _Finder(lexicon.turns)
        self._after = _Finder({"not": lexicon.after})
        self._negations = _Finder({"not": lexicon.negations})
        self._affirming = _phrases(lexicon.affirming)
        self.starts = tuple(tuple(token.key for token in tokens(phrase)) for phrase in lexicon.starts)
        self._loaded = re.compile("|".join(lexicon.loaded)) if lexicon.loaded else None
        self._tool_verbs = _named({concept: verb.tool for concept, verb in lexicon.verbs.items()})
        self._tool_objects = _named({concept: thing.tool for concept, thing in lexicon.objects.items()})

    def tool(self, name: str, title: str = "") -> ToolIntent:
        """What a tool does, by its name (without its server's), else by its title."""
        for text in (name, title):
            found = self._named_tool(name_words(text))
            if found is not None:
                return found
        words = name_words(name)
        return ToolIntent(plain_verbs=frozenset(words))

    def loaded(self, value: str) -> bool:
        """Whether a path is one of what something runs or obeys later."""
        return self._loaded is not None and self._loaded.search(path(fold(value).strip())) is not None

    def verb(self, word: str) -> bool:
        """Whether a word is a verb in any language, in any form the lexicon knows."""
        folded = fold(word)
        return bool(self._verbs.find(folded, [(folded, 0)]) or folded in self._verbs.nouns or (folded,) in self._tool_verbs)

    def field(self, key: str) -> bool:
        """Whether a member's name is an ordinary name of a field, which steers nothing by itself."""
        words = name_words(key)
        return bool(words) and all(
            any(word in names for names in self.lexicon.roles.values())
            or (word,) in self._tool_objects
            or word in ("type", "kind", "format", "value", "data")
            for word in words
        )

    def concepts(self, words: Sequence[str]) -> frozenset[str]:
        """The objects that words of a name mean."""
        return frozenset(concept for word in words for concept in self._tool_objects.get((word,), ()))

    def common(self, word: str) -> bool:
        """Whether a word is one of the lexicon's, so that it is hardly somebody's name."""
        return self.verb(word) or bool(self._objects.find(word, [(word, 0)])) or word in self.lexicon.generic

    def speaks(self, field: str, wish: Wish) -> bool:
        """Whether a sentence holds the words of a field's name."""
        return all(_stem(word) in wish.words for word in name_words(field))

    def holds(self, word: str, wish: Wish) -> bool:
        """Whether a sentence speaks of what a word in an argument's name means."""
        if _stem(word) in wish.words:
            return True
        concepts = {c for table in (self._tool_verbs, self._tool_objects) for c in table.get((word,), ())}
        return bool(concepts & (wish.verbs | wish.objects))

    def names(self, intent: ToolIntent, words: Sequence[str], near: Sequence[str]) -> bool:
        """Whether words beside a value name the tool's object, or what the argument is called."""
        stems = {_stem(word) for word in near}
        if any(_stem(word) in stems for word in (*words, *intent.plain_objects)):
            return True
        concepts = set(intent.objects)
        for word in words:
            concepts.update(self._tool_objects.get((word,), ()))
        sentence = "".join(near) if any(_CJK.search(word) for word in near) else " ".join(near)
        beside = [(word, 0) for word in near]
        if any(concept in concepts for concept, _ in self._objects.find(sentence, beside)):
            return True
        # A tool whose name has no object ("pay 50"): its verb stands for it.
        return not intent.objects and any(concept in intent.verbs for concept, _ in self._verbs.find(sentence, beside))

    def _binds(self, concept: str) -> bool:
        return self.lexicon.verbs[concept].binding

    def _named_tool(self, words: list[str]) -> ToolIntent | None:
        verbs, used = _lookup(words, self._tool_verbs)
        if not verbs:
            return None
        # The first verb of a name is its verb: `send_update` sends.
        first = min(used)
        every = [self.lexicon.verbs[concept] for concept in verbs]
        verbs = {concept: at for concept, at in verbs.items() if at == first}
        # The noun of a phrase such as `send money` stays an object.
        rest = [word for at, word in enumerate(words) if at != first]
        objects, known = _lookup(rest, self._tool_objects)
        covered = {at for start, stop in known.items() for at in range(start, stop)}
        plain = {word for at, word in enumerate(rest) if at not in covered and len(word) > 2}
        return ToolIntent(
            frozenset(verbs),
            frozenset(objects),
            frozenset(),
            frozenset(plain),
            which=frozenset(concept for concept in objects if self.lexicon.objects[concept].which),
            implied=any(self.lexicon.objects[concept].implied for concept in objects),
            reading=all(verb.reading for verb in every),
            binding=any(verb.binding for verb in every),
        )

    def forbidden(self, text: str) -> list[str]:
        """Keys of the addresses, links, accounts and paths with which the user said *not* to do something, one for each time:
        the verb that they belong to is negated, in the same clause."""
        found: list[str] = []
        for _, sentence in _sentences(fold(text)):
            words = [(match.group(), match.start()) for match in _WORD.finditer(sentence)]
            no = self._denied(sentence, words)
            after = [at for _, at in self._after.find(sentence, words)]
            if not no and not after and not _NOT_JA.search(sentence):
                continue
            named = [token for token in tokens(sentence, self.calendar) if token.key[0] in "euip"]
            inside = [(token.start, token.end) for token in named]
            verbs = [at for _, at in self._verbs.find(sentence, words) if not any(a <= at < b for a, b in inside)]
            for token in named:
                before = [at for at in verbs if at < token.start and not _ENDS_REACH.search(sentence, at, token.start)]
                later = [at for at in verbs if at >= token.end and _CJK.match(sentence, at)]
                later = [at for at in later if not _ENDS_REACH.search(sentence, token.end, at)]
                verb = max(before) if before else min(later, default=None)
                if verb is not None and (_negated(sentence, verb, no) or _negated_after(sentence, verb, after)):
                    found.append(token.key)
        return found

    def _denied(self, sentence: str, words: Sequence[tuple[str, int]]) -> list[int]:
        """Where a sentence says no to what follows."""
        no = [at for _, at in self._negations.find(sentence, words)]
        if no and self._affirming is not None:
            spans = [match.span() for match in self._affirming.finditer(sentence)]
            no = [at for at in no if not any(start <= at < end for start, end in spans)]
        return no + [match.end() - 1 for match in _INTERRUPTED.finditer(sentence)]

    def wishes(self, text: str) -> list[Wish]:
        """The wishes of each sentence of the user's own words."""
        found = []
        folded = fold(text)
        # What is quoted is a title, a name or what is to be sent; whatever it says to do, it does not ask for it.
        inside = [match.span() for match in _QUOTED.finditer(folded)]
        for start, sentence in _sentences(folded):
            quoted = [(first - start, last - start) for first, last in inside]
            words = [(match.group().removesuffix("'s").removesuffix("’s"), match.start()) for match in _WORD.finditer(sentence)]
            no = self._denied(sentence, words)

            after = [at for _, at in self._after.find(sentence, words)]

            def said(
                at: int,
                sentence: str = sentence,
                no: list[int] = no,
                after: list[int] = after,
                quoted: list[tuple[int, int]] = quoted,
            ) -> bool:
                if _negated(sentence, at, no) or _negated_after(sentence, at, after):
                    return False
                return not any(first <= at < last for first, last in quoted)

            asks = [(concept, at) for concept, at in self._verbs.find(sentence, words) if said(at)]
            verbs = frozenset(concept for concept, _ in asks)
            if "cancel" in verbs:
                # `取消付款`: a word that is verb and thing alike is the thing that is to be called off.
                things = {at for _, at in self._objects.find(sentence, words) if _CJK.match(sentence, at)}
                verbs = frozenset(concept for concept, at in asks if at not in things or not self._binds(concept))
            keys = frozenset(token.key for token in tokens(sentence, self.calendar))
            kinds = {key[0] for key in keys}
            dated = "d" in kinds
            objects = frozenset(concept for concept, _ in self._objects.find(sentence, words)) | {
                concept for kind in kinds for concept in _KINDS.get(kind, ())
            }
            plain = frozenset(_stem(word) for word, at in words if not _negated(sentence, at, no))
            delegated = any(said(at) for _, at in self._delegates.find(sentence, words))
            turns = {name for name, at in self._turns.find(sentence, words) if said(at)}
            computed = bool(self._computed.find(sentence, words))
            found.append(Wish(verbs, objects, plain, computed, delegated, dated, keys, frozenset(turns)))
        return found


def _sentences(text: str) -> Iterator[tuple[int, str]]:
    """The sentences of a text with where they start."""
    at = 0
    for match in _SENTENCE.finditer(text):
        if text[at : match.start()].strip():
            yield at, text[at : match.start()]
        at = match.end()
    if text[at:].strip():
        yield at, text[at:]


class Wish(msgspec.Struct, frozen=True):
    """One sentence: concepts it names, its words, whether it asks for a number to be worked out, leaves the verb to a
    text, names a day; the keys of its values; and how it says that values are to be found (`TURNS`)."""

    verbs: frozenset[str]
    objects: frozenset[str]
    words: frozenset[str]
    computed: bool = False
    delegated: bool = False
    dated: bool = False
    keys: frozenset[str] = frozenset()
    turns: frozenset[str] = frozenset()


def asked(intent: ToolIntent, wishes: Sequence[Wish], *, anywhere: bool = False) -> bool:
    """Whether the user's words ask for what the tool does. `anywhere`: verb and object may stand far apart, which is enough
    where the user named the very thing."""
    for at, wish in enumerate(wishes):
        verb = bool(intent.verbs & wish.verbs) or bool(intent.plain_verbs and _any_word(intent.plain_verbs, wish.words))
        if not verb:
            continue
        if (not intent.objects and not intent.plain_objects) or (anywhere and intent.implied):
            return True
        if any(_names(intent, near) for near in (wishes if anywhere else wishes[max(0, at - 1) : at + 2])):
            return True
    return False


def named(intent: ToolIntent, wishes: Sequence[Wish]) -> bool:
    """Whether the user's words name the tool's object at all, and which ones if its name says that, for what needs no verb."""
    if not intent.objects and not intent.plain_objects:
        return bool(wishes)
    which = all(any(concept in wish.objects for wish in wishes) for concept in intent.which)
    return which and any(_names(intent, wish) for wish in wishes)


def _names(intent: ToolIntent, wish: Wish) -> bool:
    return bool(intent.objects & wish.objects) or _any_word(intent.plain_objects, wish.words)


def _any_word(plain: frozenset[str], words: frozenset[str]) -> bool:
    return any(_stem(word) in words for word in plain)


def _stem(word: str) -> str:
    for ending in ("ies", "es", "s", "ing", "ed", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def _negated(sentence: str, at: int, negations: Sequence[int]) -> bool:
    if _CJK.match(sentence, at) and _AFTER_JA.search(sentence[at + 1 : at + 12]):
        return True
    # A negation reaches as far as a few words go; a comma or "but" ends it.
    return any(no < at and at - no <= 24 and not _ENDS_NEGATION.search(sentence, no + 1, at) for no in negations)


def _negated_after(sentence: str, at: int, negations: Sequence[int]) -> bool:
    """`Lösche die Datei nicht`: a negation at the end of the verb's own clause."""
    return any(at < no <= at + 60 and not _ENDS_CLAUSE.search(sentence, at, no) for no in negations)


def _phrases(phrases: Sequence[str]) -> re.Pattern[str] | None:
    """Finds any of some phrases, as whole words where the script has blanks."""
    entries = [re.escape(fold(phrase)) for phrase in phrases]
    whole = [entry if _CJK.match(entry) else rf"(?<![\w'’-]){entry}(?![\w'’-])" for entry in entries]
    return re.compile("|".join(whole)) if whole else None


def _named(words: Mapping[str, Sequence[str]]) -> dict[tuple[str, ...], list[str]]:
    found: dict[tuple[str, ...], list[str]] = {}
    for concept, entries in words.items():
        for entry in entries:
            found.setdefault(tuple(entry.split()), []).append(concept)
    return found


def _lookup(words: Sequence[str], table: Mapping[tuple[str, ...], Sequence[str]]) -> tuple[dict[str, int], dict[int, int]]:
    """Concepts with where they stand, and which words are used: start to stop. Longer names first."""
    concepts: dict[str, int] = {}
    used: dict[int, int] = {}
    at = 0
    while at < len(words):
        for length in (3, 2, 1):
            piece = tuple(words[at : at + length])
            if len(piece) == length and piece in table:
                for concept in table[piece]:
                    concepts.setdefault(concept, at)
                used[at] = at + length
                at += length
                break
        else:
            at += 1
    return concepts, used
