"""Which values of an environment are secrets."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from earnest.gateway.secrecy import header_values, ordinary, secret_values


@pytest.mark.parametrize(
    "value",
    ["true", "off", "8080", "0.5", "30s", "production", "us-east-1", "DEBUG", "C.UTF-8", "de_DE.UTF-8", "/usr/bin:/bin",
     "/tmp", "https://api.example.com", "https://example.com/api/v1", "http://localhost:8080/"],
)  # fmt: skip
def test_ordinary_values_are_none(value: str) -> None:
    assert ordinary(value) and not secret_values({"SETTING": value})


@pytest.mark.parametrize(
    "value",
    ["s3cr3t-VALUE-1234", "zzTOPSECRETzz99", "correct horse battery staple", "a1B2c3D4e5", "/aB3dE5fG7", "12345678:AAbbCC",
     "https://hooks.example.com/services/T0AB1/x9Y8z7", "https://example.com/x?key=abcdef", "postgres://me:pw12345@db/x"],
)  # fmt: skip
def test_any_other_value_is_one_whatever_it_is_called(value: str) -> None:
    assert value in secret_values({"SETTING": value})


def test_a_name_that_says_so_makes_an_ordinary_word_a_secret_but_not_a_path(tmp_path: Path) -> None:
    env = {"PGPASSWORD": "sunshine", "API_KEY": "letmein", "MY_PAT": "monkey", "AUTHOR": "someone", "KEYBOARD": "german"}
    assert secret_values(env) == {"sunshine", "letmein", "monkey"}
    assert not secret_values({"GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path)})


def test_passwords_inside_addresses_count_on_their_own() -> None:
    assert secret_values({"DB": "postgres://me:p%40ss-word@db/x"}) >= {"p%40ss-word", "p@ss-word"}


def test_of_headers_everything_counts() -> None:
    basic = base64.b64encode(b"me:letmein-now").decode()
    found = header_values({"Authorization": f"Basic {basic}", "X-Key": "plain"})
    assert found == {f"Basic {basic}", basic, "me:letmein-now", "letmein-now", "plain"}
