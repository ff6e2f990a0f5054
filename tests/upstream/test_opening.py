"""How a server's era is settled on a pipe, and how all pages of a list are walked."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from earnest.core.errors import EarnestError
from earnest.protocol import envelope, subscriptions
from earnest.upstream import opening
from earnest.upstream.base import ExchangeHandler, Reply, ServerHello
from earnest.upstream.opening import ClientHello, Opening, pages

DISCOVERED = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete"}
INITIALIZED = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s"}}
NEVER = object()
Word = Any


class Server:
    """Answers the opening words by the clock of the test; keeps what was said."""

    name = "s"

    def __init__(self, **answers: Word) -> None:
        self.answers = {"server/discover": answers.get("discover", NEVER), "initialize": answers.get("initialize", NEVER)}
        self.said: list[str] = []
        self.waiting: dict[str, ExchangeHandler] = {}

    def call(self, method: str, params: bytes, handler: ExchangeHandler, *, id: int | None = None) -> object:
        self.said.append(method)
        self.waiting[method] = handler
        answer = self.answers[method]
        if isinstance(answer, list):
            answer = answer.pop(0)
        if answer is not NEVER:
            asyncio.get_running_loop().call_soon(handler.reply, said(answer))
        return None

    def notify(self, method: str, params: bytes) -> None:
        self.said.append(method)


def said(answer: Any) -> Reply:
    if isinstance(answer, dict):
        return Reply(json.dumps(answer).encode())
    code, data = answer if isinstance(answer, tuple) else (answer, b"")
    return Reply(error=envelope.error_object(code, "no", data))


async def opened(server: Server, modern: bool = True, timeout: float = 60.0) -> ServerHello:
    return await Opening(server, ClientHello(prefer_modern=modern)).run(timeout)


def versions(*supported: str) -> tuple[int, bytes]:
    return -32022, json.dumps({"supported": supported, "requested": "2026-07-28"}).encode()


@pytest.mark.parametrize(
    "modern,answers,said_words,era",
    [
        (True, {"discover": DISCOVERED}, ["server/discover"], True),
        (True, {"discover": -32601, "initialize": INITIALIZED}, None, False),
        (True, {"discover": -32602, "initialize": INITIALIZED}, None, False),
        (True, {"discover": -32000, "initialize": INITIALIZED}, None, False),
        (True, {"discover": -32600, "initialize": INITIALIZED}, None, False),
        (True, {"discover": 0, "initialize": INITIALIZED}, None, False),
        (True, {"discover": {}, "initialize": INITIALIZED}, None, False),
        (True, {"discover": {"supportedVersions": ["2025-11-25"]}, "initialize": INITIALIZED}, None, False),
        # A refusal that names an older version is no refusal of that one.
        (True, {"discover": versions("2025-11-25"), "initialize": INITIALIZED}, None, False),
        (True, {"discover": (-32022, b'"garbage"'), "initialize": INITIALIZED}, None, False),
        (True, {"discover": {"supportedVersions": ["2031-01-01"]}, "initialize": INITIALIZED}, None, False),
        # Errors that only the modern era has.
        (True, {"discover": -32021}, ["server/discover"], True),
        (True, {"discover": -32020}, ["server/discover"], True),
        (False, {"initialize": INITIALIZED, "discover": DISCOVERED}, ["initialize", "notifications/initialized"], False),
        (False, {"initialize": -32601, "discover": DISCOVERED}, ["initialize", "server/discover"], True),
        (False, {"initialize": versions("2026-07-28"), "discover": DISCOVERED}, ["initialize", "server/discover"], True),
    ],
)
async def test_the_era_is_what_the_answers_look_like(modern, answers, said_words, era):
    server = Server(**answers)
    hello = await opened(server, modern)
    assert hello.modern is era
    assert server.said == (said_words or ["server/discover", "initialize", "notifications/initialized"])


async def test_a_refusal_that_names_the_version_it_refused_is_asked_once_more_and_no_more():
    server = Server(discover=[versions("2026-07-28"), DISCOVERED])
    assert (await opened(server)).modern and server.said == ["server/discover"] * 2
    server = Server(discover=[versions("2026-07-28")] * 2, initialize=INITIALIZED)
    assert not (await opened(server)).modern
    assert server.said == ["server/discover", "server/discover", "initialize", "notifications/initialized"]


async def test_a_server_without_a_version_in_common_is_named_with_its_versions():
    with pytest.raises(EarnestError, match="2031-01-01") as caught:
        await opened(Server(discover=versions("2031-01-01"), initialize=INITIALIZED))
    assert caught.value.code == "E1207"


async def test_a_server_that_understands_neither_word_fails_with_both_answers():
    with pytest.raises(EarnestError, match=r"server/discover: .*initialize: ") as caught:
        await opened(Server(discover=-32601, initialize={"protocolVersion": "1999-01-01"}))
    assert caught.value.code == "E1207"


async def test_silence_to_the_newer_word_leads_to_the_older_one_and_a_late_answer_still_counts(monkeypatch):
    monkeypatch.setattr(opening, "PROBE_S", 0.02)
    server = Server()
    task = asyncio.create_task(opened(server))
    while len(server.said) < 2:  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    server.waiting["server/discover"].reply(said(DISCOVERED))
    assert (await task).modern


async def test_a_legacy_server_that_is_slow_to_start_hears_no_word_it_does_not_know(monkeypatch):
    monkeypatch.setattr(opening, "PROBE_S", 0.02)
    server = Server(discover=DISCOVERED)
    task = asyncio.create_task(opened(server, modern=False))
    await asyncio.sleep(0.1)
    assert server.said == ["initialize"]
    server.waiting["initialize"].reply(said(INITIALIZED))
    assert not (await task).modern


async def test_a_server_that_says_nothing_ends_the_opening_in_time():
    with pytest.raises(EarnestError, match=r"said nothing within 0.1 s") as caught:
        await opened(Server(), timeout=0.1)
    assert caught.value.code == "E1206"


# Lists


class Lists:
    """Answers each page in turn."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[bytes] = []

    async def ask(self, method: str, params: bytes = b"{}", timeout: float = 30.0) -> Reply:
        self.asked.append(params)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return said(answer)


async def walked(link: Any, method: str = "tools/list") -> list[bytes]:
    found: AsyncIterator[bytes] = pages(link, method)
    return [one async for one in found]


async def test_all_pages_are_walked_and_entries_keep_their_bytes():
    class Raw(Lists):
        async def ask(self, method: str, params: bytes = b"{}", timeout: float = 30.0) -> Reply:
            self.asked.append(params)
            first = b'{"tools":[{"name": "a",  "x":1.0, "y":1e3}],"nextCursor":"\\u0041"}'
            return Reply(first if len(self.asked) == 1 else b'{"tools":[{"name":"b"}]}')

    link = Raw()
    assert await walked(link) == [b'{"name": "a",  "x":1.0, "y":1e3}', b'{"name":"b"}']
    assert link.asked == [b"{}", b'{"cursor":"A"}']


@pytest.mark.parametrize("answers", [({"tools": [], "nextCursor": "a"},), ({"tools": "x"},), (-32603,), ({"nextCursor": 3},)])
async def test_a_list_without_end_or_that_is_none_is_an_error(answers):
    with pytest.raises(EarnestError) as caught:
        await walked(Lists(*answers))
    assert caught.value.code == "E1208"


async def test_an_empty_cursor_is_a_cursor():
    link = Lists({"tools": [{"name": "a"}], "nextCursor": ""}, {"tools": [{"name": "b"}]})
    assert len(await walked(link)) == 2


def test_only_offered_list_changes_are_listened_for():
    wanted: Callable[[bytes], list[str]] = opening.list_changes
    assert wanted(b'{"tools":{"listChanged":true},"prompts":{}}') == ["toolsListChanged"]
    assert wanted(b'{"tools":{"listChanged":"yes"}}') == []


def test_our_own_subscription_is_read_as_meant_and_valid_for_the_official_sdk():
    methods = pytest.importorskip("mcp_types.methods")
    offers = b'{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true}}'
    params = opening.listen_params(ServerHello(True, "2026-07-28", offers), ClientHello(info=b'{"name":"c","version":"1"}'))
    assert subscriptions.wanted(params) == subscriptions.Wanted(tools=True, prompts=True, resource_list=True)
    model = methods.CLIENT_REQUESTS["subscriptions/listen", "2026-07-28"]
    model.model_validate({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": json.loads(params)})
    assert opening.listen_params(ServerHello(True, "2026-07-28", b'{"tools":{}}'), ClientHello()) == b""
