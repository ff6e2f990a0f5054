"""How a session with a server is opened, and how all pages of its lists are walked.

The era is settled per link (MCP 2026-07-28, versioning; the other side's era says nothing about it): for a client of the
modern era `server/discover` is tried first and `initialize` after it; for a legacy client the other way round, so that the
same era on both sides passes through. An answer is judged by its shape, never by one error code; a late one still counts.
A server that knows neither word fails visibly.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Final, Protocol

import msgspec
from msgspec import Raw

from earnest import __version__
from earnest.core import canonical
from earnest.core.errors import EarnestError
from earnest.protocol import envelope, eras
from earnest.upstream.base import ExchangeHandler, Link, Reply, ServerHello
from earnest.upstream.waiter import Waiter

MODERN: Final = eras.MODERN
LEGACY: Final = eras.LEGACY
LEGACY_VERSIONS: Final = eras.LEGACY_VERSIONS
PROBE_S: Final = 5.0
"""Seconds before a server that does not answer `server/discover` is tried with `initialize`. The other way round silence says
less (a legacy server may be slow to start, and must not get words it does not know), so half of all time is waited."""
MAX_PAGES: Final = 1000
_MAX_QUOTED: Final = 4000
OWN_INFO: Final = b'{"name":"earnest","version":"%b"}' % __version__.encode()

IN_LOG: Final = "What it said is in the daemon's log."
"""What to do about a server whose words a client is not told."""

string: Final = msgspec.json.Encoder().encode
"""The JSON of a string."""


class ClientHello(msgspec.Struct, frozen=True):
    """What is told to a server of who connects. The downstream client's own words travel, not earnest's."""

    capabilities: bytes = b"{}"
    info: bytes = OWN_INFO
    prefer_modern: bool = True
    version: str = LEGACY
    """The legacy version to ask for."""
    crossing: bytes = b"{}"
    """The capabilities told to a server of the other era than `prefer_modern` names: what is bridged, and no more."""

    def capabilities_in(self, modern: bool) -> bytes:
        """What a server of an era is told that the client can do."""
        return self.capabilities if modern is self.prefer_modern else self.crossing


class _Discover(msgspec.Struct):
    supportedVersions: list[str] = []
    capabilities: Raw = Raw(b"{}")
    instructions: str | None = None
    meta: dict[str, Raw] = msgspec.field(default_factory=dict, name="_meta")


class _Initialize(msgspec.Struct):
    protocolVersion: str
    capabilities: Raw = Raw(b"{}")
    serverInfo: Raw = Raw(b"")
    instructions: str | None = None


def own_meta(params: bytes, client: ClientHello, version: str) -> bytes:
    """`params` with the `_meta` that a modern request needs, for requests of earnest's own."""
    parts = canonical.members(params or b"{}")
    meta = canonical.members(parts.get("_meta", b"{}"))
    meta[eras.PROTOCOL_VERSION] = string(version)
    meta[eras.CLIENT_CAPABILITIES] = client.capabilities_in(True)
    meta[eras.CLIENT_INFO] = client.info
    parts["_meta"] = canonical.build(meta)
    return canonical.build(parts)


def discovered(raw: bytes) -> ServerHello | None:
    """Read a `DiscoverResult`; None if it is none or offers no version of the modern era."""
    try:
        seen = msgspec.json.decode(raw, type=_Discover)
    except msgspec.MsgspecError:
        return None
    if MODERN not in seen.supportedVersions:
        return None
    info = seen.meta.get(eras.SERVER_INFO, Raw(b""))
    return ServerHello(
        modern=True,
        version=MODERN,
        capabilities=bytes(seen.capabilities),
        server_info=bytes(info),
        instructions=seen.instructions or "",
        supported=tuple(seen.supportedVersions),
        raw=raw,
    )


def initialized(raw: bytes) -> ServerHello | None:
    """Read an `InitializeResult`; None if it is none or names a version nobody knows."""
    try:
        seen = msgspec.json.decode(raw, type=_Initialize)
    except msgspec.MsgspecError:
        return None
    if seen.protocolVersion not in LEGACY_VERSIONS:
        return None
    return ServerHello(
        modern=False,
        version=seen.protocolVersion,
        capabilities=bytes(seen.capabilities),
        server_info=bytes(seen.serverInfo),
        instructions=seen.instructions or "",
        supported=(seen.protocolVersion,),
        raw=raw,
    )


def initialize_params(client: ClientHello) -> bytes:
    """`InitializeRequest.params` for a client."""
    return b'{"protocolVersion":%b,"capabilities":%b,"clientInfo":%b}' % (
        string(client.version),
        client.capabilities_in(False),
        client.info,
    )


class _Change(msgspec.Struct, frozen=True):
    listChanged: bool = False


class _Offers(msgspec.Struct, frozen=True):
    tools: _Change = _Change()
    prompts: _Change = _Change()
    resources: _Change = _Change()


def list_changes(capabilities: bytes) -> list[str]:
    """The members of a `subscriptions/listen` filter for the list changes that a server offers."""
    try:
        offers = msgspec.json.decode(capabilities, type=_Offers)
    except msgspec.MsgspecError:
        return []
    kinds = {"toolsListChanged": offers.tools, "promptsListChanged": offers.prompts, "resourcesListChanged": offers.resources}
    return [kind for kind, offer in kinds.items() if offer.listChanged]


def listen_params(hello: ServerHello, client: ClientHello) -> bytes:
    """Params of a `subscriptions/listen` for all the list changes that a modern server offers; empty where it offers none."""
    kinds = list_changes(hello.capabilities)
    if not kinds:
        return b""
    return own_meta(b'{"notifications":%b}' % msgspec.json.encode(dict.fromkeys(kinds, True)), client, hello.version)


_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class _Supported(msgspec.Struct):
    supported: list[str]


def no_common_version(reply: Reply) -> str:
    """What a server speaks that refused a version and speaks none that earnest does; empty for any other answer."""
    if not reply.error:
        return ""
    failure = envelope.failure(reply.error)
    if failure.code != eras.UNSUPPORTED_VERSION:
        return ""
    try:
        supported = msgspec.json.decode(failure.data, type=_Supported).supported
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""  # no such list, no such error
    known = {*eras.MODERN_VERSIONS, *LEGACY_VERSIONS}
    if known & set(supported):
        return ""
    return ", ".join(one for one in supported[:8] if _DATE.fullmatch(one)) or "no version of MCP"


def _quoted(raw: bytes) -> str:
    """An answer in its own words: whole, so that who shows it finds the secrets in it."""
    return raw.decode("utf-8", "replace") if len(raw) <= _MAX_QUOTED else f"{len(raw)} bytes"


def how_answered(reply: Reply) -> str:
    """The kind of an answer that opens nothing, without the server's words."""
    if reply.error:
        return f"error {envelope.failure(reply.error).code}"
    try:
        version = msgspec.json.decode(reply.result, type=_Initialize).protocolVersion
    except (msgspec.MsgspecError, UnicodeDecodeError):
        version = ""
    return f"an answer of version {version}" if _DATE.fullmatch(version) else "an answer that is none to it"


def offers_modern(reply: Reply) -> bool:
    """Whether a refusal of a version names the modern one that earnest speaks (-32022)."""
    if not reply.error:
        return False
    failure = envelope.failure(reply.error)
    try:
        supported = msgspec.json.decode(failure.data, type=_Supported).supported
        return failure.code == eras.UNSUPPORTED_VERSION and MODERN in supported
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False


class _Opens(Protocol):
    name: str

    def call(self, method: str, params: bytes, handler: ExchangeHandler, *, id: int | None = None) -> object: ...

    def notify(self, method: str, params: bytes) -> None: ...


class Opening:
    """Settles the era on a link whose requests can be sent before anything else was said (pipes)."""

    def __init__(self, link: _Opens, client: ClientHello) -> None:
        self._link = link
        self._client = client

    async def run(self, timeout: float) -> ServerHello:
        """Returns what the server said. Raises E1207 if it knows neither opening, E1206 if it says nothing."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        order = ["server/discover", "initialize"] if self._client.prefer_modern else ["initialize", "server/discover"]
        waiting: dict[asyncio.Future[Reply], str] = {}
        failures: list[str] = []
        said: list[str] = []
        again = True
        while True:
            if order:
                method = order.pop(0)
                waiting[self._say(loop, method)] = method
            left = deadline - loop.time()
            patience = min(PROBE_S if self._client.prefer_modern else timeout / 2, left) if order else left
            done, _ = await asyncio.wait(waiting, timeout=max(0.0, patience), return_when=asyncio.FIRST_COMPLETED)
            for future in done:
                method = waiting.pop(future)
                reply = future.result()  # raises when the server is gone
                hello = self._read(method, reply)
                if hello is not None:
                    if method == "initialize":
                        self._link.notify("notifications/initialized", b"")
                    return hello
                if method == "server/discover" and again and offers_modern(reply):
                    order.insert(0, method)  # refused, and yet it names the version it was asked with: once more
                    again = False
                spoken = no_common_version(reply)
                if spoken:
                    raise EarnestError(
                        "E1207",
                        f"server {self._link.name!r} speaks {spoken}, none of the versions earnest knows ({MODERN} and older)",
                        exit_code=3,
                    )
                failures.append(f"{method}: {how_answered(reply)}")
                said.append(f"{method}: {_quoted(reply.error or reply.result)}")
            if not order and not waiting:
                raise EarnestError(
                    "E1207",
                    f"server {self._link.name!r} could not be opened ({'; '.join(failures)})",
                    IN_LOG,
                    exit_code=3,
                    said="; ".join(said),
                )
            if loop.time() >= deadline:
                raise EarnestError(
                    "E1206",
                    f"server {self._link.name!r} said nothing within {timeout:g} s",
                    "Run its command by hand to see what it waits for; `timeout` in its configuration allows more time.",
                    exit_code=3,
                )

    def _say(self, loop: asyncio.AbstractEventLoop, method: str) -> asyncio.Future[Reply]:
        word = Waiter(loop)
        if method == "initialize":
            self._link.call(method, initialize_params(self._client), word)
        else:
            self._link.call(method, own_meta(b"{}", self._client, MODERN), word)
        return word.future

    def _read(self, method: str, reply: Reply) -> ServerHello | None:
        if not reply.result:
            code = envelope.failure(reply.error).code if reply.error else 0
            if method == "server/discover" and code in eras.MODERN_ERRORS and code != eras.UNSUPPORTED_VERSION:
                # Only the modern era has these errors: it is one of its servers, if one that says nothing of itself.
                return ServerHello(modern=True, version=MODERN, capabilities=b'{"tools":{}}')
            return None
        return initialized(reply.result) if method == "initialize" else discovered(reply.result)


class _Progress(msgspec.Struct):
    progressToken: Raw = Raw(b"")


def progress_token(params: bytes) -> bytes:
    """The raw token of a progress notification; empty where it has none."""
    try:
        return bytes(msgspec.json.decode(params, type=_Progress).progressToken)
    except msgspec.MsgspecError:
        return b""


class _OfSubscription(msgspec.Struct):
    meta: dict[str, Raw] = msgspec.field(default_factory=dict, name="_meta")


def subscription_id(params: bytes) -> bytes:
    """The raw id of the subscription that a notification belongs to; empty where it names none."""
    if not params:
        return b""
    try:
        return bytes(msgspec.json.decode(params, type=_OfSubscription).meta.get(eras.SUBSCRIPTION_ID, Raw(b"")))
    except msgspec.MsgspecError:
        return b""


class _Page(msgspec.Struct):
    nextCursor: str | None = None
    tools: list[Raw] | None = None
    prompts: list[Raw] | None = None
    resources: list[Raw] | None = None
    resourceTemplates: list[Raw] | None = None


LISTS: Final = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


async def pages(link: Link, method: str, timeout: float = 30.0) -> AsyncIterator[bytes]:
    """The raw objects of a list, all pages, each within `timeout` seconds. Raises E1208 for a list that is none or has no
    end, E1206 for one that does not come."""
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(MAX_PAGES):
        params = b"{}" if cursor is None else b'{"cursor":%b}' % string(cursor)
        reply = await link.ask(method, params, timeout)
        if reply.error:
            failure = envelope.failure(reply.error)
            said = _quoted(failure.message.encode("utf-8", "replace"))
            raise EarnestError("E1208", f"{method} failed: error {failure.code}", exit_code=3, said=said)
        try:
            page = msgspec.json.decode(reply.result, type=_Page)
        except msgspec.MsgspecError as error:
            raise EarnestError("E1208", f"{method} answered with something else than a list: {error}", exit_code=3) from None
        items: list[Raw] | None = getattr(page, LISTS[method])
        for item in items or ():
            yield bytes(item)
        if page.nextCursor is None:
            return
        if page.nextCursor in seen:
            break
        cursor = page.nextCursor
        seen.add(cursor)
    raise EarnestError("E1208", f"{method} goes round in circles or has more than {MAX_PAGES} pages", exit_code=3)
