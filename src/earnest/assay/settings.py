"""`assay.toml`: a person's own arguments, settings and stubs for one server. Everything in it is optional; `earnest assay init`
writes one from the server's own list of tools."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from earnest.assay.fixture import Fixture
from earnest.core.errors import EarnestError


class Stub(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the fake internet answers to some requests. `host` and `path` are globs (`*` within one part, `**` anything)."""

    host: str
    path: str = "/**"
    method: str = ""
    status: int = 200
    headers: dict[str, str] = {}
    body: str = ""
    json: Any = None
    file: str = ""


class _Server(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    env: dict[str, str] = {}
    folders: list[str] = []
    database: str = ""
    openapi: list[str] = []
    cassettes: list[str] = []


class _Tool(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    arguments: list[dict[str, Any]] = []
    skip: bool = False


class AssaySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    server: _Server = _Server()
    stub: list[Stub] = []
    tools: dict[str, _Tool] = {}

    def arguments(self, fixture: Fixture) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """The arguments given for tools, with `{workspace}`, `{repository}`, `{database}` and `{home}` filled in."""
        return {name: [_filled(one, fixture) for one in tool.arguments] for name, tool in self.tools.items() if tool.arguments}

    @property
    def skipped(self) -> frozenset[str]:
        """Tools that are not called."""
        return frozenset(name for name, tool in self.tools.items() if tool.skip)


def load(path: str) -> AssaySettings:
    """Read a file. Raises E1955 for one that cannot be used, naming the place."""
    try:
        with open(path, encoding="utf-8") as file:
            return read(file.read(), path)
    except OSError as error:
        raise EarnestError("E1955", f"{path}: {error.strerror or error}", "`earnest assay init` writes such a file.") from None
    except UnicodeDecodeError as error:
        raise EarnestError("E1955", f"{path}: {error}", "It is a text in UTF-8.") from None


def read(text: str, path: str) -> AssaySettings:
    """The same of a text that stands at a path."""
    try:
        return msgspec.convert(tomllib.loads(text), AssaySettings)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise EarnestError("E1955", f"{path}: {error}", "docs/assay.md shows what it may hold.") from None


def _filled(value: Any, fixture: Fixture) -> Any:
    if isinstance(value, dict):
        return {key: _filled(inner, fixture) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, fixture) for inner in value]
    if isinstance(value, str):
        for word in ("workspace", "repository", "database", "home"):
            value = value.replace("{" + word + "}", getattr(fixture, word))
    return value


def sketched(tools: Mapping[str, Sequence[Mapping[str, Any]]], fixture: Fixture, command: str) -> str:
    """A file for a server, with the first guess for each tool, to be corrected where the guess is none."""
    lines = [
        f"# Arguments for an assay of: {command}",
        "# For each tool the calls to make, first of all. {workspace}, {repository}, {database} and {home} are the fixture's.",
        "# What you leave out is guessed. `skip = true` leaves a tool out.",
        "",
        "[server]",
        '# env = { API_KEY = "dummy" }           # settings it is started with; never put a real secret here',
        '# folders = ["/path/it/needs"]          # folders laid in as they are; what is written there is thrown away',
        '# database = "postgresql"               # postgresql, mysql or redis, started beside it in the sandbox',
        '# openapi = ["api.json"]                # descriptions of interfaces it calls: answers are made from them',
        '# cassettes = ["recorded.har"]          # or recorded answers (HAR, or VCR as JSON)',
        "",
        "# [[stub]]                              # or single answers",
        '# host = "api.example.com"',
        '# path = "/v1/items/*"',
        '# json = { id = 1, name = "alpha" }',
    ]
    for name, candidates in tools.items():
        lines += ["", f"[tools.{_key(name)}]", "arguments = ["]
        lines += [f"  {_inline(_emptied(one, fixture))}," for one in candidates]
        lines.append("]")
    return "\n".join(lines) + "\n"


def _emptied(value: Any, fixture: Fixture) -> Any:
    if isinstance(value, dict):
        return {key: _emptied(inner, fixture) for key, inner in value.items()}
    if isinstance(value, list):
        return [_emptied(inner, fixture) for inner in value]
    if isinstance(value, str):
        for word in ("database", "workspace", "repository", "home"):
            value = value.replace(getattr(fixture, word), "{" + word + "}")
    return value


def _key(name: str) -> str:
    return name if name.replace("-", "").replace("_", "").isalnum() and name.isascii() else _text(name)


def _text(value: str) -> str:
    return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")


def _inline(value: Any) -> str:
    """A value as TOML on one line; null, which TOML has not, is left out."""
    if isinstance(value, dict):
        return (
            "{ " + ", ".join(f"{_key(k)} = {_inline(v)}" for k, v in value.items() if v is not None) + " }" if value else "{}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(_inline(inner) for inner in value if inner is not None) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _text(value) if isinstance(value, str) else repr(value)
