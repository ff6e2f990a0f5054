"""Installed packages, found by reading files: npm's `package.json`, PyPI's `*.dist-info`. Nothing is run or
fetched.

The digest of an npm package is over the names and contents of its files, nested `node_modules` left out;
that of a Python package over the digests its `RECORD` lists, installers' own files left out, so that it is
the same in every environment. Neither speaks of dependencies.
"""

from __future__ import annotations

import configparser
import glob
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Final, Literal

import msgspec

from earnest.config.files import contents

_MAX_FILES: Final = 20_000
_MAX_FILE: Final = 64 * 1024 * 1024
_INSTALLERS_OWN: Final = ("INSTALLER", "REQUESTED", "RECORD", "direct_url.json", "uv_cache.json")


class Package(msgspec.Struct, frozen=True):
    """A package. `root`: its folder (npm) or its `dist-info` folder (PyPI); empty where it is not installed
    yet. `local`: it was found at a path of the project, not fetched by a runner from a registry."""

    source: Literal["npm", "pypi"]
    name: str
    version: str = ""
    root: str = ""
    local: bool = False

    def artefact(self) -> str:
        """`sha256:…` of the installed files, or the empty string where there are none or far too many."""
        if not self.root:
            return ""
        digest = _tree_digest(self.root) if self.source == "npm" else _record_digest(self.root)
        return f"sha256:{digest}" if digest else ""


def at_path(path: str) -> Package | None:
    """The package a file belongs to, links followed: something under `node_modules`, or a script in an
    environment."""
    real = os.path.realpath(path)
    parts = real.split(os.sep)
    if "node_modules" in parts:
        index = len(parts) - 1 - parts[::-1].index("node_modules")
        length = 2 if parts[index + 1 : index + 2] and parts[index + 1].startswith("@") else 1
        return _npm_at(os.sep.join(parts[: index + 1 + length]), local=True)
    for candidate in (real, os.path.abspath(path)):
        if os.path.basename(os.path.dirname(candidate)) in ("bin", "Scripts"):
            prefix = os.path.dirname(os.path.dirname(candidate))
            for info in _infos(prefix):
                if os.path.basename(candidate) in _scripts(info):
                    return _pypi_at(info, local=True)
    return None


def npm_for_runner(name: str, spec: str, exact: str, env: Mapping[str, str], cwd: str) -> Package:
    """What `npx` would start: the project's own copy if there is one, else its cache's, else not installed
    yet."""
    folder = os.path.abspath(cwd)
    while True:
        found = _npm_at(os.path.join(folder, "node_modules", *name.split("/")), local=True)
        if found is not None and exact in ("", found.version):
            return found
        parent = os.path.dirname(folder)
        if parent == folder:
            break
        folder = parent
    cache = env.get("npm_config_cache") or os.path.join(env.get("HOME", ""), ".npm")
    for manifest in sorted(glob.glob(os.path.join(glob.escape(cache), "_npx", "*", "package.json"))):
        wanted = _json(manifest).get("_npx")
        if isinstance(wanted, dict) and wanted.get("packages") == [spec]:
            root = os.path.join(os.path.dirname(manifest), "node_modules", *name.split("/"))
            found = _npm_at(root, local=False)
            if found is not None:
                return found
    return Package(source="npm", name=name, version=exact)


def pypi_for_runner(name: str, exact: str, env: Mapping[str, str]) -> Package:
    """What `uvx` or `pipx run` would start: an installed tool, or the one fitting copy in uv's cache, or
    not installed."""
    home = env.get("HOME", "")
    data = env.get("XDG_DATA_HOME") or os.path.join(home, ".local", "share")
    tools = env.get("UV_TOOL_DIR") or os.path.join(data, "uv", "tools")
    for info in _infos(os.path.join(tools, name)):
        found = _pypi_at(info, local=False)
        if found is not None and found.name == name and exact in ("", found.version):
            return found
    cache = env.get("UV_CACHE_DIR") or os.path.join(env.get("XDG_CACHE_HOME") or os.path.join(home, ".cache"), "uv")
    pattern = os.path.join(glob.escape(cache), "archive-v0", "*", f"{name.replace('-', '_')}-*.dist-info")
    cached = [found for info in glob.glob(pattern) if (found := _pypi_at(info, local=False)) is not None]
    fitting = [found for found in cached if found.name == name and exact in ("", found.version)]
    # Without a wanted version several copies say nothing about which one uv would take.
    if len({found.version for found in fitting}) == 1:
        return fitting[0]
    return Package(source="pypi", name=name, version=exact)


def program(package: Package, named: str = "") -> str:
    """The path of the program that an installed package brings, of several the one `named`, or else named as the package; empty
    where there is none that can be started by itself."""
    base = package.name.rpartition("/")[2]
    if package.source == "pypi":
        # Below the environment's own folder; a copy in a cache belongs to none.
        prefix = os.path.abspath(os.path.join(package.root, *[".."] * 4))
        scripts = _scripts(package.root)
        found = [os.path.join(prefix, "bin", name) for name in (named, base) if name in scripts]
        found += [os.path.join(prefix, "bin", name) for name in scripts if len(scripts) == 1]
    else:
        declared = _json(os.path.join(package.root, "package.json")).get("bin")
        programs = {base: declared} if isinstance(declared, str) else declared if isinstance(declared, dict) else {}
        paths = [programs[name] for name in (named, base) if name in programs]
        paths += programs.values() if len(programs) == 1 else ()
        found = [os.path.normpath(os.path.join(package.root, path)) for path in paths if isinstance(path, str)]
    return next((path for path in found if os.path.isfile(path) and os.access(path, os.X_OK)), "")


def pypi_module(python: str, module: str) -> Package | None:
    """The package that holds a module, in the environment of an interpreter at a path."""
    top = module.split(".")[0]
    for candidate in (python, os.path.realpath(python)):
        for info in _infos(os.path.dirname(os.path.dirname(candidate))):
            for path, _ in _record(info):
                if path == f"{top}.py" or path.startswith(f"{top}/"):
                    return _pypi_at(info, local=True)
    return None


def _npm_at(root: str, *, local: bool) -> Package | None:
    manifest = _json(os.path.join(root, "package.json"))
    name, version = manifest.get("name"), manifest.get("version")
    if not isinstance(name, str) or not name:
        return None
    return Package(source="npm", name=name, version=version if isinstance(version, str) else "", root=root, local=local)


def _pypi_at(info: str, *, local: bool) -> Package | None:
    name, version = "", ""
    for line in _text(os.path.join(info, "METADATA")).splitlines():
        if not line.strip():
            break
        key, _, value = line.partition(":")
        name = value.strip() if key.lower() == "name" and not name else name
        version = value.strip() if key.lower() == "version" and not version else version
    if not name:
        return None
    name = re.sub(r"[-_.]+", "-", name).lower()
    return Package(source="pypi", name=name, version=version, root=info, local=local)


def _infos(prefix: str) -> list[str]:
    """The `dist-info` folders of an environment; system folders (`dist-packages`) included."""
    found: list[str] = []
    for packages in ("site-packages", "dist-packages"):
        for lib in ("lib/python3*", "local/lib/python3*"):
            found += glob.glob(os.path.join(glob.escape(prefix), lib, packages, "*.dist-info"))
    return sorted(found)


def _scripts(info: str) -> set[str]:
    """The console scripts a package installs."""
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    try:
        parser.read_string(_text(os.path.join(info, "entry_points.txt")))
    except configparser.Error:
        return set()
    names = {name for group in ("console_scripts", "gui_scripts") if parser.has_section(group) for name in parser[group]}
    return names | {os.path.basename(path) for path, _ in _record(info) if re.search(r"\.\./(?:bin|Scripts)/[^/]+$", path)}


def _record(info: str) -> Iterator[tuple[str, str]]:
    """Path and digest of each file in RECORD. Paths with commas are quoted; those are rare enough to stay
    whole."""
    for line in _text(os.path.join(info, "RECORD")).splitlines():
        path, digest, _ = line.rsplit(",", 2) if line.count(",") >= 2 else (line, "", "")
        yield path.strip('"'), digest


def _record_digest(info: str) -> str:
    lines = sorted(
        f"{path},{digest}"
        for path, digest in _record(info)
        if digest and not path.startswith("..") and os.path.basename(path) not in _INSTALLERS_OWN
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest() if lines else ""


def _tree_digest(root: str) -> str:
    whole = hashlib.sha256()
    count = 0
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name != "node_modules")
        for name in sorted(names):
            count += 1
            path = os.path.join(folder, name)
            try:
                inner = hashlib.sha256(contents(path, _MAX_FILE).data).hexdigest()
            except OSError:
                return ""
            if count > _MAX_FILES:
                return ""
            whole.update(json.dumps([os.path.relpath(path, root), inner]).encode())
    return whole.hexdigest()


def _json(path: str) -> dict[str, object]:
    try:
        found = json.loads(contents(path, _MAX_FILE).data)
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _text(path: str) -> str:
    try:
        return contents(path, _MAX_FILE).data.decode("utf-8", "replace")
    except OSError:
        return ""
