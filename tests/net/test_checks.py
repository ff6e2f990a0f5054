"""Host, Origin and token checks: what passes is exactly what was allowed."""

from __future__ import annotations

import pytest

from earnest.net.checks import Refusal, check_host, check_origin, check_token, loopback_hosts, token_digest

HOSTS = loopback_hosts(8080)
CLIENTS = {token_digest("alpha-1"): "a", token_digest("beta-2"): "b"}


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost:8080", "LOCALHOST:8080", "[::1]:8080", "localhost"])
def test_the_listeners_own_names_pass(host: str) -> None:
    assert check_host(host, HOSTS) is None


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "evil.example",
        "localhost:9999",
        "localhost.evil.example:8080",
        "localhost:8080@evil",
        "a b",
        "::1",
    ],
)
def test_any_other_host_is_misdirected(host: str | None) -> None:
    refusal = check_host(host, HOSTS)
    assert refusal is not None and refusal.status == 421


def test_no_origin_or_an_allowed_one_passes_and_null_does_not() -> None:
    assert check_origin(None, ()) is None
    assert check_origin("http://localhost:3000", {"http://localhost:3000"}) is None
    for origin in ("null", "", "http://localhost:3001", "http://localhost:3000/"):
        refusal = check_origin(origin, {"http://localhost:3000"})
        assert refusal is not None and refusal.status == 403


def test_a_token_names_its_client_and_the_scheme_is_any_case() -> None:
    assert check_token("Bearer alpha-1", CLIENTS) == "a"
    assert check_token("bearer  beta-2", CLIENTS) == "b"


@pytest.mark.parametrize(
    "value",
    [None, "", "Bearer", "Bearer ", "Basic alpha-1", "Bearer alpha-1 x", "Bearer alpha", "Bearer alpha-1\n"],
)
def test_anything_else_is_asked_to_authenticate(value: str | None) -> None:
    refusal = check_token(value, CLIENTS)
    assert isinstance(refusal, Refusal) and refusal.status == 401
    assert refusal.headers[0][0] == "WWW-Authenticate" and refusal.headers[0][1].startswith("Bearer")
