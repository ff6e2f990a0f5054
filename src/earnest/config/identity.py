"""Who a server is: what trust, labels and pins are keyed by.

Theory. An HTTP server is its origin and path. A stdio server is the program that a command resolves to,
with its arguments. Where the command only fetches or starts a published package (`npx`, `uvx`, a script in
an environment), the package's name takes the place of the program, so that a new version alone keeps trust;
the version and a digest of the artefact stand beside, and evidence hangs on those. Nothing is run or
fetched to find out: only files that are there are read, and what cannot be known stays empty.

A name is as good as where it comes from. So a package found at a path (a project's `node_modules`, a
virtual environment) carries that path in its key, a package from a runner carries every option and setting
that changes the registry, and a specification that is a path, a URL or an alias is no package at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec

from earnest.config import packages
from earnest.config.files import contents
from earnest.config.packages import Package
from earnest.core.errors import EarnestError

_REGISTRY_SETTINGS: Final = {
    "npm": ("npm_config_registry", "npm_config_userconfig", "npm_config_globalconfig", "npm_config_prefix"),
    "pypi": (
        *(
            "UV_INDEX_URL",
            "UV_DEFAULT_INDEX",
            "UV_INDEX",
            "UV_EXTRA_INDEX_URL",
            "UV_FIND_LINKS",
            "UV_CONFIG_FILE",
        ),
        *("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_CONFIG_FILE"),
    ),
}
_QUIET: Final = frozenset({"-y", "--yes", "-q", "--quiet", "--"})
"""Options of a runner that change nothing about what is run."""

_WITH_VALUE: Final = {
    "npx": frozenset({"-p", "--package", "-c", "--call", "-w", "--workspace", "--registry", "--prefix", "--cache"}),
    "uvx": frozenset(
        {
            "--from",
            "--with",
            "--with-editable",
            "--with-requirements",
            "-w",
            "-p",
            "--python",
            "-c",
            "--constraints",
        }
        | {
            "-b",
            "--build-constraints",
            "--overrides",
            "--env-file",
            "-i",
            "--index-url",
            "--index",
            "--default-index",
        }
        | {
            "--extra-index-url",
            "-f",
            "--find-links",
            "--index-strategy",
            "--keyring-provider",
            "--resolution",
        }
        | {
            "--prerelease",
            "--fork-strategy",
            "-C",
            "--config-setting",
            "--link-mode",
            "--cache-dir",
            "--config-file",
        }
        | {"--directory", "--project", "--color", "--python-platform", "--torch-backend", "--exclude-newer"}
        | {"-P", "--upgrade-package", "--reinstall-package", "--refresh-package", "--no-build-package"}
    ),
    "pipx": frozenset({"--spec", "--python", "--pip-args", "-i", "--index-url", "--with"}),
}
_NPM_SPEC: Final = re.compile(r"((?:@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~-][a-z0-9._~-]*)(?:@([A-Za-z0-9.^~*<>=+ |-]*))?", re.I)
_PYPI_SPEC: Final = re.compile(
    r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?:\[[A-Za-z0-9._, -]*\])?(?:(?:@|==)([A-Za-z0-9.+!]+)|[<>=!~][^;@]*)?"
)
_EXACT: Final = re.compile(r"v?\d+(?:\.\d+)*[A-Za-z0-9.+!-]*")
_PYTHON: Final = re.compile(r"(?:python|pypy)(?:\d+(?:\.\d+)?)?(?:\.exe)?")
_MAX_PROGRAM: Final = 512 * 1024 * 1024


class Identity(msgspec.Struct, frozen=True):
    """Who a server is. `key` is what the store keys by. `package` is `npm:NAME`, `pypi:NAME` or empty,
    `version` the installed or exactly requested one or empty, `artefact` `sha256:` of the package's files,
    of the script or of the program, or empty where it cannot be known. `display` is the exact command or
    the address, in full."""

    kind: Literal["stdio", "http"]
    key: str
    package: str
    version: str
    artefact: str
    display: str


def of_url(url: str) -> Identity:
    """The identity of an HTTP server. Raises E1005 for an address without host, or with a user in it."""
    try:
        parts = urllib.parse.urlsplit(url)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        raise EarnestError("E1005", "the address of a server is no URL", "write https://host/path") from None
    scheme = parts.scheme.lower()
    if scheme not in ("http", "https") or not host or "@" in parts.netloc:
        raise EarnestError(
            "E1005",
            "the address of a server needs http or https, a host and no user in it",
            "write https://host/path",
        )
    if ":" in host:
        host = f"[{host}]"
    if port not in (None, {"http": 80, "https": 443}[scheme]):
        host = f"{host}:{port}"
    address = f"{scheme}://{host}{parts.path or '/'}"
    return Identity(kind="http", key=address, package="", version="", artefact="", display=address)


def of_command(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> Identity:
    """The identity of a stdio server.

    `env`: the environment it will be started with (PATH, HOME, registry settings). Raises E1201 (empty
    command, or an executable that is not there or cannot be run), naming it and the PATH that was searched.
    """
    program = executable(argv, env, cwd)
    display = shlex.join(argv)
    inside = os.path.realpath(program).startswith(os.path.join(os.path.realpath(cwd), ""))
    if not inside:
        # A runner that lies in the project is the project's program, whatever it is called.
        run = _runner(argv, env, cwd)
        if run is not None:
            fetched, _, settings, rest = run
            where = f"!{fetched.root}" if fetched.local else ""
            return _of_package(fetched, where, [*settings, "--", *rest], display)
    started, rest = _started(program, argv, cwd)
    package = packages.at_path(started) or _module(program, argv)
    if package is not None:
        # The folder of a Python package holds its version in its name, the one around it does not.
        where = os.path.dirname(package.root) if package.source == "pypi" else package.root
        return _of_package(package, f"!{where}", [os.path.basename(started), *rest], display)
    return Identity(
        kind="stdio",
        key=f"exec:{program}#{_digest(list(argv[1:]))}",
        package="",
        version="",
        artefact=_file_digest(started),
        display=display,
    )


def installed(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> tuple[str, ...] | None:
    """The command that starts what a runner (`npx`, `uvx`) would, where it lies here already; None where it does not, or the
    command is no runner's. A version that the runner would look for anew is taken as it lies here."""
    run = _runner(argv, env, cwd) if argv else None
    if run is None or not run[0].root:
        return None
    package, named, _, rest = run
    program = packages.program(package, named)
    return (program, *rest) if program else None


def _of_package(package: Package, where: str, words: Sequence[str], display: str) -> Identity:
    name = f"{package.source}:{package.name}"
    return Identity(
        kind="stdio",
        key=f"{name}{where}#{_digest(words)}",
        package=name,
        version=package.version,
        artefact=package.artefact(),
        display=display,
    )


def executable(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> str:
    """The absolute path of a command's program, as the system would find it. Raises E1201."""
    name = argv[0] if argv else ""
    if not name:
        raise EarnestError("E1201", "an empty command starts no server", "name the program first", exit_code=3)
    if "/" in name:
        path = os.path.join(cwd, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return os.path.normpath(path)
        why = "cannot be executed" if os.path.exists(path) else "does not exist"
        raise EarnestError("E1201", f"{path} {why}", "correct the path, or its permissions", exit_code=3)
    search = env.get("PATH", os.defpath)
    for folder in search.split(os.pathsep):
        path = os.path.join(cwd, folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return os.path.normpath(path)
    raise EarnestError(
        "E1201",
        f'the program "{name}" was not found in PATH, which is: {search or "(empty)"}',
        _INSTALL.get(name, f"install {name}, or write its absolute path"),
        exit_code=3,
    )


_INSTALL: Final = {
    "npx": "install Node.js, or write the absolute path of npx: clients with a window often have a shorter PATH than a shell",
    "uvx": "install uv, or write the absolute path of uvx: clients with a window often have a shorter PATH than a shell",
}


def _runner(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> tuple[Package, str, list[str], list[str]] | None:
    """The package a runner fetches and starts, the program of it where one is named, what settles where it comes from, and the
    package's own arguments."""
    name, rest = os.path.basename(argv[0]).removesuffix(".cmd"), list(argv[1:])
    if name == "npm" and rest[:1] in (["exec"], ["x"]):
        name, rest = "npx", rest[1:]
    elif name == "uv" and rest[:2] == ["tool", "run"]:
        name, rest = "uvx", rest[2:]
    elif name == "pipx" and rest[:1] == ["run"]:
        rest = rest[1:]
    elif name not in ("npx", "uvx"):
        return None
    options, target, arguments = _options(rest, _WITH_VALUE[name])
    source: Literal["npm", "pypi"] = "npm" if name == "npx" else "pypi"
    names = {"npx": ("-p", "--package"), "uvx": ("--from",), "pipx": ("--spec",)}[name]
    named = _package_option(options, names)
    if named is None or not target or (name == "npx" and {"-c", "--call"} & set(options)):
        return None
    spec = named or target
    found = _parsed(source, spec)
    if found is None:
        return None
    package_name, wanted = found
    exact = wanted if _EXACT.fullmatch(wanted) else ""
    if source == "npm":
        package = packages.npm_for_runner(package_name, spec, exact, env, cwd)
    else:
        package = packages.pypi_for_runner(package_name, exact, env)
    joined = tuple(f"{option}=" for option in names)
    settings = [o for o in options if o not in _QUIET and o != spec and not o.startswith(joined)]
    if named:
        settings.append(target)
    for setting in _REGISTRY_SETTINGS[source]:
        for spelling in {setting, setting.upper()}:
            if spelling in env:
                settings.append(f"{setting}={env[spelling]}")
    if source == "npm":
        project = _file_digest(os.path.join(cwd, ".npmrc"))
        settings += [f".npmrc={project}"] if project else []
    return package, target if named else "", settings, arguments


def _options(rest: list[str], with_value: frozenset[str]) -> tuple[list[str], str, list[str]]:
    """A runner's own options, its target and the target's arguments."""
    options: list[str] = []
    index = 0
    while index < len(rest):
        word = rest[index]
        if word == "--":
            index += 1
            break
        if not word.startswith("-"):
            break
        options.append(word)
        if word in with_value and index + 1 < len(rest):
            index += 1
            options.append(rest[index])
        index += 1
    return options, rest[index] if index < len(rest) else "", rest[index + 1 :]


def _package_option(options: list[str], names: tuple[str, ...]) -> str | None:
    """The one package an option names; empty where none is named, None where several are."""
    values = [options[i + 1] for i, word in enumerate(options[:-1]) if word in names]
    values += [word.partition("=")[2] for word in options for name in names if word.startswith(f"{name}=")]
    return None if len(values) > 1 else (values[0] if values else "")


def _parsed(source: str, spec: str) -> tuple[str, str] | None:
    """Name and wanted version of a package specification; None for a path, a URL or an alias."""
    found = (_NPM_SPEC if source == "npm" else _PYPI_SPEC).fullmatch(spec)
    if found is None:
        return None
    name, wanted = found[1], (found[2] or "")
    return (name, wanted) if source == "npm" else (re.sub(r"[-_.]+", "-", name).lower(), wanted)


def _started(program: str, argv: Sequence[str], cwd: str) -> tuple[str, list[str]]:
    """The file that decides what runs: the script of an interpreter where one is named, else the program."""
    name = os.path.basename(program)
    rest = list(argv[1:])
    if _PYTHON.fullmatch(name) or name in ("node", "nodejs", "bun", "deno"):
        for index, word in enumerate(rest):
            if word in ("-m", "-c", "-e", "-p", "--eval", "--print", "-"):
                break
            if not word.startswith("-"):
                path = os.path.join(cwd, word)
                return (path, rest[:index] + rest[index + 1 :]) if os.path.isfile(path) else (program, rest)
    return program, rest


def _module(program: str, argv: Sequence[str]) -> Package | None:
    """The package behind `python -m MODULE`, looked for in the interpreter's own environment."""
    if not _PYTHON.fullmatch(os.path.basename(program)):
        return None
    for index, word in enumerate(argv[1:-1], 1):
        if word == "-m":
            return packages.pypi_module(program, argv[index + 1])
        if not word.startswith("-"):
            return None
    return None


def _digest(words: Sequence[str]) -> str:
    """Sixteen bytes of SHA-256 over the words, in hex; lengths are part of it."""
    text = json.dumps(list(words)).encode("utf-8", "surrogateescape")
    return hashlib.sha256(text).hexdigest()[:32]


def _file_digest(path: str) -> str:
    try:
        return "sha256:" + hashlib.sha256(contents(path, _MAX_PROGRAM).data).hexdigest()
    except OSError:
        return ""
