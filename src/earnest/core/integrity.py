"""The integrity rule: once untrusted content was seen, a call with effect runs unasked only if a trusted origin steers it.

Theory. A call has effect if it is not read-only or can reach outside (a GET can). It passes if all of this holds:

    verb and object     are what the user asked for (`intent`); a read needs no verb, and who says "follow the
                        instructions" leaves the verb open, except for what destroys or binds
    each steering value (destination, selector, amount; unknown roles are all three) is the user's, or came from a trusted
    source;
                        what binds the user to somebody must be the user's
    content             carries no address, link or passage from untrusted text, in no encoding, and no secret; where it can
    reach
                        outside, its addresses and links must be the user's or trusted too

A value is the user's if it stands in their words as whole tokens of its type, or is what these words determine: the id of
the one
record they name, a name they gave the beginning of, the end of a time they said how long, the hour of a day they left open,
a number they asked to have
worked out. The last two are asked about as soon as untrusted text holds the same value.

Exempt are calls that only add, in a closed world, and calls whose effect can be undone, unless they write what something
runs or
obeys later. A call that passes without exemption is `endorsed`: the user's yes, which the confidentiality rule takes too.
Before
untrusted content was seen the rule asks nothing, and endorses what the user's words ask for.

Every look-up that can clear a value is in the user's words or trusted values; what is untrusted can only be looked up to
object. (The
one exception, the id of a record the user named, needs a record in a structured result and is a selector only.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from earnest.core import disguise
from earnest.core.decide import FlowVerdict
from earnest.core.determined import Determined
from earnest.core.intent import Reader, ToolIntent, asked, name_words, named
from earnest.core.ledger import Ledger
from earnest.core.provenance import PASSAGE, Origin, Source, Words
from earnest.core.results import scalar_tokens
from earnest.core.roles import EVERYTHING, ArgumentRoles, Role, Roles
from earnest.core.storage import Memory
from earnest.core.values import Token, leaves, tokens
from earnest.core.verdict import Reason, Remedy, Verdict

RULE: Final = "flow/integrity"
UNDOABLE: Final = "what it changes can be undone"
"""The exemption that holds only if the call is made so that it can be undone."""
_SHOWN: Final = 4
_MOST_VALUES: Final = 2000
_LONG: Final = 60
_SPELLED: Final = "uei"
"""Kinds of tokens that are an address by themselves."""
_SAFETIES: Final = frozenset(
    ("private", "dry", "draft", "safe", "verify", "secure", "encrypted", "confirm", "sandbox", "readonly", "ssl", "tls")
)
"""Words in names of flags that take a safety away when they are false."""
_CONTENT: Final[Roles] = frozenset((Role.CONTENT,))


class Call(msgspec.Struct, frozen=True):
    """One call as the rule sees it: what the tool is known to do, what its name says, what its arguments steer."""

    server: str
    tool: str
    intent: ToolIntent
    roles: ArgumentRoles
    arguments: Any
    read_only: bool = False
    destructive: bool = True
    open_world: bool = True
    can_exfiltrate: bool = True
    undoable: bool = False

    @property
    def has_effect(self) -> bool:
        """Whether the rule has anything to say of it."""
        return not self.read_only or self.can_exfiltrate


class Objection(msgspec.Struct, frozen=True):
    """One thing that speaks against a call: the argument's path, the value, whose it is, what brought it, and what is wrong."""

    path: str
    value: str
    origin: Origin | None
    source: Source | None
    what: str

    def words(self) -> str:
        """For a person."""
        value = self.value if len(self.value) <= _LONG else self.value[:_LONG] + "…"
        shown = f"{self.path} = {value!r}: " if self.path else ""
        brought = f" (from {self.source.words()})" if self.source is not None else ""
        return f"{shown}{self.what}{brought}"


class Integrity(msgspec.Struct, frozen=True):
    """What the rule says: `verdict` None where it says nothing, whether the call is endorsed, and what speaks against it."""

    verdict: FlowVerdict | None
    endorsed: bool
    exempt: str = ""
    objections: tuple[Objection, ...] = ()


NOTHING: Final = Integrity(None, False)


def judge(call: Call, ledger: Ledger, reader: Reader, *, untrusted: bool, memory: Memory | None = None) -> Integrity:
    """The rule on one call. `untrusted`: whether the conversation has seen untrusted content."""
    if not call.has_effect:
        return NOTHING
    found = list(_Judge(call, ledger, reader, untrusted).objections())
    if not found:
        return Integrity(None, True)
    if not untrusted:
        return Integrity(None, False, objections=tuple(found))
    exempt = _exempt(call, reader)
    if exempt:
        return Integrity(None, False, exempt, tuple(found))
    reasons = tuple(Reason(RULE, objection.words(), Verdict.ASK) for objection in found[:_SHOWN])
    if len(found) > _SHOWN:
        reasons = (*reasons, Reason(RULE, f"and {len(found) - _SHOWN} more", Verdict.ASK))
    return Integrity(FlowVerdict(Verdict.ASK, reasons, tuple(_remedies(found))), False, objections=tuple(found))


def _exempt(call: Call, reader: Reader) -> str:
    if call.read_only:
        return ""
    if not call.destructive and not call.open_world and not call.can_exfiltrate:
        exempt = "it only adds, in a closed world"
    elif call.undoable:
        exempt = UNDOABLE
    else:
        return ""
    for path, value in leaves(call.arguments):
        if isinstance(value, str) and call.roles.of(path) != _CONTENT and reader.loaded(value):
            return ""
    return exempt


def _remedies(found: list[Objection]) -> Iterator[Remedy]:
    values = [objection for objection in found if objection.path and objection.value]
    if values:
        first = values[0]
        shown = first.value if len(first.value) <= _LONG else first.value[:_LONG] + "…"
        yield Remedy(f"Name {shown!r} in a prompt of your own, and it is not asked again")
    if any(not objection.path for objection in found):
        yield Remedy("Say in a prompt of your own what is to be done, and to what")
    if any(objection.source is not None and objection.source.tool for objection in found):
        source = next(objection.source for objection in found if objection.source is not None and objection.source.tool)
        yield Remedy(f"If what {source.server or 'the server'}/{source.tool} returns is not written by strangers, label it so")


class _Judge:
    """One judgement. Lives as long as the call is looked at."""

    def __init__(self, call: Call, ledger: Ledger, reader: Reader, untrusted: bool) -> None:
        self.call, self.ledger, self.reader, self.untrusted = call, ledger, reader, untrusted
        self.values = ledger.values
        self.left_open = False
        """Whether the verb is only what a text may ask for, because the user said to follow it."""
        self.determined = Determined(call, ledger, reader, lambda run: self._in_words(run, []))

    def objections(self) -> Iterator[Objection]:
        """Everything that speaks against the call."""
        call = self.call
        yield from self._wanted()
        for number, (path, value) in enumerate(leaves(call.arguments)):
            if number >= _MOST_VALUES:
                yield Objection(path, "", None, None, "the call has more values than are looked at")
                return
            roles = call.roles.of(path)
            if self.untrusted:
                yield from self._content(path, value) if roles == _CONTENT else self._steering(path, value, roles)
        if not isinstance(call.arguments, Mapping):
            yield Objection("", "", None, None, "the arguments are no object")
            return
        known = call.roles
        for name in call.arguments:
            if self.untrusted and known.unlisted(name) and not isinstance(call.arguments[name], str | int | float):
                for key in _member_names(call.arguments[name]):
                    if not self.reader.field(key) and self._positive(tokens(key), binding=False) is None:
                        yield self._bad(name, key, "the name of a member is not in your words")

    def _wanted(self) -> Iterator[Objection]:
        call, wishes = self.call, self.ledger.wishes
        if not wishes:
            yield Objection("", "", None, None, f"what the user asked for is not known, so nothing speaks for {call.tool}")
        elif call.read_only:
            return
        elif call.intent.reading and not call.destructive and not call.can_exfiltrate:
            if not named(call.intent, wishes):
                yield Objection("", "", None, None, f"the user's own words do not speak of what {call.tool} reads")
        elif call.intent.implied and (spelled := self._spelled_out()) is not None:
            # A command is asked for where it stands: "what does `x` do?" beside "run" asks for nothing.
            if not spelled:
                yield Objection("", "", None, None, f"the user's own words do not ask for what {call.tool} does")
        elif asked(call.intent, wishes) or (asked(call.intent, wishes, anywhere=True) and self._thing_named()):
            return
        elif call.destructive or call.intent.binding or not any(wish.delegated for wish in wishes):
            yield Objection("", "", None, None, f"the user's own words do not ask for what {call.tool} does")
        else:
            # "Do what the mail says" leaves the verb open, but not to destroy, and not to commit the user; and not the values:
            # any text that was read could choose among the trusted ones.
            self.left_open = True

    def _spelled_out(self) -> bool | None:
        """Whether each text that steers the call stands in a sentence of the user's with its verb; None if it has no text."""
        intent, found = self.call.intent, None
        for path, value in leaves(self.call.arguments):
            run = {token.key for token in tokens(value) if token.key != "."} if isinstance(value, str) else set()
            if not run or self.call.roles.of(path) == _CONTENT:
                continue
            if not any(run <= wish.keys and intent.verbs & wish.verbs for wish in self.ledger.wishes):
                return False
            found = True
        return found

    def _thing_named(self) -> bool:
        """Whether every destination and selector of the call is in the user's own words, and there is one."""
        found = False
        for path, value in leaves(self.call.arguments):
            if isinstance(value, str) and self.call.roles.of(path) & {Role.DESTINATION, Role.SELECTOR}:
                run = [token.key for token in tokens(value) if token.key != "."]
                if not run or self._generic(run) or not self.values.user.places(run):
                    return False
                found = True
        return found

    # Steering values

    def _steering(self, path: str, value: Any, roles: Roles) -> Iterator[Objection]:
        given, default = self.call.roles.default(path)
        if given and type(value) is type(default) and value == default:
            return
        words = name_words(path.replace("[]", "").rpartition(".")[2])
        if isinstance(value, bool):
            if (value or set(words) & _SAFETIES) and not self._flag_named(words):
                yield self._bad(path, str(value).lower(), "the user's own words do not speak of it")
            return
        if isinstance(value, str) and not value.strip():
            return
        read = scalar_tokens(value)
        found = [token for token in read if token.key != "."]
        if not found:
            yield self._bad(path, str(value), "it holds nothing that can be compared")
            return
        if isinstance(value, str) and "." in path and words[-1:] in (["type"], ["kind"], ["format"]) and len(found) == 1:
            word = found[0].key[1:]
            if word in self.reader.lexicon.generic:  # tells one kind of member from another
                return
        if self.call.can_exfiltrate and (secret := self._secret([token.key for token in found])) is not None:
            yield Objection(path, "", None, secret, "it is a secret, and would leave")
            return
        binding = (self.call.intent.binding or self.left_open) and bool(roles & {Role.DESTINATION, Role.AMOUNT})
        if self._positive(read, binding=binding, words=words) is not None:
            return
        if self.determined.determined(path, value, found, roles, words):
            return
        if self.call.read_only and self._made_of_words(found):
            return
        yield self._bad(path, str(value), self._why(roles, binding))

    def _positive(self, found: list[Token], *, binding: bool, words: list[str] | None = None) -> Origin | None:
        """Whose value this is, or None if nobody's who may steer."""
        run = [token.key for token in found]
        while run and run[-1] == ".":
            run.pop()
        if not run:
            return None
        if self._in_words(run, words or []):
            return Origin.USER
        if len(run) > 1 and all(key[0] in "dt" for key in run) and all(self._in_words([key], []) for key in run):
            return Origin.USER
        if not binding and self._in_trusted(run):
            return Origin.TRUSTED
        return None

    def _in_words(self, run: list[str], words: list[str]) -> bool:
        user = self.values.user
        places = user.places(run)
        if not places and len(run) == 1 and re.fullmatch(r"d\d{4}-\d\d-\d\d", run[0]):
            places = user.places(["d" + run[0][6:]])  # the user left the year open
        if not places:
            return False
        if not self._generic(run):
            return True
        return any(self._beside(user, place, len(run), words) for place in places)

    def _in_trusted(self, run: list[str]) -> bool:
        places = self.values.trusted.places(run)
        if not places:
            return False
        return not self._generic(run) or any(self.values.trusted.whole(place, len(run)) for place in places)

    def _generic(self, run: list[str]) -> bool:
        generic = self.reader.lexicon.generic
        for key in run:
            if key[0] == "n":
                if len(key) > 3:
                    return False
            elif key[0] == "w":
                word = key[1:]
                if word not in generic and (len(word) > 2 or (not word.isascii() and len(run) > 1)):
                    return False
            else:
                return False
        return True

    def _beside(self, user: Words, place: int, length: int, words: list[str]) -> bool:
        near = [key[1:] for key in user.around(place, length, 4) if key[0] == "w"]
        return self.reader.names(self.call.intent, words, near)

    def _flag_named(self, words: list[str]) -> bool:
        return any(self.reader.holds(word, wish) for word in words for wish in self.ledger.wishes)

    def _made_of_words(self, found: list[Token]) -> bool:
        """A question to a read made of words that are each the user's: nothing of anybody else's leaves with it."""
        generic = self.reader.lexicon.generic
        return all(
            token.key[0] not in "uep" and (self.values.user.has(token.key) or token.key[1:] in generic) for token in found
        )

    def _why(self, roles: Roles, binding: bool) -> str:
        if binding:
            if self.left_open:
                return "what to do was left to a text, and it is not in the user's own words"
            return "it commits the user, and is not in the user's own words"
        named_ = "steers the call" if roles == EVERYTHING else "is a " + " and ".join(sorted(roles))
        return f"it {named_}, and is neither in the user's own words nor from a trusted source"

    # Content

    def _content(self, path: str, value: Any) -> Iterator[Objection]:
        if not isinstance(value, str):
            if not isinstance(value, bool | int | float):
                yield self._bad(path, str(value), "it is no data that can be read")
            return
        if not value.strip():
            return
        call = self.call
        for number, text in enumerate((value, *disguise.readings(value))):
            hidden = " (in an encoding)" if number else ""
            found = tokens(text)
            keys = [token.key for token in found]
            if not number and self.values.user.places(_trimmed(keys)):
                return
            for token in found:
                for key in (token.key, *token.readings) if token.key[0] in _SPELLED else ():
                    if self._positive([Token(key, 0, 0)], binding=False) is not None:
                        break
                    if self.values.untrusted.token(key) is not None:
                        yield self._bad(path, key[1:], f"content holds an address from untrusted text{hidden}")
                        return
                    if call.can_exfiltrate or call.open_world or self.values.untrusted.full:
                        yield self._bad(path, key[1:], f"content holds an address that is nobody's{hidden}")
                        return
            brought = self.values.untrusted.passage(keys)
            if brought is not None and self._passage_of_others(keys):
                what = f"content repeats a passage of untrusted text{hidden}"
                yield Objection(path, value, Origin.UNTRUSTED, brought, what)
                return
            if self.values.untrusted.full and not self.values.user.places(keys):
                what = "more untrusted text was read than can be compared with this"
                yield Objection(path, value, Origin.UNTRUSTED, None, what)
                return
            if call.can_exfiltrate and (secret := self._secret(keys)) is not None:
                yield Objection(path, "", None, secret, f"content holds a secret{hidden}")
                return

    def _passage_of_others(self, keys: list[str]) -> bool:
        """Whether a passage that was copied is long enough to be one, and not in the user's words or a trusted source too. Of
        a short one only the middle is found; its ends count if they were read as well and say something by themselves."""
        bare = [key for key in keys if key != "."]
        values, end, start = self.values, 0, 0
        for at in range(len(bare) - 3):
            run = bare[at : at + 4]
            if values.untrusted.passage(run) is None or values.user.places(run) or values.trusted.places(run):
                continue
            if at > end:
                start = at
                while start and self._read_by_itself(bare[start - 1]):
                    start -= 1
            end = at + 4
            while end < len(bare) and self._read_by_itself(bare[end]):
                end += 1
            if end - start >= PASSAGE:
                return True
        return False

    def _read_by_itself(self, key: str) -> bool:
        return self.values.untrusted.token(key) is not None and not self._generic([key])

    def _secret(self, keys: list[str]) -> Source | None:
        if self.values.secrets.empty:
            return None
        for key in keys:
            if len(key) > 5 and not self.values.user.has(key) and key[0] != "." and not self._generic([key]):
                brought = self.values.secrets.token(key)
                if brought is not None:
                    return brought
        return None

    def _bad(self, path: str, value: str, what: str) -> Objection:
        source: Source | None = None
        for text in (value, *disguise.readings(value)):
            for token in tokens(text):
                source = self.values.untrusted.token(token.key) or self.values.untrusted.token("h" + token.key[1:])
                if source is not None:
                    return Objection(path, value, Origin.UNTRUSTED, source, what)
        return Objection(path, value, None, None, what)


def _trimmed(keys: list[str]) -> list[str]:
    end = len(keys)
    while end and keys[end - 1] == ".":
        end -= 1
    return keys[:end]


def _member_names(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from _member_names(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _member_names(inner)
