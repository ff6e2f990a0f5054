"""What `earnest init` asks of the daemon, and of remote servers, for the person at the terminal.

Nothing here writes before the person's yes: the plan uses a token that does not count yet, addresses come from the
configuration, and no server is started. After the yes the daemon learns the tokens and reads the configuration again, before
any client's file points at it.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Mapping
from typing import Any, Final

from earnest.cli.init_plan import Claims, Hooks, Surroundings
from earnest.cli.init_start import Start, start_of
from earnest.cli.probe import claim
from earnest.config import identity as identities
from earnest.config.clients.dialect import Entry
from earnest.config.clients.wrap import Listener
from earnest.config.settings import load
from earnest.core.errors import EarnestError
from earnest.core.hints import HINTS
from earnest.core.profile import Trust
from earnest.gateway.process.control import Control, connect_control
from earnest.gateway.tokens import named_tokens
from earnest.net.limits import ClientLimits
from earnest.net.message import Headers
from earnest.net.pool import Pool
from earnest.net.url import split

ANSWER_S: Final = 5.0
"""Seconds a remote server has to say whether it wants OAuth."""

_HELLO: Final = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    b'"clientInfo":{"name":"earnest","version":"0"}}}'
)
_HEADERS: Final = (("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream"))


def hooks(around: Surroundings, config: str) -> Hooks:
    """The hooks of `init` for one configuration (`config`: as it was named, or empty)."""
    asked = _Asked(around, config)
    return Hooks(
        claims=asked.claims,
        set_trust=asked.set_trust,
        listener=asked.listener,
        needs_oauth=asked.needs_oauth,
        missing=asked.missing,
        commit=asked.commit,
        reload=asked.reload,
        forwards_headers=True,
    )


class _Asked:
    def __init__(self, around: Surroundings, config: str) -> None:
        self._around, self._config = around, config
        self._tokens: dict[str, str] = {}
        self._oauth: dict[str, bool | None] = {}
        self._address: str | None = None
        self._shown: dict[str, tuple[dict[str, Any], dict[str, str]]] = {}

    def _connect(self, *, start: bool = True) -> Control | None:
        return connect_control(self._around.env, self._config, start=start)

    # the listener

    def listener(self, client: str) -> Listener | None:
        """Where the listener will be, by `[listen]`, and the token that this client has or will have."""
        if self._address is None:
            settings = load(self._around.config, False, self._around.env).listen
            self._address = address(settings.host, settings.port)
        if not self._address:
            return None
        if client not in self._tokens:
            kept = {name: token for token, name in named_tokens(self._around.instance).items()}
            self._tokens[client] = kept.get(client) or secrets.token_urlsafe(32)
        return Listener(self._address, self._tokens[client])

    def commit(self, clients: Iterable[str]) -> None:
        """Make these clients' tokens count. Raises E1604 where an MCP client or server has started this: whoever holds a token
        is taken for that client."""
        with self._started() as daemon:
            for client in clients:
                token = daemon.call("token", client=client, token=self._tokens[client])["token"]
                if token != self._tokens[client]:
                    raise EarnestError("E1029", f"{client} was given another token meanwhile", "Run `earnest init` again.")

    def reload(self) -> None:
        """Let a daemon that runs read the configuration again."""
        control = self._connect(start=False)
        if control is not None:
            with control:
                control.call("reload")

    def _started(self) -> Control:
        control = self._connect()
        assert control is not None  # None only where `start=False`
        return control

    def needs_oauth(self, url: str) -> bool | None:
        """Whether a server wants a login for a request without one; None where it does not say."""
        if url not in self._oauth:
            self._oauth[url] = asyncio.run(wants_login(url))
        return self._oauth[url]

    # servers

    def missing(self, entry: Entry) -> str:
        """Why a local server could not be started, as far as that can be told without starting it; empty if nothing speaks
        against it."""
        start = start_of(entry, self._around)
        if start.unknown:
            return ""
        try:
            identities.executable(start.argv, start.env, start.cwd)
        except EarnestError as error:
            return f"it cannot be started: {error.message}"
        return ""

    def claims(self, name: str, entry: Entry) -> Claims:
        """Start or reach a server once, as its client would, and say what it claims. Raises E12xx, E1617."""
        request: dict[str, Any] = {"server": name}
        without: tuple[str, ...] = ()
        if entry.kind == "stdio":
            start = start_of(entry, self._around)
            if start.unknown:
                raise _not_known(name, start)
            request |= {"command": list(start.argv), "env": dict(start.env), "cwd": start.cwd}
            without = start.without
        with self._started() as daemon:
            try:
                seen = daemon.call("trust-preview", **request)
            except EarnestError as error:
                lack = f" ({', '.join(without)} left out: only the client knows the value)" if without else ""
                later = f"It stays untrusted; once it runs: earnest trust {name} --verified"
                raise EarnestError(error.code, error.message + lack, later, exit_code=error.exit_code) from None
        self._shown[name] = (request, seen["pins"])
        return Claims(
            headers=("tool", *(hint.replace("_", "-") for hint in HINTS)),
            rows=tuple(
                (tool["name"], *(claim(tool["claimed"][hint], tool["effective"][hint]) for hint in HINTS))
                for tool in seen["tools"]
            ),
            prompts=prompts(seen["decided"]),
        )

    def set_trust(self, name: str, entry: Entry, trust: Trust) -> None:
        """Keep a person's answer for exactly what `claims` showed. Raises E16xx."""
        request, pins = self._shown[name]
        with self._started() as daemon:
            daemon.call("trust", trust=trust.value, pins=pins, **request)


def address(host: str, port: int) -> str:
    """The address at which a client of this machine reaches the listener; empty where it is another at each start."""
    if port == 0:
        return ""
    near = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{near}:{port}"


def prompts(decided: Mapping[str, Mapping[str, str]]) -> tuple[str, ...]:
    """One line for each trust: how many tools would ask, or be refused, in a fresh conversation."""
    lines = []
    for trust in Trust:
        words = list(decided[trust.value].values())
        asks, denied = words.count("ask"), words.count("deny")
        said = f"{asks} of {len(words)} tools ask" if asks else f"none of {len(words)} tools asks"
        lines.append(f"{trust.value.ljust(9)}  {said}" + (f", {denied} are refused" if denied else ""))
    return tuple(lines)


def _not_known(name: str, start: Start) -> EarnestError:
    held = ", ".join(start.unknown)
    return EarnestError(
        "E1617",
        f"only the client knows what {held} stands for, so the server cannot be started from here",
        f"It stays untrusted; once the client has started it: earnest trust {name} --verified",
    )


class _Head:
    """Hears the head of one answer; the rest is not read."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.answered: asyncio.Future[tuple[int, str]] = loop.create_future()

    def head(self, status: int, headers: Headers) -> None:
        if not self.answered.done():
            self.answered.set_result((status, headers.get("www-authenticate") or ""))

    def data(self, chunk: bytes) -> None:
        pass

    def end(self) -> None:
        pass

    def lost(self, error: EarnestError, sent: bool) -> None:
        if not self.answered.done():
            self.answered.set_exception(error)


async def wants_login(url: str, limit_s: float = ANSWER_S) -> bool | None:
    """One `initialize` without credentials: True for 401 (MCP authorization, RFC 6750 section 3), None where nothing can be
    concluded: no answer, a redirect, a failure of the server's own."""
    loop = asyncio.get_running_loop()
    pool = Pool(loop, ClientLimits(idle_s=0.0))
    try:
        origin, target = split(url)
        heard = _Head(loop)
        async with asyncio.timeout(limit_s):
            handle = pool.request(origin, "POST", target, _HEADERS, _HELLO, heard)
            status, _ = await heard.answered
        handle.cancel()
    except (EarnestError, TimeoutError, ValueError):
        return None
    finally:
        await pool.close()
    if status == 401:
        return True
    return False if 200 <= status < 300 or 400 <= status < 500 else None
