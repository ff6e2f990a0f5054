"""Asking one server what its tools are, in one era, and keeping what it says as it says it."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, Literal

import msgspec
from msgspec import Raw

from earnest.census.record import Failure, Leg, Step
from earnest.core.errors import EarnestError
from earnest.upstream.base import Exchange, ExchangeHandler, Reply
from earnest.upstream.http import HttpLink
from earnest.upstream.opening import ClientHello, string
from earnest.upstream.stdio import StdioLink

Era = Literal["legacy", "modern"]
MAX_PAGES: Final = 200
MAX_BYTES: Final = 32 << 20
"""Of all pages of one list."""
_NO_BOX: Final = "earnest: the box could not be made"
"""What a box says that could not be made: no failure of the server."""
_WORDS: Final = 12
_WORD: Final = 400


class Timeouts(msgspec.Struct, frozen=True):
    """Seconds: for the opening (servers compile themselves at their first start), for each page, for the whole leg."""

    open_s: float = 90.0
    page_s: float = 30.0
    leg_s: float = 180.0


class _Noting:
    """Hands on what one request hears, and notes the error it was answered with."""

    def __init__(self, handler: ExchangeHandler, note: Callable[[bytes], None]) -> None:
        self._handler, self._note = handler, note
        self.message, self.request, self.parted, self.lost = handler.message, handler.request, handler.parted, handler.lost

    def reply(self, reply: Reply) -> None:
        if reply.error:
            self._note(reply.error)
        self._handler.reply(reply)


class _Probing(StdioLink):
    """A link that notes how a server refused `server/discover`."""

    refused = b"null"

    def call(
        self,
        method: str,
        params: bytes,
        handler: ExchangeHandler,
        *,
        id: int | None = None,
        headers: tuple[tuple[str, str], ...] = (),
        named: str = "",
    ) -> Exchange:
        if method == "server/discover":
            handler = _Noting(handler, self._refuse)
        return super().call(method, params, handler, id=id, headers=headers, named=named)

    def _refuse(self, error: bytes) -> None:
        self.refused = error


async def ask_command(
    name: str, argv: tuple[str, ...], env: Mapping[str, str], era: Era, timeouts: Timeouts, scrub: Callable[[str], str]
) -> Leg:
    """Start a command, open it in an era, list its tools, end it."""
    words: deque[str] = deque(maxlen=_WORDS)
    hello = ClientHello(prefer_modern=era == "modern")
    link = _Probing(name, argv, env=env, cwd="/", client=hello, log=words.append, open_timeout=timeouts.open_s, scrub=scrub)
    leg = await _leg(link, era, timeouts, words, name, scrub)
    return msgspec.structs.replace(leg, probe=Raw(link.refused))


async def ask_url(
    name: str, url: str, headers: Mapping[str, str], era: Era, timeouts: Timeouts, scrub: Callable[[str], str]
) -> Leg:
    """The same for an address."""
    words: deque[str] = deque(maxlen=_WORDS)
    hello = ClientHello(prefer_modern=era == "modern")
    link = HttpLink(name, url, client=hello, log=words.append, headers=headers, open_timeout=timeouts.open_s, scrub=scrub)
    return await _leg(link, era, timeouts, words, name, scrub)


async def _leg(
    link: StdioLink | HttpLink, era: Era, timeouts: Timeouts, words: deque[str], name: str, scrub: Callable[[str], str]
) -> Leg:
    step: Literal["start", "open", "list"] = "open"
    begun = time.monotonic()
    modern: bool | None = None
    version, said = "", b"null"
    supported: tuple[str, ...] = ()
    opened: float | None = None
    listed: float | None = None
    pages: list[Raw] = []
    failure: Failure | None = None
    try:
        async with asyncio.timeout(timeouts.leg_s):
            hello = await link.open()
            opened = round(time.monotonic() - begun, 3)
            step = "list"
            modern, version, supported, said = hello.modern, hello.version, hello.supported, hello.raw
            if b'"tools"' in hello.capabilities:
                pages = await _pages(link, timeouts.page_s)
            listed = round(time.monotonic() - begun, 3)
    except EarnestError as error:
        at: Step = "contain" if _NO_BOX in error.told else "start" if error.code in ("E1201", "E1202", "E1203") else step
        failure = Failure(at, error.code, _short(scrub(error.told)))
    except TimeoutError:
        failure = Failure(step, "E1206", f"not done within {timeouts.leg_s:g} s")
    finally:
        await link.close()
    return Leg(
        asked=era,
        modern=modern,
        version=version,
        supported=supported,
        hello=Raw(said or b"null"),
        pages=tuple(pages),
        open_s=opened,
        list_s=listed,
        failure=failure,
        words=tuple(_short(word.removeprefix(f"[{name}] ")) for word in words),
    )


class _Cursor(msgspec.Struct):
    nextCursor: str | None = None
    tools: list[Raw] | None = None


async def _pages(link: StdioLink | HttpLink, timeout: float) -> list[Raw]:
    """The raw results of all pages. Raises E1208 for what is no list, has no end or is too large, E1206 for silence."""
    found: list[Raw] = []
    seen: set[str] = set()
    cursor: str | None = None
    size = 0
    for _ in range(MAX_PAGES):
        params = b"{}" if cursor is None else b'{"cursor":%b}' % string(cursor)
        reply = await link.ask("tools/list", params, timeout)
        if reply.error:
            said = _short(reply.error.decode("utf-8", "replace"))
            raise EarnestError("E1208", "tools/list was answered with an error", exit_code=3, said=said)
        try:
            page = msgspec.json.decode(reply.result, type=_Cursor)
        except msgspec.MsgspecError as error:
            raise EarnestError("E1208", f"tools/list answered with something else than a list: {error}", exit_code=3) from None
        size += len(reply.result)
        if page.tools is None or size > MAX_BYTES:
            what = "has no tools in it" if page.tools is None else f"is larger than {MAX_BYTES >> 20} MiB"
            raise EarnestError("E1208", f"the answer to tools/list {what}", exit_code=3)
        found.append(Raw(bytes(reply.result)))
        if page.nextCursor is None:
            return found
        if page.nextCursor in seen:
            raise EarnestError("E1208", "tools/list goes round in circles", exit_code=3)
        cursor = page.nextCursor
        seen.add(cursor)
    raise EarnestError("E1208", f"tools/list has more than {MAX_PAGES} pages", exit_code=3)


def _short(text: str) -> str:
    return text if len(text) <= _WORD else text[:_WORD] + " …"
