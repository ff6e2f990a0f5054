"""Values that stand elsewhere: `${env:X}`, `${file:PATH}`, `${keyring:SERVICE/USER}`.

Theory. A value in earnest.toml is a `Template`: its syntax is checked when the file is read, with the place
of a mistake; what it stands for is looked up only when a server is started, and comes wrapped in a
`Secret`. A secret has one way out, `reveal()`, which is called where the value is handed to a process or a
socket and nowhere else. `$${` writes a plain `${`.

A value without references is taken for a secret as well: people do write tokens into files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Final, NoReturn

import msgspec

from earnest.config.document import nearest
from earnest.config.files import contents
from earnest.core.errors import EarnestError

KINDS: Final = ("env", "file", "keyring")
_REFERENCE: Final = re.compile(r"\$\$\{|\$\{([^}]*)(\}?)")
_FILE_LIMIT: Final = 64 * 1024

Keyring = Callable[[str, str], str | None]
"""`(service, user) -> password or None`; may raise anything, which becomes E1009."""


class Secret:
    """A value that is never printed. Equal by value; not ordered, not serialisable, not picklable. `looked_up`: the references
    in it with what they led to."""

    __slots__ = ("_value", "looked_up")

    def __init__(self, value: str, looked_up: tuple[tuple[Reference, str], ...] = ()) -> None:
        self._value = value
        self.looked_up = looked_up

    def reveal(self) -> str:
        """The value itself, for the one place that needs it."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(…)"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not written anywhere")


class Reference(msgspec.Struct, frozen=True):
    """One `${kind:name}`."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"${{{self.kind}:{self.name}}}"


class Template:
    """A value as written: text and references in order, and the field it stands in (`servers.x.env.TOKEN`),
    for messages.

    Its `repr` and `str` show references and hide text, since text may be a token somebody typed.
    """

    __slots__ = ("field", "parts")

    def __init__(self, parts: tuple[str | Reference, ...], field: str) -> None:
        self.parts = parts
        self.field = field

    @property
    def references(self) -> tuple[Reference, ...]:
        """The references, in order."""
        return tuple(part for part in self.parts if isinstance(part, Reference))

    def __repr__(self) -> str:
        return "".join(str(part) if isinstance(part, Reference) else "…" for part in self.parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Template) and other.parts == self.parts

    def __hash__(self) -> int:
        return hash(self.parts)

    def shown(self) -> str:
        """The value with its references unresolved and its text in the clear: for commands and addresses,
        which are shown to a person in full, never for environment or headers."""
        return "".join(str(part) for part in self.parts)

    def resolve(self, env: Mapping[str, str], *, base: str = ".", keyring: Keyring | None = None) -> Secret:
        """Look every reference up.

        `env`: the environment references are looked up in. `base`: the folder relative `${file:…}` paths
        start from. `keyring`: how `${keyring:…}` is asked; the default loads the `keyring` package when
        first needed. Raises E1007 (nothing there), E1008 (a file with wrong modes), E1009 (no keyring),
        each naming variable and field.
        """
        values = [part if isinstance(part, str) else self._look_up(part, env, base, keyring) for part in self.parts]
        found = zip(self.parts, values, strict=True)
        return Secret("".join(values), tuple((part, value) for part, value in found if isinstance(part, Reference)))

    def _look_up(self, reference: Reference, env: Mapping[str, str], base: str, keyring: Keyring | None) -> str:
        if reference.kind == "env":
            if reference.name not in env:
                self._missing(
                    reference,
                    "is not set in the environment",
                    f"set {reference.name}, or write the value another way: ${{file:…}}, ${{keyring:service/user}}",
                )
            return env[reference.name]
        if reference.kind == "file":
            return _read(_join(base, reference.name, env), reference, self.field)
        service, _, user = reference.name.partition("/")
        try:
            value = (keyring or _system_keyring)(service, user)
        except Exception as error:
            raise EarnestError(
                "E1009",
                f"{reference} in {self.field}: the keyring cannot be asked: {error or type(error).__name__}",
                "unlock the keyring, or use ${env:…} or ${file:…}",
            ) from None
        if value is None:
            self._missing(reference, "is not in the keyring", f"store it: keyring set {service} {user}")
        return value

    def _missing(self, reference: Reference, what: str, remedy: str) -> NoReturn:
        raise EarnestError("E1007", f"{reference} in {self.field} {what}", remedy)


def parse(text: str, field: str) -> Template:
    """Check the syntax of one value. Raises E1007 for an unknown kind, an empty name, or a `${` that is not
    closed."""
    parts: list[str | Reference] = []
    at = 0

    def add(piece: str) -> None:
        if parts and isinstance(parts[-1], str):
            parts[-1] += piece
        elif piece:
            parts.append(piece)

    for found in _REFERENCE.finditer(text):
        add(text[at : found.start()])
        at = found.end()
        if found.group() == "$${":
            add("${")
            continue
        kind, colon, name = (found[1] or "").partition(":")
        if not found[2]:
            raise EarnestError("E1007", f'{field}: a "${{" is never closed', 'write "$${" for a plain "${"')
        if kind not in KINDS or not colon:
            hint = f"write ${{env:{kind}}}" if not colon and kind.isidentifier() else nearest(kind, KINDS)
            raise EarnestError("E1007", f"{field}: ${{{found[1]}}} is no variable of earnest's", hint)
        if not name or (kind == "keyring" and not all(name.partition("/")[::2])):
            form = "${keyring:service/user}" if kind == "keyring" else f"${{{kind}:NAME}}"
            raise EarnestError("E1007", f"{field}: ${{{found[1]}}} names nothing", f"write {form}")
        parts.append(Reference(kind, name))
    add(text[at:])
    return Template(tuple(parts), field)


def _join(base: str, path: str, env: Mapping[str, str]) -> str:
    if path.startswith("~/") and env.get("HOME"):
        return os.path.join(env["HOME"], path[2:])
    return os.path.join(base, path)


def _read(path: str, reference: Reference, field: str) -> str:
    """The content of a secret's file, one trailing line end removed."""
    try:
        file = contents(path, _FILE_LIMIT)
    except OSError as error:
        raise EarnestError(
            "E1007",
            f"{reference} in {field}: {path}: {error.strerror}",
            "create the file, or correct the path",
        ) from None
    # Secrets mounted by a container runtime belong to root and are world-readable by design.
    own = file.owner == os.getuid() and file.owner != 0
    if file.mode & 0o022 or (own and file.mode & 0o004):
        raise EarnestError(
            "E1008",
            f"{reference} in {field}: {path} has mode {file.mode:04o}, so others can "
            + ("write it" if file.mode & 0o022 else "read it"),
            f"chmod 600 {path}",
        )
    try:
        text = file.data.decode("utf-8")
    except UnicodeDecodeError:
        raise EarnestError("E1008", f"{reference} in {field}: {path} is not UTF-8 text", "name a text file") from None
    return text.removesuffix("\n").removesuffix("\r")


def _system_keyring(service: str, user: str) -> str | None:
    import keyring  # here, since its back ends take long to load and most configurations never ask

    return keyring.get_password(service, user)
