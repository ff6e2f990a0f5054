"""Which of the values that servers are given are secrets.

People write tokens into `env` under any name, so a value counts as a secret unless it plainly is none: a path that exists, a
word or two, a number, a switch, a locale, the address of a site. A name that says what the value is settles it the other way,
except for a path: the file is the secret then, not where it lies.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Final

_NAMED: Final = re.compile(
    r"PASS|PWD|SECRET|TOKEN|(?:^|_|API|ACCESS|AUTH|PRIVATE)KEYS?(?:_|$)|CRED|AUTH(?!OR)|COOKIE|BEARER|DSN|WEBHOOK"
    r"|(?:^|_)PAT(?:_|$)",
    re.IGNORECASE,
)
"""Names of variables whose values are secrets even where they look like ordinary words."""
_WORD: Final = "(?:[a-z]+|[A-Z]+|[A-Z][a-z]+|[0-9]{1,4})"
_WORDS: Final = re.compile(f"{_WORD}(?:[-_./,: ]{_WORD}){{0,3}}")
_LONGEST_WORDS: Final = 20
_VERSION: Final = re.compile("v[0-9]{1,2}")
_NUMBER: Final = re.compile(r"[+-]?[0-9][0-9._,:]{0,15}[A-Za-z%]{0,3}")
_LOCALE: Final = re.compile(r"(?:C|POSIX|[a-z]{2,3}(?:[_-][A-Za-z]{2,4})?)(?:\.[A-Za-z0-9-]{1,12})?(?:@[a-z]{1,12})?")


def secret_values(env: Mapping[str, str]) -> frozenset[str]:
    """Of an environment the values that must not be written down, and the passwords inside addresses among them."""
    return frozenset(
        part for name, value in env.items() if not _harmless(name, value) for part in (value, *_password(value)) if part
    )


def header_values(headers: Mapping[str, str]) -> frozenset[str]:
    """Of headers all values, without the word (`Bearer`) before them, and both halves of what `Basic` carries."""
    return frozenset(part for value in headers.values() for part in (value, *_credentials(value)) if part)


def ordinary(value: str) -> bool:
    """Whether a value plainly is no secret, whatever it is called."""
    value = value.strip()
    if _NUMBER.fullmatch(value) or _LOCALE.fullmatch(value) or _plain_words(value) or _exists(value):
        return True
    if "://" not in value:
        return False
    try:
        parts = urllib.parse.urlsplit(value)
    except ValueError:
        return False
    bare = "@" not in parts.netloc and not parts.query and not parts.fragment
    return bare and all(_VERSION.fullmatch(piece) or _plain_words(piece) for piece in parts.path.split("/") if piece)


def _harmless(name: str, value: str) -> bool:
    return _exists(value.strip()) if _NAMED.search(name) else ordinary(value)


def _plain_words(value: str) -> bool:
    return len(value) <= _LONGEST_WORDS and _WORDS.fullmatch(value) is not None


def _exists(value: str) -> bool:
    """Whether it is a path that is there or could be made (its folder is there), or a list of such."""
    parts = [os.path.expanduser(part) for part in value.split(os.pathsep) if part]
    return bool(parts) and all("\0" not in part and os.path.isabs(part) and _is_place(part) for part in parts)


def _is_place(path: str) -> bool:
    # Every text that begins with a slash lies in the root folder, so that one says nothing.
    parent = os.path.dirname(path.rstrip("/"))
    return os.path.exists(path) or (parent != "/" and os.path.isdir(parent))


def _password(value: str) -> Iterator[str]:
    if "@" in value and "://" in value:
        try:
            password = urllib.parse.urlsplit(value).password
        except ValueError:
            return
        if password:
            yield password
            yield urllib.parse.unquote(password)


def _credentials(value: str) -> Iterator[str]:
    scheme, _, rest = value.partition(" ")
    if not rest:
        return
    yield rest.strip()
    if scheme.lower() == "basic":
        try:
            plain = base64.b64decode(rest, validate=True).decode("utf-8")
        except (binascii.Error, UnicodeDecodeError):
            return
        yield plain
        yield plain.partition(":")[2]
