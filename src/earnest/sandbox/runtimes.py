"""What a command needs of this machine to run at all: its interpreter, its packages, the server's own folder.

Found by following what the operating system and the runtimes follow: PATH, links, `#!`, `pyvenv.cfg`, `*.pth`,
`node_modules`. What data a command works on is not guessed: that is what folders of a plan are for.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

_SHOWN: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/var", "/nix", "/gnu")
_PROJECT: Final = ("pyproject.toml", "setup.py", "package.json", "deno.json", "go.mod", "Cargo.toml", "Gemfile", "pyvenv.cfg")
_INTERPRETERS: Final = re.compile(r"(python[\d.]*|pypy[\d.]*|node|nodejs|deno|bun|tsx|ruby|perl|php|java|sh|bash|dash|zsh)$")
_HOPS: Final = 20
_PTH_BYTES: Final = 1 << 16


class Needs(NamedTuple):
    """Folders and files to show read-only, and links on the way to them (path, text)."""

    paths: tuple[str, ...]
    links: tuple[tuple[str, str], ...]


def needs(argv: Sequence[str], env: Mapping[str, str], cwd: str, home: str) -> Needs:
    """What `argv` needs that a box does not show anyway. `home`: the person's; neither it nor a folder above is ever named."""
    return _Search(env, cwd, home).run(argv)


class _Search:
    def __init__(self, env: Mapping[str, str], cwd: str, home: str) -> None:
        self._env = env
        self._cwd = cwd
        self._home = os.path.realpath(home)
        self._paths: dict[str, None] = {}
        self._links: dict[str, str] = {}

    def run(self, argv: Sequence[str]) -> Needs:
        self._command(argv[0])
        rest = list(argv[1:])
        if _INTERPRETERS.search(argv[0]):
            # Options may have values of their own; a script is what is there as a file.
            for word in rest[:8]:
                path = os.path.join(self._cwd, word)
                if not word.startswith("-") and os.path.isfile(path):
                    self._script(path)
                    break
        for name in ("PYTHONPATH", "NODE_PATH", "RUBYLIB", "PERL5LIB", "CLASSPATH"):
            for entry in self._env.get(name, "").split(os.pathsep):
                if os.path.isabs(entry) and os.path.exists(entry):
                    self._show(os.path.realpath(entry))
        shown = sorted(self._paths, key=lambda path: (path.count("/"), path))
        paths: list[str] = []
        for path in shown:
            if not any(path.startswith(above + "/") for above in paths):
                paths.append(path)
        links = {path: text for path, text in self._links.items() if not any(path.startswith(above + "/") for above in paths)}
        return Needs(tuple(paths), tuple(links.items()))

    def _command(self, name: str, depth: int = 0) -> None:
        found = os.path.join(self._cwd, name) if "/" in name else shutil.which(name, path=self._env.get("PATH", os.defpath))
        if found is None or depth > 4:
            return
        real = self._follow(os.path.abspath(found))
        self._installation(os.path.abspath(found), real)
        try:
            with open(real, "rb") as file:
                first = file.readline(512)
        except OSError:
            return
        if first.startswith(b"#!"):
            self._script(real)
            words = os.fsdecode(first[2:]).split()
            for word in words[:1] if words and not words[0].endswith("/env") else words[:3]:
                if not word.startswith("-") and "=" not in word:
                    self._command(word, depth + 1)
        elif first[:4] not in (b"\x7fELF", b"\xcf\xfa\xed\xfe"):
            self._script(real)

    def _follow(self, path: str) -> str:
        """The file at the end of links, each of which the box needs too, in any part of the path."""
        for _ in range(_HOPS):
            parts = path.split("/")
            for place in range(2, len(parts) + 1):
                part = "/".join(parts[:place])
                if os.path.islink(part):
                    text = os.readlink(part)
                    self._link(part, text)
                    if place == len(parts):
                        self._venv(part)
                    path = os.path.normpath(os.path.join(os.path.dirname(part), text, *parts[place:]))
                    break
            else:
                return path
        return path

    def _link(self, path: str, text: str) -> None:
        if not _is_shown(path):
            self._links[path] = text

    def _venv(self, path: str) -> None:
        """The virtual environment a program lies in, and what it is built on."""
        folder = os.path.dirname(os.path.dirname(path))
        try:
            with open(os.path.join(folder, "pyvenv.cfg")) as file:
                settings = dict(line.replace(" ", "").rstrip("\n").split("=", 1) for line in file if "=" in line)
        except (OSError, UnicodeDecodeError):
            return
        self._show(folder)
        base = settings.get("home", "")
        if os.path.isabs(base):
            for name in ("python3", "python"):
                program = os.path.join(base, name)
                if os.path.exists(program):
                    self._installation(program, self._follow(program))
                    break
        self._editable(folder)

    def _editable(self, folder: str) -> None:
        """Folders that `*.pth` files of a virtual environment name: packages installed for working on them."""
        library = os.path.join(folder, "lib")
        for version in _listed(library):
            packages = os.path.join(library, version, "site-packages")
            for name in _listed(packages):
                if name.endswith(".pth"):
                    try:
                        with open(os.path.join(packages, name), encoding="utf-8", errors="ignore") as file:
                            lines = file.read(_PTH_BYTES).splitlines()
                    except OSError:
                        continue
                    for line in lines:
                        if os.path.isabs(line.strip()) and os.path.isdir(line.strip()):
                            self._show(os.path.realpath(line.strip()))

    def _installation(self, found: str, real: str) -> None:
        """What a program was installed with: the folder around `bin`, its `node_modules`, or the program alone."""
        self._venv(found)
        self._venv(real)
        parts = real.split("/")
        if "node_modules" in parts:
            self._show("/".join(parts[: parts.index("node_modules") + 1]))
            return
        folder, name = os.path.split(real)
        prefix = os.path.dirname(folder)
        if os.path.basename(folder) in ("bin", "sbin", "Scripts") and not self._is_wide(prefix):
            if os.path.basename(prefix) == ".local":
                for part in (real, os.path.join(prefix, "lib")):
                    if os.path.exists(part):
                        self._show(part)
            else:
                self._show(prefix)
            return
        self._show(real)
        if name.startswith(("node", "python")) and os.path.isdir(os.path.join(folder, "lib")):
            self._show(os.path.join(folder, "lib"))

    def _script(self, path: str) -> None:
        """A script's project, where it has one; else its folder, unless that is a home or stands above one; else it alone."""
        real = self._follow(os.path.abspath(path))
        if _is_shown(real):
            return
        parts = real.split("/")
        if "node_modules" in parts:
            self._show("/".join(parts[: parts.index("node_modules") + 1]))
            return
        folder = os.path.dirname(real)
        above = folder
        while not self._is_wide(above):
            if any(os.path.exists(os.path.join(above, name)) for name in _PROJECT):
                self._show(above)
                return
            above = os.path.dirname(above)
        self._show(real if self._is_wide(folder) or os.path.dirname(folder) == self._home else folder)

    def _is_wide(self, folder: str) -> bool:
        """Whether a folder is the person's home, or above it, or one in which everything lies."""
        return (
            folder in ("", "/", "/tmp", "/var/tmp", "/home", "/Users", "/root", "/mnt", "/srv", "/media")
            or folder == self._home
            or self._home.startswith(folder + "/")
            or re.fullmatch(r"/(home|Users)/[^/]+", folder) is not None
        )

    def _show(self, path: str) -> None:
        if not self._is_wide(path) and not _is_shown(path):
            self._paths[path] = None


def _is_shown(path: str) -> bool:
    return any(path == shown or path.startswith(shown + "/") for shown in _SHOWN)


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
