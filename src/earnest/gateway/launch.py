"""How a configured server is reached: references looked up, environment put together."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Final

from earnest.config.sections import ServerSettings
from earnest.gateway.served import Launch

_INHERITED: Final = frozenset(
    (
        "HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LANGUAGE", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR",
        "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy",
        "https_proxy", "no_proxy", "all_proxy", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR",
        "SystemRoot", "ProgramData", "APPDATA",
    )
)  # fmt: skip


_LOGIN: Final = frozenset(
    (
        "PWD", "OLDPWD", "SHLVL", "_", "COLORTERM", "DISPLAY", "WAYLAND_DISPLAY", "EDITOR", "PAGER", "HOSTNAME",
        "DBUS_SESSION_BUS_ADDRESS", "XDG_SESSION_ID", "XDG_SESSION_TYPE", "XDG_CURRENT_DESKTOP", "XDG_STATE_HOME",
        "MAIL", "NO_COLOR", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "PYTHONPATH", "EARNEST_HOME", "EARNEST_CONFIG",
    )
)  # fmt: skip


def inherited(env: Mapping[str, str]) -> dict[str, str]:
    """What a configured server gets of the environment: what programs need to find their way, and no secrets. More by `env`."""
    return {name: value for name, value in env.items() if name in _INHERITED or name.startswith("LC_")}


def settings_beyond(env: Mapping[str, str]) -> frozenset[str]:
    """Names in an environment that are more than a login has: any of them may be a credential, since a client's own settings
    for a server cannot be told from what the client itself was started with."""
    return frozenset(name for name in env.keys() - inherited(env).keys() if name not in _LOGIN)


def launch_of(settings: ServerSettings, *, folder: str, env: Mapping[str, str], secrets: Mapping[str, str]) -> Launch:
    """A server's launch. `folder`: where relative files start from; `env`: what it inherits; `secrets`: what `${env:X}`
    refers to.

    Raises E1007 to E1009 where a reference leads nowhere.
    """
    base = folder or "."
    if settings.url is not None:
        return Launch(
            url=settings.url.resolve(secrets, base=base).reveal(),
            headers={key: t.resolve(secrets, base=base).reveal() for key, t in settings.headers.items()},
            ca=settings.ca,
            client_cert=settings.client_cert,
            client_key=settings.client_key,
        )
    added = {key: t.resolve(secrets, base=base).reveal() for key, t in settings.env.items()}
    argv = tuple(t.resolve(secrets, base=base).reveal() for t in settings.command)
    cwd = settings.cwd.resolve(secrets, base=base).reveal() if settings.cwd is not None else None
    return Launch(argv=argv, env={**env, **added}, cwd=cwd or env.get("HOME") or "/")


def shown(settings: ServerSettings) -> str:
    """The exact command or address, whole, for a person; references stay as they are written, so no secret is in it."""
    if settings.url is not None:
        return settings.url.shown()
    return shlex.join(part.shown() for part in settings.command)
