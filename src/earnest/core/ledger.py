"""What one conversation was told: the user's words and all results, taken into the index as what they are.

Theory. The user's prompt is taken apart (`pasted`): own words steer, the rest is untrusted. A result is trusted only if its
source
is one that strangers do not write in, and what of it merely repeats the call's arguments stays what those were. Values of an
untrusted
result are untrusted, whatever their type.

Two things are kept beside the values. **Handles**: a record in a structured result has an id that the server gave it and
names that people
use; if the user's words name exactly one record, its id is what they chose. A handle is a selector, never a destination, and
a second record of the same name makes it nobody's. **Times**: what the user said of hours and durations, so that an end can
be worked out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from earnest.core.intent import Reader, Wish, name_words
from earnest.core.pasted import parts
from earnest.core.provenance import LIMIT, Source, Values, records_share
from earnest.core.records import Records
from earnest.core.results import DEEP_TEXT, names_in, scalar_key, scalar_tokens, structured, unfolded
from earnest.core.values import Token, is_identifier, leaves, minutes, number_key, tokens

HANDLE: Final = re.compile(r"(?:.*[_-])?id_?$|^(?:uid|uuid|guid|key|number|sha|ref)$")
_NAME: Final = re.compile(
    r"(?:.*[_-])?(?:name|title|subject|summary|label|filename|slug|heading|topic|recipient|sender|payee|vendor|merchant)_?$"
)
_SECRET_KEY: Final = re.compile(
    r"pass(?:word|phrase|wd|port)|secret|token|credential|api_?key|private_?key|card|cvv|cvc|ssn|pin$", re.IGNORECASE
)
_SECRET: Final = re.compile(
    r"(?:sk|pk|rk|ghp|gho|ghs|github_pat|glpat|xox[abprs]|npm|hf|AKIA|ASIA|AIza|ya29|eyJ)[-_A-Za-z0-9.]{12,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|(?<![A-Za-z0-9+/_-])(?=[a-z0-9+/_-]*[A-Z])(?=[A-Z0-9+/_-]*[a-z])(?=[A-Za-z+/_-]*\d)[A-Za-z0-9+/_-]{24,}(?![A-Za-z0-9])"
)
_MISSING_BLANK: Final = re.compile(r"(?<=[^\W_])\.(?=[A-Z][a-z]*\s)")
_POINT: Final = re.compile(r"(^|[.;!?\n]|:(?=\s))[ \t]*\(?\d{1,2}[.)](?=\s)", re.MULTILINE)
_PROPER: Final = re.compile(r"(?<=[^\W_] )[A-Z][^\W_]{3,}(?![\w@./-])")
RESULT_BYTES: Final = 256 * 1024
"""A longer result is not taken apart: the conversation then counts as having read more than can be compared."""
_RECORDS: Final = 4096
_WISH_COST: Final = 1600
_HANDLE_COST: Final = 1200
_FIELD_COST: Final = 400
_WORD_COST: Final = 140


_END: Final = Token(".", 0, 0)
USUAL_LENGTHS: Final = frozenset((30, 60))
"""How long a meeting takes in minutes, where nobody says so."""


class Moment(NamedTuple):
    """What one sentence of the user says of time: days, hours and lengths in minutes."""

    dates: frozenset[str]
    times: frozenset[int]
    lengths: frozenset[int]


class Handle:
    """One record of a result: the values of its id, the names it goes by, and what its other fields hold."""

    __slots__ = ("fields", "ids", "names", "server")

    def __init__(
        self, server: str, ids: frozenset[str], names: tuple[tuple[str, ...], ...], fields: Mapping[str, frozenset[str]]
    ) -> None:
        self.server, self.ids, self.names, self.fields = server, ids, names, fields


class Ledger:
    """One conversation's values. Mutable, no I/O, one thread."""

    __slots__ = (
        "_beginning",
        "_holding",
        "_limit",
        "_lost_records",
        "_named",
        "_reader",
        "by_value",
        "moments",
        "proper",
        "records",
        "values",
        "wishes",
    )

    def __init__(self, reader: Reader, limit: int = LIMIT) -> None:
        self.values = Values(limit)
        self.wishes: list[Wish] = []
        self.moments: list[Moment] = []
        self.proper: set[str] = set()
        self.by_value: dict[str, list[Handle]] = {}
        self.records = Records(records_share(limit))
        self._named: dict[tuple[str, tuple[str, ...]], list[Handle]] = {}
        self._beginning: dict[tuple[str, str], list[Handle]] = {}
        self._holding: dict[str, list[Handle]] = {}
        self._lost_records = False
        self._reader = reader
        self._limit = limit

    def user(self, prompt: str, receipt: str) -> bool:
        """Take in a prompt. True if it held text that is not the user's own, so that untrusted content was seen."""
        taken = parts(prompt)
        source = Source(receipt)
        # A blank forgotten after a full stop: `at www.example.org.Then …`.
        own = _MISSING_BLANK.sub(". ", taken.own)
        # The number of a point in a list is no value.
        own = _POINT.sub(lambda match: match.group(1) + "\n", own)
        found = tokens(own, self._reader.calendar)
        # What they said not to do it with is theirs no more than if they had not named it.
        forbidden = Counter(self._reader.forbidden(own))
        if forbidden:
            said = Counter(token.key for token in found)
            never = {key for key, times in forbidden.items() if times >= said[key]}
            found = [token if token.key not in never else Token(".", token.start, token.end) for token in found]
        self.values.user.add(found, source, readings=True)
        wishes = [] if self.values.user.full else self._reader.wishes(own)
        cost = sum(_WISH_COST + _WORD_COST * (len(wish.words) + len(wish.keys)) for wish in wishes)
        if not self.values.user.full and self.values.user.pay(cost):
            self.wishes.extend(wishes)
            self._proper(own)
            self._hours(found)
        for piece in taken.pasted:
            self.untrusted(piece, source)
        return bool(taken.pasted)

    def _proper(self, own: str) -> None:
        """Words in capitals inside a sentence that are no common words: names people give by their beginning (`Acme` for
        `Acme Ltd.`)."""
        for match in _PROPER.finditer(own):
            word = match.group().casefold()
            if not self._reader.common(word) and len(self.proper) < 1000:
                self.proper.add("w" + word)

    def _hours(self, found: list[Token]) -> None:
        """What each sentence says of days, hours and lengths."""
        dates: set[str] = set()
        times: set[int] = set()
        lengths: set[int] = set()
        units = self._reader.calendar.durations
        for at, token in enumerate([*found, _END]):
            for key in (token.key, *token.readings):
                if key[0] == "d":
                    dates.add(key)
                elif key[0] == "t":
                    times.add(minutes(key))
            joined = re.fullmatch(r"w(\d{1,3})-?([^\W\d]+)", token.key)
            if joined and joined.group(2) in units:
                lengths.add(int(joined.group(1)) * units[joined.group(2)])
            if at + 1 < len(found) and (figure := self._figure(token)) is not None:
                unit = self._unit(found[at + 1 : at + 3])
                if unit is not None:
                    lengths.add(int(figure * unit))
            if token.key == "." and (dates or times or lengths) and len(self.moments) < 1000:
                self.moments.append(Moment(frozenset(dates), frozenset(times), frozenset(lengths)))
                dates, times, lengths = set(), set(), set()

    def ends(self) -> set[int]:
        """Minutes of the day at which something ends that the user said when it starts and how long it takes, or left that
        open."""
        every = {length for moment in self.moments for length in moment.lengths}
        return {
            (start + length) % 1440
            for moment in self.moments
            for start in moment.times
            for length in (moment.lengths or every | USUAL_LENGTHS)
        }

    def open_hour(self, date: str) -> bool:
        """Whether some sentence names this day and no hour."""
        return any(not moment.times and (date in moment.dates or "d" + date[6:] in moment.dates) for moment in self.moments)

    def _unit(self, following: list[Token]) -> int | None:
        units = self._reader.calendar.durations
        word = following[0].key[1:]
        if word in units:
            return units[word]
        joined = "".join(token.key[1:] for token in following)
        return next((length for unit, length in units.items() if not unit.isascii() and joined.startswith(unit)), None)

    @staticmethod
    def _figure(token: Token) -> float | None:
        return next((float(key[1:]) for key in (token.key, *token.readings) if re.fullmatch(r"n\d{1,3}(?:\.5)?", key)), None)

    def untrusted(self, text: str, source: Source) -> None:
        """Take in a text of untrusted origin."""
        found = tokens(text)
        self.values.untrusted.add([t.key for t in found], source, [reading for t in found for reading in t.readings])

    def result(
        self,
        result: Any,
        receipt: str,
        server: str,
        tool: str,
        *,
        trusted: bool,
        private: bool,
        arguments: Any = None,
    ) -> None:
        """Take in what a call returned, with the arguments it was called with."""
        skip = self._echo(arguments) if trusted else frozenset()
        for path, value in leaves(unfolded(result)):
            source = Source(receipt, server, tool, path)
            if trusted:
                self.values.trusted.add(scalar_tokens(value), source, skip=skip)
            elif isinstance(value, str):
                self.untrusted(value, source)
            elif not isinstance(value, bool):
                # A number that the server gave to a record is nothing that somebody wrote.
                minted = HANDLE.match(path.replace("[]", "").rpartition(".")[2].casefold())
                self.values.untrusted.add([number_key(value) if not minted else "h" + number_key(value)[1:]], source)
            if private and isinstance(value, str):
                self._secret(path, value, source)
        if not trusted:
            for path, key in names_in(unfolded(result)):
                self.untrusted(key, Source(receipt, server, tool, path))
        data = structured(result)
        self._records(data, server)
        self.records.took(data, server, arguments, trusted=trusted)

    def overflowed(self) -> None:
        """More came back than is taken apart: from now on it could have held whatever neither the user nor a trusted source
        said, and any record beside those that are known. What is known stays."""
        self.values.untrusted.full = True
        self._lost_records = self.records.lost = True

    def harmless(self, result: Any) -> bool:
        """Whether a result holds nothing that could instruct: numbers, truth values, dates, UUIDs; and, in a list, short
        names without a
        verb. It sets no label; its values stay of untrusted origin."""
        for path, value in leaves(unfolded(result)):
            if not isinstance(value, str) or not value or is_identifier(value):
                continue
            found = tokens(value)
            if found and all(token.key[0] in "dtn" for token in found):
                continue
            if not path.endswith("[]") or not self._name_only(value):
                return False
        names = (key for _, key in names_in(unfolded(result)))
        return all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,30}", key) and not self._sentence(key) for key in names)

    def _name_only(self, value: str) -> bool:
        return len(value) <= 24 and re.fullmatch(r"[^\W_][\w-]*", value) is not None and not self._sentence(value)

    def _sentence(self, name: str) -> bool:
        """Whether a name could be read as an order: it holds a verb, or more words than names have."""
        words = name_words(name)
        return len(words) > 3 or any(self._reader.verb(word) for word in words)

    def _secret(self, path: str, value: str, source: Source) -> None:
        last = path.replace("[]", "").rpartition(".")[2]
        if _SECRET_KEY.search(last) and len(value) >= 4:
            self.values.secrets.add([token.key for token in tokens(value)], source)
            return
        for match in _SECRET.finditer(value[:DEEP_TEXT]):
            self.values.secrets.add([token.key for token in tokens(match.group())], source)

    def _echo(self, arguments: Any) -> frozenset[str]:
        """Keys that a result may only repeat: values of the call's arguments that nothing spoke for."""
        found: set[str] = set()
        for _, value in leaves(unfolded(arguments)):
            for token in scalar_tokens(value):
                if not self.values.user.has(token.key) and not self.values.trusted.has(token.key):
                    found.add(token.key)
        return frozenset(found)

    def _records(self, result: Any, server: str) -> None:
        stack = [result]
        while stack:
            item = stack.pop()
            if isinstance(item, Mapping):
                self._record(item, server)
                stack.extend(item.values())
            elif isinstance(item, list | tuple):
                stack.extend(item)

    def _record(self, record: Mapping[str, Any], server: str) -> None:
        ids = frozenset(
            scalar_key(value)
            for key, value in record.items()
            if isinstance(value, str | int) and not isinstance(value, bool)
            if HANDLE.match(str(key).casefold()) and len(str(value)) <= 80
        )
        names = tuple(
            keys
            for key, value in record.items()
            if isinstance(value, str) and 0 < len(value) <= 120 and _NAME.match(str(key).casefold())
            if (keys := tuple(token.key for token in tokens(value)))
        )
        if not ids or not names:
            return
        if len(self._named) >= _RECORDS or len(self._holding) >= _RECORDS:
            self._lost_records = True
            return
        fields = {str(key).casefold().rstrip("_"): found for key, value in record.items() if (found := _field(value))}
        if not self.records.pay(_HANDLE_COST + _FIELD_COST * len(fields)):
            self._lost_records = True
            return
        handle = Handle(server, ids, names, fields)
        for name in names:
            self._named.setdefault((server, name), []).append(handle)
            self._beginning.setdefault((server, name[0]), []).append(handle)
        for value in ids:
            kept = self.by_value.setdefault(value, [])
            if len(kept) < 16 and not any(other.names == names and other.server == server for other in kept):
                kept.append(handle)
        for values in fields.values():
            for value in values:
                holders = self._holding.setdefault(value, [])
                if len(holders) < 16:
                    holders.append(handle)

    def chosen(self, key: str, server: str) -> bool:
        """Whether the user's words name exactly one record, and this is its id."""
        return any(handle.server == server and self._meant(handle) for handle in self.by_value.get(key, ()))

    def told(self, key: str, server: str, field: str) -> bool:
        """Whether the user's words name exactly one record and one of its fields, and this is what the field holds."""
        for handle in self._holding.get(key, ()):
            if handle.server == server and key in handle.fields.get(field, ()) and self._meant(handle):
                return True
        return False

    def _meant(self, handle: Handle) -> bool:
        if self._lost_records:
            return False
        for name in handle.names:
            same = self._named[(handle.server, name)]
            if all(other.ids == handle.ids for other in same) and self.names(name):
                return True
            if name[0] in self.proper and all(other.ids == handle.ids for other in self._beginning[handle.server, name[0]]):
                return True
        return False

    def names(self, name: tuple[str, ...]) -> bool:
        """Whether the user's words hold this name, and it says enough to be one."""
        generic = self._reader.lexicon.generic
        if all(key[0] == "n" or key[1:] in generic or (len(key) < 4 and key.isascii()) for key in name):
            return False
        return bool(self.values.user.places(name))


def _field(value: Any) -> frozenset[str]:
    """What a field holds: one scalar, or a list of them."""
    items = value if isinstance(value, list | tuple) else (value,)
    if len(items) > 64:
        return frozenset()
    return frozenset(
        scalar_key(item)
        for item in items
        if isinstance(item, str | int | float) and not isinstance(item, bool) and len(str(item)) <= 120
    )
