"""Values as they are compared: text to typed tokens in one normal form.

Theory. Two values are the same if their tokens are. A token is whole: `bob@x.example` does not hold `bob`, and
`shop.example/a` is not `shop.example`. So text is read from left to right by one expression whose kinds exclude each other, and
each token carries its kind in the first letter of its key:

    e e-mail   u URL or host   i IBAN   d date   t time   n number   p path or file name   w word, name, id   . end of a
    sentence

Normal form is NFKC and case folding for all; hosts in their IDNA form, without scheme `http(s)`, `www.`, default port
and last slash; an IBAN without blanks; numbers without separators and without trailing zeros. What may be read in two ways
(`1.000`,
`05/06/2024`) has a second reading, which counts only where a person wrote it (`readings`). Scripts that put no blanks between
words (Han, Kana, Hangul) give one token a character, so that their names are phrases.

Names of months, number words and hours are a matter of language: a `Calendar` brings them. Nothing here knows where a
text came from.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

_CJK: Final = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f"
_W: Final = rf"[^\W{_CJK}]"
_BREAK: Final = "."
_TLDS: Final = frozenset(  # those people write without a scheme, and reserved ones
    [
        "com",
        "org",
        "net",
        "edu",
        "gov",
        "mil",
        "int",
        "info",
        "biz",
        "io",
        "dev",
        "ai",
        "app",
        "co",
        "me",
        "ly",
        "to",
        "tv",
        "cc",
        "xyz",
        "site",
        "online",
        "shop",
        "store",
        "cloud",
        "page",
        "link",
        "click",
        "top",
        "eu",
        "uk",
        "de",
        "at",
        "ch",
        "fr",
        "es",
        "it",
        "nl",
        "be",
        "se",
        "no",
        "dk",
        "fi",
        "pl",
        "cz",
        "pt",
        "gr",
        "ru",
        "ua",
        "cn",
        "jp",
        "kr",
        "tw",
        "hk",
        "sg",
        "in",
        "au",
        "nz",
        "ca",
        "us",
        "br",
        "mx",
        "ar",
        "cl",
        "za",
        "il",
        "tr",
        "test",
        "example",
        "invalid",
        "local",
        "internal",
        "onion",
    ]
)
_PARTS: Final = (
    ("u", r"(?:https?|ftps?|wss?|ssh|sftp|git|file|data|javascript|vbscript):[^\s<>\"`]+|www\.[^\s<>\"`]+"),
    (
        "e",
        r"(?:mailto:)?[a-z0-9_][a-z0-9_.+'%-]*@[a-z0-9\u00df-\u06ff](?:[a-z0-9\u00df-\u06ff-]*[a-z0-9\u00df-\u06ff])?"
        r"(?:\.[a-z0-9\u00df-\u06ff](?:[a-z0-9\u00df-\u06ff-]*[a-z0-9\u00df-\u06ff])?)+",
    ),
    ("i", r"(?<![^\W_])[a-z]{2}\d{2}(?:[ -]?[a-z0-9]{4}){2,7}(?:[ -]?[a-z0-9]{1,4})?(?![^\W_])"),
    (
        "d",
        r"(?<![\d/.-])\d{4}-\d{1,2}-\d{1,2}(?=t\d|[^\w-]|$)|(?<![\d/.-])\d{4}/\d{1,2}/\d{1,2}(?![\d/])"
        r"|(?<![\d/.-])\d{1,2}(?P<mark>[/.-])\d{1,2}(?P=mark)\d{4}(?![\d/-])|(?:\d{4} ?年 ?)?\d{1,2} ?月 ?\d{1,2} ?[日号]"
        r"|(?:\d{4} ?년 ?)?\d{1,2} ?월 ?\d{1,2} ?일",
    ),
    (
        "t",
        r"(?<=t)\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:z|[+-]\d{2}:?\d{2})?(?!\w)"
        r"|(?<![\w:.])\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?: ?[ap]\.?m\.?)?(?![\w:])"
        r"|(?<![\w:.])\d{1,2} ?[ap]\.?m\.?(?!\w)|(?<![\w:.])\d{1,2}h\d{2}(?!\w)|(?<![\w:.])\d{1,2} uhr(?! \d)(?!\w)"
        r"|(?:上午|下午|午前|午後|晚上|早上)? ?\d{1,2} ?[点點时時](?: ?\d{1,2} ?分)?(?:半)?",
    ),
    ("n", r"(?<![\w.,-])[-+]?[$€£¥₹₩]? ?\d{1,3}(?:[,.'’]\d{3})+(?:[.,]\d+)?(?![\w]|[.,]\d)"),
    ("n", rf"(?:(?<![\w.])|(?<=[{_CJK}]))[-+]?[$€£¥₹₩]?\d+(?:[.,]\d+)?(?:st|nd|rd|th)?(?![\w]|[.,:/-]\d|-\w)"),
    ("n", rf"(?:(?<![\w.])|(?<=[{_CJK}]))\d+(?:[.,]\d+)?(?=[{_CJK}])"),
    ("p", rf"(?:[a-z]:[\\/]|~?/|\.{{1,2}}/)[^\s\"'`<>|;,(){{}}{_CJK}]*"),
    ("p", rf"{_W}[\w.+-]*(?:[/\\][\w.+@~-]+)+/?"),
    ("p", rf"\.?{_W}(?:(?:(?![{_CJK}])[\w+-])*)(?:\.(?:(?![{_CJK}])[\w+-])+)+"),
    ("p", r"\.[a-z][\w-]+"),
    ("c", rf"[{_CJK}]"),
    ("w", rf"{_W}(?:(?:(?![{_CJK}])[\w'’+#&-])*(?:(?![{_CJK}])[\w+#]))?"),
    (_BREAK, r"[.!?;](?=\s|$)|[。！？；]|\n"),
)
_MASTER: Final = re.compile("|".join(f"(?P<k{number}>{pattern})" for number, (_, pattern) in enumerate(_PARTS)))
_PLAIN: Final = re.compile(r"[\s,\"'(]*(?<![^\s,\"'(])([a-z]+)(?:['’]s)?(?=[\s,\")]|[.!?;](?:\s|$)|$)")
_KIND: Final = {f"k{number}": kind for number, (kind, _) in enumerate(_PARTS)}
_TRAILING: Final = ".,;:!?)]}>'\"…。，、；：！？）】」』”’*_"
_HEX_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class Calendar(msgspec.Struct, frozen=True):
    """Words of the languages for what is compared as a number: month names (1 to 12), number words, named hours (`HH:MM`),
    units of time in minutes, and words that may stand inside a date (`of`, `de`)."""

    months: Mapping[str, int] = {}
    numbers: Mapping[str, str] = {}
    hours: Mapping[str, str] = {}
    durations: Mapping[str, int] = {}
    between: frozenset[str] = frozenset()


class Token(NamedTuple):
    """One token: `key` with its kind as first letter, place in the folded text, and other readings of the same."""

    key: str
    start: int
    end: int
    readings: tuple[str, ...] = ()


def fold(text: str) -> str:
    """The form in which texts are compared: NFKC and case folding."""
    return text.casefold() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


def tokens(text: str, calendar: Calendar | None = None) -> list[Token]:
    """The tokens of a text. With a calendar, dates, numbers and hours in words are read too."""
    folded = fold(text)
    found: list[Token] = []
    at, end = 0, len(folded)
    scan, plain = _MASTER.search, _PLAIN.match
    while at < end:
        # Most words are words: what stands between blanks and is all letters can be nothing else.
        match = plain(folded, at)
        if match is not None and "\n" not in match.group():
            start, stop = match.span(1)
            found.append(Token("w" + match.group(1), start, stop))
            at = match.end()
            continue
        match = scan(folded, at)
        if match is None:
            break
        kind = _KIND[match.lastgroup] if match.lastgroup else "w"
        start, at = match.span()
        token, at = _token(kind, match.group(), start, at)
        found.append(token)
        if kind == "d" and folded.startswith("t", at) and folded[at + 1 : at + 2].isdigit():
            at += 1  # `2024-05-19T10:00`
    return _spoken(found, calendar) if calendar is not None else found


def keys(text: str) -> tuple[str, ...]:
    """The keys of a text alone."""
    return tuple(token.key for token in tokens(text))


def number_key(value: int | float) -> str:
    """The key of a JSON number."""
    return "n" + plain_number(repr(value))


def plain_number(text: str) -> str:
    """A number without exponent, leading zeros, sign `+` and trailing zeros; the text itself if it is none."""
    try:
        if "e" in text or "E" in text:
            text = format(float(text), "f") if abs(float(text)) < 1e15 else text
    except ValueError:
        return text
    sign = "-" if text.startswith("-") else ""
    whole, _, part = text.lstrip("+-").partition(".")
    whole, part = whole.lstrip("0") or "0", part.rstrip("0")
    if whole == "0" and not part:
        sign = ""
    return f"{sign}{whole}.{part}" if part else f"{sign}{whole}"


def minutes(key: str) -> int:
    """Minutes since midnight of a time token."""
    hour, minute = key[1:].split(":")[:2]
    return int(hour) * 60 + int(minute)


def leaves(value: Any, path: str = "") -> list[tuple[str, Any]]:
    """All scalars of a JSON value with their paths; `null` is none. Depth and number are the caller's to bound."""
    found: list[tuple[str, Any]] = []
    stack: list[tuple[str, Any]] = [(path, value)]
    while stack:
        where, item = stack.pop()
        if isinstance(item, Mapping):
            stack.extend((f"{where}.{key}" if where else str(key), item[key]) for key in reversed(list(item)))
        elif isinstance(item, Sequence) and not isinstance(item, str | bytes):
            stack.extend((f"{where}[]", part) for part in reversed(item))
        elif item is not None:
            found.append((where, item))
    return found


def is_identifier(text: str) -> bool:
    """Whether a text is a UUID: nothing that could be read as a sentence."""
    return _HEX_ID.fullmatch(text.casefold()) is not None


def _token(kind: str, text: str, start: int, end: int) -> tuple[Token, int]:
    if kind == "c":
        return Token("w" + text, start, end), end
    if kind == _BREAK:
        return Token(_BREAK, start, end), end
    if kind in "up":
        kept = text.rstrip(_TRAILING) or text
        end = start + len(kept)
        return (_path(kept, start, end) if kind == "p" else Token("u" + url(kept), start, end)), end
    if kind == "e":
        return Token("e" + email(text), start, end), end
    if kind == "i":
        return _iban(text, start, end)
    if kind == "d":
        return _date(text, start, end), end
    if kind == "t":
        return _time(text, start, end), end
    if kind == "n":
        return _number(text, start, end), end
    if text.endswith(("'s", "’s")):
        text = text[:-2]
    return Token("w" + text, start, end), end


def url(text: str) -> str:
    """A URL or host in normal form; other schemes than http(s) stay in front."""
    scheme, mark, rest = text.partition("://")
    if not mark:
        scheme, rest = "", text
        if ":" in text and not text.startswith("www."):
            return text
    if scheme in ("http", "https"):
        scheme = ""
    split = re.match(r"[^/?#]*", rest)
    host = split.group() if split else rest
    tail = rest[len(host) :]
    user, mark, host = host.rpartition("@")
    host = domain(re.sub(r":(?:80|443)?$", "", host))
    host = host.removeprefix("www.")
    if tail in ("/", "/?", "/#"):
        tail = ""
    tail = tail[:-1] if tail.endswith("/") and "?" not in tail else tail
    return (f"{scheme}://" if scheme else "") + user + mark + host + tail


def domain(host: str) -> str:
    """A host in its ASCII form; as it is if it has none."""
    host = host.rstrip(".")
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        return host


def email(text: str) -> str:
    """An e-mail address in normal form."""
    name, _, host = text.removeprefix("mailto:").rpartition("@")
    return f"{name}@{domain(host)}"


def _iban(text: str, start: int, end: int) -> tuple[Token, int]:
    parts = re.split(r"[ -]", text)
    for count in range(len(parts), 0, -1):
        plain = "".join(parts[:count])
        if len(plain) < 15:
            break
        number = int("".join(str(int(letter, 36)) for letter in plain[4:] + plain[:4]))
        if number % 97 == 1 or (count == 1 and len(plain) <= 34 and sum(c.isdigit() for c in plain) >= 10):
            return Token("i" + plain, start, start + len(" ".join(parts[:count]))), start + len(" ".join(parts[:count]))
    return Token("w" + parts[0], start, start + len(parts[0])), start + len(parts[0])


def _date(text: str, start: int, end: int) -> Token:
    figures = [int(figure) for figure in re.findall(r"\d+", text)]
    if len(figures) == 2:
        return Token(f"d{figures[0]:02}-{figures[1]:02}", start, end)
    first, second, third = figures
    if first > 31:
        return Token(f"d{first:04}-{second:02}-{third:02}", start, end)
    day_first, month_first = f"d{third:04}-{second:02}-{first:02}", f"d{third:04}-{first:02}-{second:02}"
    if "." in text or first > 12:
        return Token(day_first, start, end)
    return Token(month_first, start, end, () if second > 12 else (day_first,))


def _time(text: str, start: int, end: int) -> Token:
    figures = [int(figure) for figure in re.findall(r"\d+", text)]
    hour, minute = figures[0], figures[1] if len(figures) > 1 else 30 if "半" in text else 0
    late = re.search(r"p\.?m|下午|午後|晚上", text) is not None
    early = re.search(r"a\.?m|上午|午前|早上", text) is not None
    if late and hour < 12:
        hour += 12
    if early and hour == 12:
        hour = 0
    second = f":{figures[2]:02}" if len(figures) > 2 and figures[2] and ":" in text else ""
    return Token(f"t{hour:02}:{minute:02}{second}", start, end)


def _number(text: str, start: int, end: int) -> Token:
    bare = re.sub(r"[$€£¥₹₩ '’]|(?:st|nd|rd|th)$", "", text)
    marks = re.findall(r"[.,]", bare)
    if not marks:
        plain = bare.lstrip("+-")
        if len(plain) > 1 and plain.startswith("0"):
            return Token("w" + bare, start, end, ("n" + plain_number(bare),))
        return Token("n" + plain_number(bare), start, end)
    if len(set(marks)) == 2:
        decimal = marks[-1]
        other = "," if decimal == "." else "."
        return Token("n" + plain_number(bare.replace(other, "").replace(decimal, ".")), start, end)
    joined = re.sub(r"[.,]", "", bare)
    if len(marks) > 1:
        return Token("n" + plain_number(joined), start, end)
    decimal_reading = "n" + plain_number(bare.replace(",", "."))
    if re.fullmatch(r"[-+]?\d{1,3}[.,]\d{3}", bare) and not bare.lstrip("+-").startswith("0"):
        thousands = "n" + plain_number(joined)
        return (
            Token(thousands, start, end, (decimal_reading,))
            if marks[0] == ","
            else Token(decimal_reading, start, end, (thousands,))
        )
    return Token(decimal_reading, start, end)


def _path(text: str, start: int, end: int) -> Token:
    if "/" not in text and "\\" not in text:
        last = text.rpartition(".")[2]
        if text.count(".") and not text.startswith(".") and last in _TLDS:
            return Token("u" + url(text), start, end)
        if re.fullmatch(r"\d+(?:\.\d+){1,3}", text):
            return Token("u" + text, start, end) if text.count(".") == 3 else Token("w" + text, start, end)
        return Token("p" + text, start, end)
    head = re.split(r"[/\\]", text, maxsplit=1)[0]
    if "." in head.strip(".") and head.rpartition(".")[2] in _TLDS and not head.startswith((".", "~")):
        return Token("u" + url(text), start, end)
    return Token("p" + path(text), start, end)


def path(text: str) -> str:
    """A file path in normal form: forward slashes, no `.` parts, no double or last slash; `..` stays as written."""
    text = text.replace("\\", "/")
    parts = [part for part in text.split("/") if part not in ("", ".")]
    return ("/" if text.startswith("/") else "") + "/".join(parts)


def _spoken(found: list[Token], calendar: Calendar) -> list[Token]:
    """Dates such as `May 15th, 2024` or `15 de mayo`, number words and named hours."""
    result: list[Token] = []
    at = 0
    while at < len(found):
        token = found[at]
        if token.key[0] == "w":
            word = token.key[1:]
            month = calendar.months.get(word.rstrip("."))
            if month is not None:
                merged = _dated(found, at, month, result, calendar)
                if merged is not None:
                    token, at = merged
                    result.append(token)
                    continue
            if word in calendar.numbers:
                token = token._replace(readings=(*token.readings, "n" + calendar.numbers[word]))
            elif word in calendar.hours:
                token = token._replace(readings=(*token.readings, "t" + calendar.hours[word]))
        result.append(token)
        at += 1
    return result


def _day(token: Token) -> int | None:
    if token.key[0] == "n" and token.key[1:].isdigit() and 1 <= int(token.key[1:]) <= 31:
        return int(token.key[1:])
    return None


def _dated(found: list[Token], at: int, month: int, before: list[Token], calendar: Calendar) -> tuple[Token, int] | None:
    """A date around the month's name at `at`: the day after it, or before it with a word such as `of` between."""
    start, after, day = found[at].start, at + 1, None
    if after < len(found) and (day := _day(found[after])) is not None:
        after += 1
    else:
        skip = list(before)
        while skip and skip[-1].key[1:] in calendar.between:
            skip.pop()
        if skip and skip[-1].key == _BREAK:  # `15. Mai`
            skip.pop()
        if skip and (day := _day(skip[-1])) is not None:
            start = skip[-1].start
            del before[len(skip) - 1 :]
    if day is None:
        return None
    while after < len(found) and found[after].key[1:] in calendar.between:
        after += 1
    end, year = found[after - 1].end, ""
    if after < len(found) and re.fullmatch(r"n(?:19|20|21)\d\d", found[after].key):
        year, end, after = found[after].key[1:] + "-", found[after].end, after + 1
    return Token(f"d{year}{month:02}-{day:02}", start, end), after
