"""How a configured server is reached: references looked up, environment put together."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from earnest.config.sections import ServerSettings
from earnest.config.variables import Secret
from earnest.gateway.secrecy import header_values, secret_values
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
        url = settings.url.resolve(secrets, base=base)
        headers = {key: t.resolve(secrets, base=base) for key, t in settings.headers.items()}
        return Launch(
            url=url.reveal(),
            headers={key: value.reveal() for key, value in headers.items()},
            ca=settings.ca,
            client_cert=settings.client_cert,
            client_key=settings.client_key,
            # A header's value is a secret also where it is written out.
            secrets=_looked_up((url, *headers.values())) | header_values({key: v.reveal() for key, v in headers.items()}),
        )
    added = {key: t.resolve(secrets, base=base) for key, t in settings.env.items()}
    argv = [t.resolve(secrets, base=base) for t in settings.command]
    cwd = settings.cwd.resolve(secrets, base=base).reveal() if settings.cwd is not None else None
    return Launch(
        argv=tuple(word.reveal() for word in argv),
        env={**env, **{key: value.reveal() for key, value in added.items()}},
        cwd=cwd or env.get("HOME") or "/",
        secrets=_looked_up((*added.values(), *argv)) | secret_values({key: value.reveal() for key, value in added.items()}),
    )


def brought(
    argv: Sequence[str], cwd: str, settings: ServerSettings, *, folder: str, env: Mapping[str, str], secrets: Mapping[str, str]
) -> Launch:
    """The launch of a server that a client brings: `env` is the client's own, and what the operator's settings for the name add
    goes over it. Raises as `launch_of`."""
    added = {key: t.resolve(secrets, base=folder or ".") for key, t in settings.env.items()}
    whole = {**env, **{key: value.reveal() for key, value in added.items()}}
    return Launch(argv=tuple(argv), env=whole, cwd=cwd, secrets=_looked_up(added.values()) | own_secrets(whole))


def own_secrets(env: Mapping[str, str]) -> frozenset[str]:
    """The secrets in an environment that a server is given whole."""
    return secret_values({name: env[name] for name in settings_beyond(env)})


def _looked_up(values: Iterable[Secret]) -> frozenset[str]:
    """What references led to, but for variables that every program has (a home folder is no secret)."""
    found = (pair for value in values for pair in value.looked_up)
    return frozenset(value for ref, value in found if ref.kind != "env" or not inherited({ref.name: value}))


def shown(settings: ServerSettings) -> str:
    """The exact command or address, whole, for a person; references stay as they are written, so no secret is in it."""
    if settings.url is not None:
        return settings.url.shown()
    return shlex.join(part.shown() for part in settings.command)
