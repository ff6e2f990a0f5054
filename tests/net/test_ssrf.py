"""What a stranger's URL can make earnest connect to: public hosts, and nothing by a detour."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from earnest.core.errors import EarnestError
from earnest.net.dial import TlsSettings
from earnest.net.limits import ServerLimits
from earnest.net.listener import serve
from earnest.net.message import Request
from earnest.net.responder import Responder
from earnest.net.ssrf import SsrfRules, check_addresses, check_origin, fetch, is_public
from earnest.net.url import Origin, split

INSIDE = [
    "127.0.0.1", "127.255.255.254", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254",
    "100.64.0.1", "0.0.0.0", "0.1.2.3", "192.0.0.8", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1",
    "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "192.88.99.1",
    "::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254",
    "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::", "2002:a00:1::1", "2001:0:1::1",
    "fc00::1", "fd12:3456::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "100::1", "2001:db8::1", "3fff::1",
    "5f00::1", "", "localhost", "1.2.3", "0x7f.1", "2130706433", "::8.8.8.8",
]  # fmt: skip
OUTSIDE = ["8.8.8.8", "1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8",
           "64:ff9b::808:808", "2002:808:808::1"]  # fmt: skip


@pytest.mark.parametrize("address", INSIDE)
def test_an_address_that_is_no_public_hosts_is_inside(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", OUTSIDE)
def test_a_public_address_is_outside_in_every_spelling(address: str) -> None:
    assert is_public(address)


def test_one_inner_address_condemns_a_name() -> None:
    origin = Origin("https", "a.example", 443)
    assert check_addresses(origin, ["8.8.8.8", "1.1.1.1", "8.8.8.8"], SsrfRules()) == ["8.8.8.8", "1.1.1.1"]
    for found in (["8.8.8.8", "10.0.0.1"], ["::1"], []):
        with pytest.raises(EarnestError) as info:
            check_addresses(origin, found, SsrfRules())
        assert info.value.code == "E1240" and "10.0.0.1" not in str(info.value)


@pytest.mark.parametrize(
    "url", ["https://127.1/", "https://0x7f.0.0.1/", "https://2130706433/", "https://0177.0.0.1/", "https://1.2.3.0x4/",
            "http://a.example/", "https://127.0.0.1./"]
)  # fmt: skip
def test_addresses_in_spellings_that_only_some_read_are_refused(url: str) -> None:
    with pytest.raises(EarnestError) as info:
        check_origin(split(url)[0], SsrfRules())
    assert info.value.code == "E1240"


def test_an_allowed_origin_is_that_origin_only() -> None:
    rules = SsrfRules(allow=frozenset((Origin("http", "127.0.0.1", 80),)))
    check_origin(Origin("http", "127.0.0.1", 80), rules)
    assert check_addresses(Origin("http", "127.0.0.1", 80), ["127.0.0.1"], rules) == ["127.0.0.1"]
    for other in (Origin("http", "127.0.0.1", 81), Origin("http", "localhost", 80)):
        with pytest.raises(EarnestError):
            check_origin(other, rules)


@asynccontextmanager
async def served(answer: Callable[[Request, Responder], None]) -> AsyncIterator[Origin]:
    listener = await serve(asyncio.get_running_loop(), "127.0.0.1", 0, answer, ServerLimits())
    try:
        yield Origin("http", "127.0.0.1", listener.address[1])
    finally:
        await listener.close()


async def test_a_configured_loopback_server_is_fetched_and_bounded() -> None:
    async with served(lambda q, r: r.json(200, b'{"a":"' + b"x" * 500 + b'"}')) as origin:
        rules = SsrfRules(allow=frozenset((origin,)))
        fetched = await fetch(f"{origin}/doc", rules, max_body=5000)
        assert fetched.status == 200 and len(fetched.body) == 508
        with pytest.raises(EarnestError) as info:
            await fetch(f"{origin}/doc", rules, max_body=500)
    assert info.value.code == "E1226"


async def test_a_loopback_server_that_nobody_configured_is_never_contacted() -> None:
    seen: list[str] = []

    def answer(request: Request, responder: Responder) -> None:
        seen.append(request.path)
        responder.json(200, b"{}")

    async with served(answer) as origin:
        both = SsrfRules(schemes=frozenset(("http", "https")))

        async def rebound(host: str, port: int) -> list[str]:
            return ["127.0.0.1"]

        for url in (
            f"{origin}/",
            f"http://[::ffff:127.0.0.1]:{origin.port}/",
            f"http://a.example:{origin.port}/",
        ):
            with pytest.raises(EarnestError) as info:
                await fetch(url, both, max_body=100, resolve=rebound if "example" in url else None)
            assert info.value.code == "E1240"
    assert seen == []


async def test_a_name_is_resolved_once_and_the_address_that_was_judged_is_dialled() -> None:
    asked: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.2"]

    async with served(lambda q, r: r.json(200, b'{"host":"%b"}' % (q.header("host") or "").encode())) as origin:
        named = Origin("http", "pinned.example", origin.port)
        fetched = await fetch(f"{named}/", SsrfRules(allow=frozenset((named,))), max_body=100, resolve=resolve)
    assert fetched.body == b'{"host":"%b"}' % named.authority.encode() and asked == ["pinned.example"]


async def test_each_redirect_is_judged_and_takes_no_headers_along() -> None:
    seen: list[tuple[str, str | None]] = []

    def inner(request: Request, responder: Responder) -> None:
        seen.append(("inner", request.header("authorization")))
        responder.json(200, b"{}")

    async with served(inner) as inside:

        def outer(request: Request, responder: Responder) -> None:
            seen.append((request.path, request.header("authorization")))
            to = {"/in": f"{inside}/x", "/loop": "/loop", "/file": "file:///etc/passwd", "/rel": "done"}
            if request.path in to:
                responder.empty(302, [("Location", to[request.path])])
            else:
                responder.json(200, b"{}")

        async with served(outer) as outside:
            secret = [("Authorization", "Bearer s3cret")]
            only_outer = SsrfRules(allow=frozenset((outside,)), schemes=frozenset(("http",)))
            both = SsrfRules(allow=frozenset((outside, inside)))
            fetched = await fetch(f"{outside}/rel", only_outer, max_body=100, max_redirects=1, headers=secret)
            assert fetched.url == f"{outside}/done"
            for path, code in (("/in", "E1240"), ("/loop", "E1241"), ("/file", "E1229")):
                with pytest.raises(EarnestError) as info:
                    await fetch(f"{outside}{path}", only_outer, max_body=100, max_redirects=3)
                assert info.value.code == code, path
            assert not any(path == "inner" for path, _ in seen)
            await fetch(f"{outside}/in", both, max_body=100, max_redirects=1, headers=secret)
            assert seen[-2:] == [("/in", "Bearer s3cret"), ("inner", None)]


async def test_the_certificate_must_be_the_names_and_not_the_addresss(pem: tuple[str, str]) -> None:
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pem)
    listener = await serve(asyncio.get_running_loop(), "127.0.0.1", 0, lambda q, r: r.json(200, b"{}"), ServerLimits(), context)

    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    right = Origin("https", "127.0.0.1", listener.address[1])
    wrong = Origin("https", "named.example", listener.address[1])
    rules = SsrfRules(allow=frozenset((right, wrong)))
    try:
        tls = TlsSettings(pem[0])
        assert (await fetch(f"{right}/", rules, max_body=100, tls=tls, resolve=resolve)).status == 200
        with pytest.raises(EarnestError) as info:
            await fetch(f"{wrong}/", rules, max_body=100, tls=tls, resolve=resolve)
        assert info.value.code == "E1222"
    finally:
        await listener.close()


async def test_a_server_that_does_not_answer_is_given_up() -> None:
    async with served(lambda q, r: None) as origin:
        with pytest.raises(EarnestError) as info:
            await fetch(f"{origin}/", SsrfRules(allow=frozenset((origin,))), max_body=100, timeout_s=0.2)
    assert info.value.code == "E1227"
