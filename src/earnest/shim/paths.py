"""Where an instance of earnest lives: one daemon for each user, home and configuration.

Used by shim, daemon and command line, which must agree: a path derived from variables that one of them does
not see would make two daemons with two stores. Clients start servers with HOME, LOGNAME, PATH, SHELL, TERM
and USER only, so nothing else decides where state lies, except earnest's own variables.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing `collections` costs a millisecond
    from collections.abc import Mapping

DEFAULT_CONFIG = ".config/earnest/earnest.toml"


class ShimError(Exception):
    """What happened (`message`), under which code, and what to do; `exit_code` is what the shim ends with."""

    def __init__(self, code: str, message: str, remedy: str = "", exit_code: int = 2) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.remedy = remedy
        self.exit_code = exit_code


def _user_home(env: Mapping[str, str]) -> str:
    home = env.get("HOME", "")
    if not home:
        import pwd  # rare: a client that passes no HOME

        try:
            home = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            raise ShimError("E1504", "there is no home folder: HOME is not set.", "Set HOME or EARNEST_HOME.") from None
    return os.path.abspath(home)


def home(env: Mapping[str, str]) -> str:
    """The folder all instances live in: `$EARNEST_HOME`, else `~/.local/state/earnest`."""
    named = env.get("EARNEST_HOME", "")
    return os.path.abspath(named) if named else _user_home(env) + "/.local/state/earnest"


def config_path(env: Mapping[str, str], flag: str = "") -> tuple[str, bool]:
    """The configuration's path, and whether it was named (`--config`, `$EARNEST_CONFIG`) and so is the
    operator's."""
    named = flag or env.get("EARNEST_CONFIG", "")
    if named:
        return os.path.abspath(named), True
    xdg = env.get("XDG_CONFIG_HOME", "")
    if xdg.startswith("/"):  # the XDG specification ignores relative values
        return os.path.abspath(xdg) + "/earnest/earnest.toml", False
    return _user_home(env) + "/" + DEFAULT_CONFIG, False


def instance(env: Mapping[str, str], flag: str = "") -> str:
    """The folder of the instance that serves this configuration; it may not exist yet."""
    path = os.path.realpath(config_path(env, flag)[0])
    try:
        usual = os.path.realpath(_user_home(env) + "/" + DEFAULT_CONFIG)
    except ShimError:
        usual = ""
    if path == usual:
        return home(env) + "/default"
    return home(env) + "/c-" + _sha256(os.fsencode(path))[:16]


def _sha256(data: bytes) -> str:
    try:  # hashlib loads OpenSSL, which costs more than the rest of the shim
        from _sha2 import sha256  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        try:
            from _sha256 import sha256  # type: ignore[import-not-found, no-redef, unused-ignore]
        except ImportError:
            from hashlib import sha256
    return str(sha256(data).hexdigest())


def open_folder(path: str, create: bool = True) -> int:
    """A descriptor of the instance's folder, made if `create`; raises `ShimError` if others could tamper
    with it.

    All that follows is named relative to this descriptor, so that nothing can be swapped underneath.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    for attempt in (0, 1):
        try:
            folder = os.open(path, flags)
            break
        except FileNotFoundError:
            if not create or attempt:
                raise ShimError("E1502", f"there is no folder {path}.") from None
            _make(path)
        except NotADirectoryError:
            what = "a symbolic link" if os.path.islink(path) else "not a folder"
            raise ShimError("E1502", f"{path} is {what}.", "Remove it; earnest makes the folder itself.") from None
        except OSError as e:
            raise ShimError("E1502", f"cannot open {path}: {e.strerror}.") from None
    try:
        about = os.fstat(folder)
        above = os.stat(os.path.dirname(path))
        if about.st_uid != os.geteuid():
            raise ShimError(
                "E1502",
                f"{path} belongs to user {about.st_uid}, but this runs as user {os.geteuid()}.",
                "Run earnest as the user it was set up for, or set EARNEST_HOME.",
            )
        if about.st_mode & 0o077:
            raise ShimError("E1502", f"{path} is open to others.", f"Close it: chmod 700 {path}")
        if above.st_uid not in (0, os.geteuid()) or (above.st_mode & 0o022 and not above.st_mode & stat.S_ISVTX):
            above_path = os.path.dirname(path)
            raise ShimError("E1502", f"others may write in {above_path}.", f"Close it: chmod 700 {above_path}")
    except BaseException:
        os.close(folder)
        raise
    return folder


def _make(path: str) -> None:
    parent = os.path.dirname(path)
    try:
        os.makedirs(os.path.dirname(parent), exist_ok=True)
        for each in (parent, path):
            try:
                os.mkdir(each, 0o700)
            except FileExistsError:
                pass
    except OSError as e:
        raise ShimError("E1502", f"cannot make the folder {path}: {e.strerror}.") from None


def at(folder: int, name: str) -> str:
    """A path of `name` in the folder of this descriptor, for calls that take no descriptor (bind,
    connect)."""
    return f"/proc/self/fd/{folder}/{name}"
