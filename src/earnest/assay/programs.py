"""From a command as a person types it to one that runs in a box: what of this machine it needs, and what is put in its place.

Inside a box there is no home of the person's; what the command needs to run at all is found by `sandbox.runtimes`. What it
names
besides, folders and files to work on, is never the person's:
the fixture takes its place, and the argument is written anew. Values of settings that are secrets become dummies.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from earnest.assay.fixture import Fixture
from earnest.core.errors import EarnestError
from earnest.sandbox.runtimes import needs
from earnest.upstream.starting import find_executable

_SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/nix", "/snap", "/etc")
_CODE: Final = (
    ".py",
    ".js",
    ".mjs",
    ".cjs",
    ".ts",
    ".mts",
    ".jar",
    ".rb",
    ".sh",
    ".php",
    ".wasm",
    ".pl",
    ".lua",
    ".exe",
    ".dll",
)
_SECRET: Final = re.compile(
    r"/\.(?:ssh|gnupg|aws|azure|kube|docker|config/gcloud|netrc|pypirc|npmrc)(?:/|$)|\.(?:pem|key|p12|pfx)$"
)
_DATABASES: Final = (".db", ".sqlite", ".sqlite3", ".db3")
_INHERITED: Final = frozenset({"PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "NODE_PATH", "JAVA_HOME"})
_NEEDED: Final = re.compile(r"\b([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\b")
_NO_SETTING: Final = frozenset(
    {"NODE_MODULES", "MODULE_NOT_FOUND", "ERR_MODULE_NOT_FOUND", "NODE_OPTIONS", "ERR_INVALID_ARG_TYPE"}
)


class Started(msgspec.Struct, frozen=True):
    """A command for inside. `folders` of this machine are laid in at their own paths, copied on write; `programs` is what the
    box shows of the server's own installation; `sources` may be mined for literals; `notes` tell the person what was put in the
    place of what."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    folders: tuple[str, ...]
    programs: tuple[str, ...]
    sources: tuple[str, ...]
    notes: tuple[str, ...] = ()


def prepared(
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: str,
    fixture: Fixture,
    *,
    home: str,
    given: Mapping[str, str],
    shared: Sequence[str] = (),
    keep: bool = False,
) -> Started:
    """A command made ready. `env`: the environment of who calls; only what every program needs of it is passed on. `given`:
    settings meant for this server. `home`: the person's. `shared`: folders to lay in as they are (copied on write). `keep`: no
    argument is written anew.

    Raises E1201 where there is no such command.
    """
    executable = find_executable(argv[0], env.get("PATH", os.defpath), cwd)
    roots: list[str] = list(shared)
    sources: list[str] = []
    notes: list[str] = []
    sources += _own_source(os.path.realpath(executable))
    words = [executable]
    after = ""
    for word in argv[1:]:
        words.append(_argument(word, after, cwd, fixture, roots, sources, notes, home, shared, keep))
        after = word
    inside = {name: env[name] for name in sorted(_INHERITED & env.keys())}
    inside |= {"HOME": fixture.home, "USER": "ada", "LOGNAME": "ada", "SHELL": "/bin/sh", "TMPDIR": "/tmp"}
    for name, value in given.items():
        inside[name] = value if keep else _setting(value, cwd, fixture, notes, name, home, shared)
    programs = needs(words, inside, fixture.workspace, home).paths
    folders = tuple(root for root in dict.fromkeys(roots) if not any(related(root, one) for one in programs))
    return Started(tuple(words), inside, fixture.workspace, folders, programs, tuple(dict.fromkeys(sources)), tuple(notes))


def related(one: str, other: str) -> bool:
    """Whether one path lies in the other."""
    return one == other or one.startswith(other + "/") or other.startswith(one + "/")


def _environment(path: str) -> str | None:
    folder = os.path.dirname(path)
    for _ in range(3):
        if os.path.isfile(os.path.join(folder, "pyvenv.cfg")):
            return folder
        folder = os.path.dirname(folder)
    return None


def _site_packages(root: str) -> Iterable[str]:
    library = os.path.join(root, "lib")
    for name in sorted(os.listdir(library)) if os.path.isdir(library) else ():
        folder = os.path.join(library, name, "site-packages")
        if name.startswith("python") and os.path.isdir(folder):
            yield folder


def _own_source(path: str) -> list[str]:
    """Where the server's own source is: its package, not what it depends on."""
    before, modules, rest = path.partition("/node_modules/")
    if modules:
        parts = rest.split("/")
        return [os.path.join(before, "node_modules", *parts[: 2 if rest.startswith("@") else 1])]
    if path.endswith(_CODE):
        return [path]
    environment = _environment(path)
    if environment is None:
        return []
    text = _text(path)
    found = []
    for module in re.findall(r"^\s*(?:from|import) ([A-Za-z_]\w*)", text, re.M):
        for folder in _site_packages(environment):
            for place in (os.path.join(folder, module), os.path.join(folder, module + ".py")):
                if os.path.exists(place) and module not in ("sys", "re", "importlib"):
                    found.append(place)
    return found


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(200_000)
    except OSError:
        return ""


# what the command works on


def _argument(
    word: str,
    after: str,
    cwd: str,
    fixture: Fixture,
    roots: list[str],
    sources: list[str],
    notes: list[str],
    home: str,
    shared: Sequence[str],
    keep: bool,
) -> str:
    option, equals, value = word.partition("=") if word.startswith("-") else ("", "", word)
    if word.startswith("-") and not equals:
        return word
    if "://" in value or not value:
        return word
    path = os.path.normpath(os.path.join(cwd, os.path.expanduser(value)))
    name = option or (after if after.startswith("-") else "")
    exists = os.path.exists(path)
    if exists and _is_program(path, name):
        sources += _own_source(os.path.realpath(path))
        if os.path.isdir(path):
            roots.append(path)
        return f"{option}{equals}{path}"
    if keep or any(path == one or path.startswith(one + "/") for one in shared):
        return f"{option}{equals}{path}" if exists else word
    if not exists and not _looks_like_path(value):
        return word
    target = _stand_in(path, name, fixture, roots)
    if target != path:
        notes.append(f"{word} became {option}{equals}{target}")
    return f"{option}{equals}{target}"


def _is_program(path: str, name: str) -> bool:
    if os.path.isfile(path):
        return path.endswith(_CODE) or (os.access(path, os.X_OK) and not path.endswith(_DATABASES))
    if name in ("--directory", "--project", "--prefix", "--from", "-C"):
        return True
    parts = os.listdir(path) if os.access(path, os.R_OK) else []
    return "node_modules" in parts or "pyvenv.cfg" in parts


def _looks_like_path(value: str) -> bool:
    return value.startswith(("/", "./", "../", "~/")) or value.endswith(_DATABASES)


def _stand_in(path: str, name: str, fixture: Fixture, roots: list[str]) -> str:
    """What of the fixture takes the place of a path."""
    base = os.path.basename(path)
    ending = os.path.splitext(base)[1].lower()
    if os.path.isfile(path) and ending not in _DATABASES and not _SECRET.search(path):
        roots.append(path)  # a server's settings, most often; what is changed in it is changed inside alone
        return path
    if ending in _DATABASES:
        return fixture.database
    if os.path.isdir(os.path.join(path, ".git")) or re.search(r"repo", name):
        return fixture.repository
    if os.path.isdir(path) or not ending:
        return fixture.workspace
    return fixture.file(base)


def _setting(value: str, cwd: str, fixture: Fixture, notes: list[str], name: str, home: str, shared: Sequence[str]) -> str:
    if not value.startswith(("/", "~/")) or any(value == one or value.startswith(one + "/") for one in shared):
        return value
    if value.startswith(tuple(one + "/" for one in _SYSTEM)):
        return value
    target = _stand_in(os.path.expanduser(value), "", fixture, [])
    notes.append(f"{name}={value} became {target}")
    return target


def wanted_settings(words: str, present: Mapping[str, str]) -> dict[str, str]:
    """Settings that a server which would not start says it needs, with dummies for them."""
    found = {}
    for name in dict.fromkeys(_NEEDED.findall(words)):
        if name in present or name in _NO_SETTING or name.startswith(("ERR_", "NODE_", "LC_", "E1")):
            continue
        found[name] = "https://example.com" if name.endswith(("URL", "URI", "HOST", "ENDPOINT")) else "dummy-0123456789abcdef"
    return dict(list(found.items())[:8])


def refuse_runner(argv: Sequence[str]) -> None:
    """Raises E1953 for commands that fetch what they run: inside a box there is nothing to fetch from."""
    name = os.path.basename(argv[0])
    if name in ("docker", "podman"):
        raise EarnestError(
            "E1953",
            f"{name} starts its containers outside of any sandbox of ours, so what the server does there cannot be seen",
            "Install the server itself and give its own command.",
        )
