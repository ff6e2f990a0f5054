"""One look at a server, without daemon, store or policy: what it says of itself and what its tools claim.

Nothing is kept: a server that was looked at is as unknown afterwards as before.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

import msgspec

from earnest.core.errors import EarnestError
from earnest.core.hints import EffectiveHints, RawHints, effective, raw_from_wire
from earnest.core.scrub import Scrubber
from earnest.gateway.contained import ContainedLink
from earnest.gateway.served import Launch
from earnest.net.dial import TlsSettings
from earnest.upstream.base import ServerHello
from earnest.upstream.http import HttpLink
from earnest.upstream.opening import IN_LOG, ClientHello, pages
from earnest.upstream.stdio import StdioLink

_WORDS_KEPT: Final = 5


class Claimed(msgspec.Struct, frozen=True):
    """A tool as its server lists it. `definition` is raw."""

    name: str
    title: str
    raw: RawHints
    effective: EffectiveHints
    definition: bytes


class Glance(msgspec.Struct, frozen=True):
    """What a server said. `transport`: stdio, http or http+sse. `problems`: what in its list of tools cannot be used."""

    hello: ServerHello
    transport: str
    tools: tuple[Claimed, ...]
    problems: tuple[str, ...] = ()

    @property
    def info(self) -> dict[str, Any]:
        """The server's `Implementation` (name, version, title …); empty where it sent none."""
        return _object(self.hello.server_info)

    @property
    def capabilities(self) -> dict[str, Any]:
        """Its capabilities."""
        return _object(self.hello.capabilities)


async def glance(name: str, launch: Launch, timeout: float) -> Glance:
    """Start or reach a server, list its tools, and end what was started. `timeout`: seconds for the opening.

    Raises E12xx (exit code 3), with the last words of a server that has any. What the launch holds of secrets is in none of
    it, but for the definitions of tools, which stay as they were sent.
    """
    words: deque[str] = deque(maxlen=_WORDS_KEPT)
    scrub = Scrubber(launch.secrets)
    link = _link(name, launch, timeout, words, scrub)
    try:
        hello = await link.open()
        listed = [raw async for raw in pages(link, "tools/list")] if b'"tools"' in hello.capabilities else []
    except EarnestError as error:
        raise _with_words(error, name, words, scrub) from None
    finally:
        await link.close()
    transport = "stdio"
    if isinstance(link, HttpLink):
        transport = "http+sse" if link.legacy_sse is not None else "http"
    tools, problems = _read(listed)
    hello = msgspec.structs.replace(
        hello,
        instructions=scrub(hello.instructions),
        server_info=scrub(hello.server_info.decode("utf-8", "replace")).encode(),
    )
    tools = tuple(msgspec.structs.replace(tool, title=scrub(tool.title)) for tool in tools)
    return Glance(hello, transport, tools, tuple(map(scrub, problems)))


def _link(name: str, launch: Launch, timeout: float, words: deque[str], scrub: Scrubber) -> StdioLink | HttpLink:
    client, log = ClientHello(), words.append
    if launch.url:
        tls = TlsSettings(launch.ca, launch.client_cert, launch.client_key)
        return HttpLink(
            name, launch.url, client=client, log=log, headers=launch.headers, tls=tls, open_timeout=timeout, scrub=scrub
        )
    if launch.grants is not None:
        lane = launch.grants.list_lane
        return ContainedLink(name, launch, lane, client=client, log=log, open_timeout=timeout, scrub=scrub)
    return StdioLink(
        name, launch.argv, env=launch.env, cwd=launch.cwd, client=client, log=log, open_timeout=timeout, scrub=scrub
    )


def _read(listed: list[bytes]) -> tuple[tuple[Claimed, ...], tuple[str, ...]]:
    tools: list[Claimed] = []
    problems: list[str] = []
    seen: set[str] = set()
    for number, raw in enumerate(listed, 1):
        definition = _object(raw)
        name, title = definition.get("name"), definition.get("title")
        if not isinstance(name, str) or not name:
            problems.append(f"tool {number} of the list has no name")
            continue
        if name in seen:
            problems.append(f"the tool {name!r} is listed twice; the gateway serves nothing of such a server")
        seen.add(name)
        hints = raw_from_wire(definition.get("annotations"))
        tools.append(Claimed(name, title if isinstance(title, str) else "", hints, effective(hints), raw))
    return tuple(tools), tuple(problems)


def _with_words(error: EarnestError, name: str, words: deque[str], scrub: Scrubber) -> EarnestError:
    said = [line.removeprefix(f"[{name}] ") for line in words]
    heard = [part for part in error.said.split(" / ") if part and not any(part in line for line in said)]
    whole = " / ".join([*heard, *said])
    remedy = "" if error.remedy == IN_LOG else error.remedy  # here it is told
    return EarnestError(error.code, scrub(error.message), remedy, exit_code=error.exit_code, said=scrub(whole))


def _object(raw: bytes) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(raw)
    except msgspec.MsgspecError:
        return {}
    return value if isinstance(value, dict) else {}
