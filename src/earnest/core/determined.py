"""What the user's words determine without spelling it.

Theory. People describe: "my dentist's event", "the article that Bob posted in general", "refund Acme what they paid". Each
rule here says when such words leave one value only, and each is a door, so each is narrow:

    chosen      the id of the one record they name                                    selectors only
    field       a field of that record, if they speak of the field
    abbreviated, begun, timed, computed
                the beginning of a word or a name they gave; a day, an hour or a number they left open
    below       a file in a folder of which they said all                             selectors; nothing is deleted or run
    linked      a link in a record of the place they named, where they asked for what stands there      GETs only
    described   a member of the place, where they say who it is and every word of the message          names only
    refunded    what the payer they named has paid, once
    detailed    a time or a place from the records they named, where they said to go by these           nobody is reached

Records are data by their form (`records`); text clears nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from earnest.core.intent import Reader, Wish
from earnest.core.ledger import HANDLE, USUAL_LENGTHS, Ledger
from earnest.core.records import Record
from earnest.core.roles import EVERYTHING, Role, Roles
from earnest.core.values import Token, fold, leaves, minutes, path, tokens

if TYPE_CHECKING:
    from earnest.core.integrity import Call

_MOST_LINKS: Final = 16
_LINKS_OF_A_HOST: Final = 2
_INSIDE: Final = frozenset(("local", "localhost", "internal", "lan", "home", "corp", "onion", "arpa"))
_PAYERS: Final = frozenset(("sender", "from", "payer", "customer", "buyer", "debtor", "paid_by", "ordered_by"))
_PAYEES: Final = frozenset(("recipient", "to", "payee", "receiver", "merchant", "beneficiary", "creditor"))
_SUMS: Final = frozenset(("amount", "total", "sum", "price", "amount_paid", "total_paid"))
_REPLIES: Final = frozenset(("wre", "wfw", "wfwd", "waw", "wwg", "wsv", "wtr", "w回", "w复", "w返", "w信"))
_PLACE: Final = 80
_LEAST_DICTATED: Final = 4
_RUN: Final = 3


class Determined:
    """One call's questions. `spoken`: whether a run of tokens is in the user's words."""

    def __init__(self, call: Call, ledger: Ledger, reader: Reader, spoken: Callable[[list[str]], bool]) -> None:
        self.call, self.ledger, self.reader, self.spoken = call, ledger, reader, spoken
        self.values = ledger.values

    def determined(self, where: str, value: Any, found: list[Token], roles: Roles, words: list[str]) -> bool:
        """Whether the user's words leave this value only."""
        run = [token.key for token in found]
        whole, binding = " ".join(run), self.call.intent.binding
        if Role.SELECTOR in roles and (
            self.ledger.chosen(whole, self.call.server) or (roles != EVERYTHING and self._below(value))
        ):
            return True
        if (Role.DESTINATION not in roles or not binding) and self._of_field(whole, where):
            return True
        if isinstance(value, str) and len(value) <= 3 and value.isalpha() and self._abbreviated(value.casefold(), words):
            return True
        if len(run) == 1 and run[0][0] in "wp" and self._begun(run[0]):
            return True
        if all(key[0] in "dt" for key in run) and self._timed(run, words):
            return True
        if Role.AMOUNT in roles and len(run) == 1 and run[0][0] == "n" and (self._computed(run[0]) or self._refunded(run[0])):
            return True
        if len(run) == 1 and run[0][0] in "ue":
            return run[0][0] == "u" and self.call.read_only and self._linked(run[0])
        return (Role.DESTINATION in roles and self._described(whole, words)) or self._detailed(value, run, words)

    def _below(self, value: Any) -> bool:
        """A file right below a folder of which the user said all, or what it will be called in the folder they named. Nothing
        that deletes or runs: who says "all" may go on to say which not."""
        intent = self.call.intent
        if not isinstance(value, str) or intent.implied or intent.verbs & {"delete", "run"} or ".." in value:
            return False
        folder, _, name = path(fold(value.strip())).rpartition("/")
        return bool(folder and name) and any(
            intent.verbs & wish.verbs and {"w" + folder, "p" + folder} & wish.keys for wish in self._says("every")
        )

    def _of_field(self, whole: str, where: str) -> bool:
        """`participants` of the one event they named, if they speak of participants."""
        field = where.replace("[]", "").rpartition(".")[2].casefold()
        spoken = any(self.reader.speaks(field, wish) for wish in self.ledger.wishes)
        return spoken and self.ledger.told(whole, self.call.server, field)

    def _abbreviated(self, value: str, words: list[str]) -> bool:
        """`r` for the user's "read permissions": the beginning of a word beside the argument's own name."""
        user = self.values.user
        for word in words:
            for form in (word, word + "s", word.removesuffix("s")):
                for place in user.places(["w" + form]):
                    if any(key[1:].startswith(value) for key in user.around(place, 1, 2)):
                        return True
        return False

    def _begun(self, key: str) -> bool:
        """A name whose beginning the user gave, if nothing else that was seen begins like that."""
        user = self.values.user
        for phrase in self.reader.starts:
            for place in user.places(phrase):
                start = user.key(place + len(phrase)) if phrase[0][1:].isascii() else user.key(place - 1)
                if len(start) >= 4 and key[1:].startswith(start[1:]) and key != start:
                    alike = self.values.untrusted.begins("w" + start[1:])
                    if alike is not None and all(other == key for other in alike if other != start):
                        return True
        return False

    def _timed(self, run: list[str], words: list[str]) -> bool:
        """A day of the user's with an hour they left open, or an end by how long they said it takes."""
        ledger, seen = self.ledger, self.values.untrusted
        days = [key for key in run if key[0] == "d"]
        intent = self.call.intent
        for key in days:
            if self.spoken([key]):
                continue
            undated = any(intent.verbs & wish.verbs and not wish.dated for wish in ledger.wishes)
            if not undated or seen.full or seen.token(key) is not None:
                return False
        ends = ledger.ends() if {"end", "until", "finish", "to"} & set(words) else set()
        for key in (key for key in run if key[0] == "t"):
            if self.spoken([key]) or minutes(key) in ends:
                continue
            if seen.full or seen.token(key) is not None or not any(ledger.open_hour(day) for day in days):
                return False
        return True

    def _computed(self, key: str) -> bool:
        """A number the user asked to have worked out, if nobody else wrote it."""
        if self.values.untrusted.full or not any(wish.computed for wish in self.ledger.wishes):
            return False
        return self.values.untrusted.token(key) is None

    # Records

    def _says(self, turn: str) -> Iterator[Wish]:
        return (wish for wish in self.ledger.wishes if turn in wish.turns)

    def _linked(self, key: str) -> bool:
        """A link that a record of the named place holds. Few links, few of one host: else which one is opened could tell
        whoever posted them what the conversation knows."""
        host = re.split(r"[/?#]", key[1:], maxsplit=1)[0]
        labels = host.split(".")
        if len(labels) < 2 or labels[-1] in _INSIDE or not labels[-1].isalpha() or "@" in host or ":" in key:
            return False
        for record in self.ledger.records.linking(key):
            if not any(self._place(record, wish) for wish in self.ledger.wishes if self._asks_for(wish)):
                continue
            links = self.ledger.records.links(record.group)
            same = [link for link in links if re.split(r"[/?#:]", link[1:], maxsplit=1)[0].split(".")[-2:] == labels[-2:]]
            if len(links) <= _MOST_LINKS and len(same) <= _LINKS_OF_A_HOST:
                return True
        return False

    @staticmethod
    def _asks_for(wish: Wish) -> bool:
        """Whether a sentence asks for what stands on pages, or says that what is wanted is in a place."""
        return "web" in wish.objects or ("details" in wish.turns and "search" in wish.verbs)

    def _place(self, record: Record, wish: Wish) -> bool:
        """Whether a sentence names the place a record is from, and nothing in it names another record's field instead."""
        if not record.called or not all(self._in(key, wish) for key in record.called):
            return False
        for field, held in self.ledger.records.values(record.group):
            named = {key for key in held if key[0] == "w" and self._in(key, wish)}
            if named and record.fields.get(field) not in named:
                return False
        return True

    def _in(self, key: str, wish: Wish) -> bool:
        run = key.split(" ")
        if all(part[1:] in self.reader.lexicon.generic or len(part) < 4 for part in run):
            return False
        return all(part in wish.keys for part in run) and bool(self.values.user.places(run))

    def _refunded(self, key: str) -> bool:
        """What a payer the user named has paid, where it is to be paid back and there is one such payment; or the sum of an
        order they named by its number, if that is the shop's own record."""
        records = self.ledger.records
        if records.lost:
            return False
        for wish in self._says("refunds"):
            paid = {
                amount
                for record in records.all
                if record.server == self.call.server and self._paid(record, wish)
                for field, amount in record.fields.items()
                if field in _SUMS
            }
            if paid == {key}:
                return True
        return False

    def _paid(self, record: Record, wish: Wish) -> bool:
        if record.trusted:
            return any(HANDLE.match(field) and self._in(held, wish) for field, held in record.fields.items())
        paid = any(self._in(held, wish) for field, held in record.fields.items() if field in _PAYERS)
        return paid and bool(_PAYEES & record.fields.keys())

    def _described(self, whole: str, words: list[str]) -> bool:
        """A member of the place whom the user described, where every word that is sent is the user's."""
        call = self.call
        if call.destructive or call.intent.binding or not self.ledger.records.member(call.server, whole):
            return False
        kinds = self.reader.concepts(words) or frozenset(("user", "contact"))
        if not any(kinds & wish.objects and call.intent.verbs & wish.verbs for wish in self._says("described")):
            return False
        texts = [value for where, value in leaves(call.arguments) if call.roles.of(where) == frozenset((Role.CONTENT,))]
        return bool(texts) and all(isinstance(text, str) and self._dictated(text) for text in texts)

    def _dictated(self, text: str) -> bool:
        """Whether a text is the user's, in their order, but for a word or two that are short and deny nothing."""
        keys = [token.key for token in tokens(text) if token.key != "."]
        if len(keys) < _LEAST_DICTATED or any(key[0] not in "wn" or (key[0] == "n" and len(key) > 3) for key in keys):
            return False
        at, other = 0, 0
        while at < len(keys):
            length = 0
            while at + length < len(keys) and self.values.user.places(keys[at : at + length + 1]):
                length += 1
            if length >= _RUN or (length and at + length == len(keys) == length):
                at += length
                continue
            if len(keys[at]) > 5 or keys[at][1:] in self.reader.lexicon.negations:
                return False
            other += 1
            at += 1
        return other <= 2

    def _detailed(self, value: Any, run: list[str], words: list[str]) -> bool:
        """A time or a place that stands in a record the user named and said to go by. The call destroys nothing, commits
        nobody, and carries a name of the user's."""
        call = self.call
        if call.destructive or call.read_only or call.intent.binding:
            return False
        if not isinstance(value, str) or len(value) > _PLACE or any(key[0] not in "wndt" for key in run):
            return False
        wishes = [wish for wish in self._says("based") if call.intent.verbs & wish.verbs]
        if not wishes or not self._carries_a_name():
            return False
        named = [record for record in self.ledger.records.all if any(self._names(record, wish) for wish in wishes)]
        if self.ledger.records.lost or not named:
            return False
        if all(key[0] in "dt" for key in run):
            said = {key for record in named[:32] for text in record.texts for key in self._times(text)}
            return all(key in said or self._ends(key, said) for key in run)
        if not set(words) & self.reader.lexicon.roles.get("place", frozenset()):
            return False
        piece = re.compile(rf"(?<!\w){re.escape(fold(value.strip()))}(?!\w)")
        return len(run) >= 2 and any(piece.search(text) for record in named for text in record.texts)

    def _carries_a_name(self) -> bool:
        """Whether what the call makes bears a name that is in the user's words."""
        for where, value in leaves(self.call.arguments):
            run = [token.key for token in tokens(value) if token.key != "."] if isinstance(value, str) else []
            if len(run) >= 2 and where.rpartition(".")[2] in ("title", "name", "subject", "summary") and self.spoken(run):
                return True
        return False

    def _names(self, record: Record, wish: Wish) -> bool:
        """Whether a sentence names a record by its title; a reply has the title of what it answers."""
        for field in ("subject", "title", "name", "topic"):
            run = [key for key in record.fields.get(field, "").split(" ") if key not in _REPLIES]
            if len(run) >= 2 and self._in(" ".join(run), wish):
                return True
        return False

    def _times(self, text: str) -> Iterator[str]:
        for token in tokens(text, self.reader.calendar):
            if token.key[0] in "dt":
                yield token.key
            yield from (reading for reading in token.readings if reading[0] in "dt")

    def _ends(self, key: str, said: set[str]) -> bool:
        """Whether an hour is an end by how long the user said it takes."""
        if key[0] != "t":
            return False
        lengths = {length for moment in self.ledger.moments for length in moment.lengths} or USUAL_LENGTHS
        starts = {minutes(other) for other in said if other[0] == "t"}
        return any((minutes(key) - length) % 1440 in starts for length in lengths)
