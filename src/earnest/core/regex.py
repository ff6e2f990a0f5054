"""Regular expressions in time linear in the text, for `matches` in policy conditions.

Theory. A policy runs on text that a model or a stranger chose, so a pattern may never take more than linear
time. Python's `re` backtracks; this does not. A pattern is parsed into a nondeterministic automaton
(Thompson), and the automaton is run as a deterministic one whose states are made when first met and
remembered up to `MAX_STATES`, after which the memory is emptied and filled anew. Only "does it occur" is
answered, so greed, laziness and groups make no difference. As in RE2, which CEL names for `matches`, a
pattern is searched for anywhere unless it has anchors.

Supported: literals, `.`, classes, `\\d \\w \\s` and their complements (ASCII, as in RE2), `\\b \\B`, `^ $`,
`\\A \\z`, groups (also `(?:…)`, `(?P<name>…)`), `|`, `* + ? {n} {n,} {n,m}` with or without a lazy `?`, and
`(?i)`, `(?s)` at the very start. Back-references and look-around are not regular and are refused. So is a
pattern that expands to more than `MAX_NODES` automaton nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from earnest.core.errors import EarnestError

MAX_NODES: Final = 2000
MAX_STATES: Final = 500

_Ranges = tuple[tuple[int, int], ...]
_TOP: Final = 0x10FFFF
_CLASSES: Final[dict[str, _Ranges]] = {
    "d": ((48, 57),),
    "w": ((48, 57), (65, 90), (95, 95), (97, 122)),
    "s": ((9, 10), (12, 13), (32, 32)),
}
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_SPLIT, _CHARS, _ASSERT, _END = range(4)


def _invert(ranges: _Ranges) -> _Ranges:
    out: list[tuple[int, int]] = []
    at = 0
    for low, high in sorted(ranges):
        if low > at:
            out.append((at, low - 1))
        at = max(at, high + 1)
    if at <= _TOP:
        out.append((at, _TOP))
    return tuple(out)


class _Syntax:
    """Pattern text to a tree: ('chars', ranges) | ('assert', kind) | ('cat', [..]) | ('alt', [..]) | ('rep',
    t, lo, hi)."""

    def __init__(self, pattern: str) -> None:
        self.text = pattern
        self.at = 0
        self.fold = False
        self.dot_all = False
        self.depth = 0

    def fail(self, what: str) -> EarnestError:
        return EarnestError("E1109", f"pattern: {what} at character {self.at + 1} of {self.text!r}")

    def peek(self) -> str:
        return self.text[self.at] if self.at < len(self.text) else ""

    def take(self) -> str:
        char = self.peek()
        if not char:
            raise self.fail("the pattern ends too early")
        self.at += 1
        return char

    def parse(self) -> tuple[object, ...]:
        while self.text.startswith(("(?i)", "(?s)"), self.at):
            self.fold |= self.text[self.at + 2] == "i"
            self.dot_all |= self.text[self.at + 2] == "s"
            self.at += 4
        tree = self.alternatives()
        if self.peek():
            raise self.fail("unbalanced `)`")
        return tree

    def alternatives(self) -> tuple[object, ...]:
        self.depth += 1
        if self.depth > 50:
            raise self.fail("groups are nested too deep")
        branches = [self.sequence()]
        while self.peek() == "|":
            self.at += 1
            branches.append(self.sequence())
        self.depth -= 1
        return branches[0] if len(branches) == 1 else ("alt", branches)

    def sequence(self) -> tuple[object, ...]:
        items: list[tuple[object, ...]] = []
        while self.peek() not in ("", "|", ")"):
            items.append(self.repeated(self.single()))
        return ("cat", items)

    def repeated(self, item: tuple[object, ...]) -> tuple[object, ...]:
        while True:
            char = self.peek()
            if char and char in "*+?":
                self.at += 1
                low, high = {"*": (0, -1), "+": (1, -1), "?": (0, 1)}[char]
            elif char == "{" and (bounds := self.bounds()) is not None:
                low, high = bounds
            else:
                return item
            if self.peek() == "+":
                raise self.fail("possessive quantifiers are not supported")
            if self.peek() == "?":
                self.at += 1
            item = ("rep", item, low, high)

    def bounds(self) -> tuple[int, int] | None:
        end = self.text.find("}", self.at)
        if end < 0:
            return None
        low, comma, high = self.text[self.at + 1 : end].partition(",")
        if not (low.isascii() and low.isdigit()) or (high and not (high.isascii() and high.isdigit())):
            return None  # a literal brace, as in RE2
        if len(low) > 4 or len(high) > 4:
            raise self.fail("a repetition count above 1000")
        least, most = int(low), int(high) if high else (-1 if comma else int(low))
        if least > 1000 or most > 1000 or (most != -1 and most < least):
            raise self.fail("a repetition count above 1000 or out of order")
        self.at = end + 1
        return least, most

    def single(self) -> tuple[object, ...]:
        char = self.take()
        if char == "(":
            if self.peek() == "?":
                if self.text.startswith("?:", self.at):
                    self.at += 2
                elif self.text.startswith(("?P<", "?<"), self.at) and self.text[self.at + 2 : self.at + 3] not in "=!":
                    self.at = self.text.find(">", self.at) + 1
                    if not self.at:
                        raise self.fail("a group name without `>`")
                else:
                    raise self.fail("no look-around, and flags only at the very start: (?i), (?s)")
            inner = self.alternatives()
            if self.take() != ")":
                raise self.fail("a group without `)`")
            return inner
        if char == "[":
            return ("chars", self.char_class())
        if char == ".":
            return ("chars", ((0, _TOP),) if self.dot_all else _invert(((10, 10),)))
        if char == "^":
            return ("assert", "start")
        if char == "$":
            return ("assert", "end")
        if char in "*+?":
            raise self.fail("nothing to repeat")
        if char == "\\":
            return self.escape()
        return ("chars", self.cased(ord(char), ord(char)))

    def escape(self) -> tuple[object, ...]:
        char = self.take()
        if char in "AzbB":
            return ("assert", {"A": "start", "z": "end", "b": "word", "B": "notword"}[char])
        return ("chars", self.escaped(char))

    def escaped(self, char: str) -> _Ranges:
        if char.lower() in _CLASSES:
            return _CLASSES[char] if char.islower() else _invert(_CLASSES[char.lower()])
        if char in _ESCAPES:
            return ((ord(_ESCAPES[char]),) * 2,)
        if char == "x":
            digits = self.take() + self.take()
            try:
                return self.cased(int(digits, 16), int(digits, 16))
            except ValueError:
                raise self.fail("`\\x` wants two hexadecimal digits") from None
        if char.isascii() and char.isalnum():
            raise self.fail(f"`\\{char}` is not supported (back-references are not regular)")
        return self.cased(ord(char), ord(char))

    def char_class(self) -> _Ranges:
        negated = self.peek() == "^"
        self.at += negated
        ranges: list[tuple[int, int]] = []
        first = True
        while first or self.peek() != "]":
            first = False
            char = self.take()
            if char == "[" and self.peek() == ":":
                raise self.fail("POSIX classes are not supported")
            low = self.escaped(self.take()) if char == "\\" else self.cased(ord(char), ord(char))
            if self.peek() == "-" and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                char = self.take()
                high = self.escaped(self.take())[0][0] if char == "\\" else ord(char)
                if low[0][0] > high or low[0][0] != low[0][1]:
                    raise self.fail("a range out of order")
                ranges.extend(self.cased(low[0][0], high))
            else:
                ranges.extend(low)
        self.take()
        return _invert(tuple(ranges)) if negated else tuple(ranges)

    def cased(self, low: int, high: int) -> _Ranges:
        if not self.fold:
            return ((low, high),)
        out = [(low, high)]
        for shift, first, last in ((32, 65, 90), (-32, 97, 122)):
            if max(low, first) <= min(high, last):
                out.append((max(low, first) + shift, min(high, last) + shift))
        return tuple(out)


class Regex:
    """A compiled pattern. `search` is a pure function of the text; the memory inside only makes it faster."""

    __slots__ = ("_built", "_cache", "_nodes", "_start", "pattern")

    def __init__(self, pattern: str) -> None:
        """Compile. Raises `EarnestError` E1109 where the pattern is malformed, not regular or too large."""
        self.pattern = pattern
        self._nodes: list[tuple[int, object, int, int]] = []
        self._built = 0
        tree = _Syntax(pattern).parse()
        end = self._add(_END, None)
        self._start = self._build(tree, end)
        self._cache: dict[tuple[frozenset[int], str, bool], tuple[frozenset[int], bool]] = {}

    def _add(self, kind: int, what: object, one: int = -1, two: int = -1) -> int:
        if len(self._nodes) >= MAX_NODES:
            raise EarnestError("E1109", f"pattern: too large once its repetitions are written out: {self.pattern!r}")
        self._nodes.append((kind, what, one, two))
        return len(self._nodes) - 1

    def _build(self, tree: tuple[object, ...], after: int) -> int:
        """Nodes for `tree` that go on to `after`; returns where they start."""
        self._built += 1
        if self._built > 10 * MAX_NODES:
            raise EarnestError("E1109", f"pattern: too large once its repetitions are written out: {self.pattern!r}")
        kind = tree[0]
        if kind == "chars":
            return self._add(_CHARS, tree[1], after)
        if kind == "assert":
            return self._add(_ASSERT, tree[1], after)
        if kind == "cat":
            for item in reversed(tree[1]):  # type: ignore[call-overload]
                after = self._build(item, after)
            return after
        if kind == "alt":
            starts = [self._build(branch, after) for branch in tree[1]]  # type: ignore[attr-defined]
            at = starts[-1]
            for start in reversed(starts[:-1]):
                at = self._add(_SPLIT, None, start, at)
            return at
        _, item, low, high = tree
        assert isinstance(item, tuple) and isinstance(low, int) and isinstance(high, int)
        if high == -1:
            loop = self._add(_SPLIT, None, -1, after)
            body = self._build(item, loop)
            self._nodes[loop] = (_SPLIT, None, body, after)
            after = loop
        else:
            end = after
            for _ in range(high - low):
                after = self._add(_SPLIT, None, self._build(item, after), end)
        for _ in range(low):
            after = self._build(item, after)
        return after

    def _close(self, nodes: frozenset[int], before: str, after: str) -> set[int]:
        """All nodes reachable without reading, between the characters `before` and `after` (empty at the
        ends)."""
        word_before = _is_word(before)
        holds: dict[str, Callable[[], bool]] = {
            "start": lambda: before == "",
            "end": lambda: after == "",
            "word": lambda: word_before != _is_word(after),
            "notword": lambda: word_before == _is_word(after),
        }
        seen: set[int] = set()
        todo = list(nodes)
        while todo:
            at = todo.pop()
            if at in seen:
                continue
            seen.add(at)
            kind, what, one, two = self._nodes[at]
            if kind == _SPLIT:
                todo += (one, two)
            elif kind == _ASSERT and holds[str(what)]():
                todo.append(one)
        return seen

    def search(self, text: str) -> bool:
        """Whether the pattern occurs anywhere in `text`."""
        cache = self._cache
        state = frozenset((self._start,))
        before = ""
        for char in text:
            # Only whether the previous character exists and is a word character matters, so that is what is
            # keyed.
            key = (state, char, _is_word(before)) if before else (state, char, None)
            known = cache.get(key)  # type: ignore[arg-type]
            if known is None:
                known = self._step(state, before, char)
                if len(cache) >= MAX_STATES:
                    cache.clear()
                cache[key] = known  # type: ignore[index]
            state, found = known
            if found:
                return True
            before = char
        return any(self._nodes[at][0] == _END for at in self._close(state, before, ""))

    def _step(self, state: frozenset[int], before: str, char: str) -> tuple[frozenset[int], bool]:
        closed = self._close(state, before, char)
        point = ord(char)
        following = {self._start}
        for at in closed:
            kind, what, one, _ = self._nodes[at]
            if kind == _END:
                return frozenset(), True
            if kind == _CHARS and any(low <= point <= high for low, high in what):  # type: ignore[attr-defined]
                following.add(one)
        return frozenset(following), False


def _is_word(char: str) -> bool:
    return char != "" and char.isascii() and (char.isalnum() or char == "_")


def glob(pattern: str, text: str) -> bool:
    """Whether `text` is matched whole by `pattern`, where `*` is any run of characters and `?` any one."""
    p = t = 0
    star, mark = -1, 0
    while t < len(text):
        if p < len(pattern) and pattern[p] == "*":
            star, mark = p, t
            p += 1
        elif p < len(pattern) and pattern[p] in ("?", text[t]):
            p += 1
            t += 1
        elif star >= 0:
            mark += 1
            p, t = star + 1, mark
        else:
            return False
    return all(char == "*" for char in pattern[p:])
