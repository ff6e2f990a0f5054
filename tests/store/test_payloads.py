"""Payloads: found by digest while their days last, without secrets, and never in the way of a call."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from earnest.core.errors import EarnestError
from earnest.core.scrub import REDACTED, Scrubber
from earnest.store.payloads import Payloads, find

DAY = 86400.0


class Clock:
    now = 20_000 * DAY

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "payloads")


def keep(folder: str, data: bytes, clock: Clock | None = None, **how: Any) -> tuple[Payloads, str]:
    payloads = Payloads(folder, "w", clock or Clock(), **how)
    name = hashlib.sha256(data).hexdigest()
    payloads.keep("arguments", name, data)
    payloads.flush()
    return payloads, name


def test_a_payload_is_found_by_its_digest(folder: str) -> None:
    data = '{"path":"/größe"}'.encode()
    _, name = keep(folder, data)
    found = find(folder, name)
    assert found is not None and found.text.encode() == data
    assert (found.kind, found.size, found.redacted, found.left_out) == ("arguments", len(data), 0, "")
    assert find(folder, "00" * 32) is None and find(folder + "x", name) is None
    (file,) = Path(folder).iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


def test_the_same_payload_is_kept_once_a_day(folder: str) -> None:
    clock = Clock()
    payloads, name = keep(folder, b"{}", clock)
    payloads.keep("arguments", name, b"{}")
    clock.now += DAY
    payloads.keep("arguments", name, b"{}")
    payloads.flush()
    assert [file.read_text().count("\n") for file in Path(folder).iterdir()] == [1, 1]


def test_nothing_is_kept_when_it_is_off(folder: str) -> None:
    keep(folder, b"{}", enabled=False)
    assert not os.path.exists(folder)


def test_days_go_when_they_are_over(folder: str) -> None:
    clock = Clock()
    payloads, old = keep(folder, b"1", clock, days=7)
    clock.now += 7 * DAY
    assert payloads.prune() == [] and find(folder, old)
    clock.now += DAY
    _, new = keep(folder, b"2", clock)
    Path(folder, "notes.txt").write_text("mine")
    assert len(payloads.prune()) == 1
    assert find(folder, old) is None and find(folder, new) and Path(folder, "notes.txt").exists()


@pytest.mark.parametrize("secret", ["hunter2hunter2", 'with"quote\\and\nline', "schlüssel-größe"])
@pytest.mark.parametrize("ascii", [True, False])
def test_secrets_are_never_written_in_any_spelling(folder: str, secret: str, ascii: bool) -> None:
    data = json.dumps({"note": f"it is {secret}, he said"}, ensure_ascii=ascii).encode()
    _, name = keep(folder, data, secrets=Scrubber([secret, "", "abc"]))
    found = find(folder, name)
    assert found is not None and found.redacted == 1
    assert json.loads(found.text) == {"note": f"it is {REDACTED}, he said"}


def test_a_secret_within_another_leaves_nothing_behind(folder: str) -> None:
    _, name = keep(folder, b'"token-abcdef-rest"', secrets=Scrubber(["abcdef", "token-abcdef-rest"]))
    found = find(folder, name)
    assert found is not None and found.text == f'"{REDACTED}"'


@pytest.mark.parametrize(
    "text",
    [
        "AKIA" + "A" * 16,
        "ghp_" + "a" * 36,
        "sk-" + "a" * 30,
        "xoxb-" + "1" * 12,
        "-----BEGIN RSA PRIVATE KEY-----\\nMIIE\\n-----END RSA PRIVATE KEY-----",
        "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
        "number 4711-99",
    ],
)
def test_what_looks_like_a_key_is_taken_out(folder: str, text: str) -> None:
    _, name = keep(folder, f'{{"a":"{text}","b":1}}'.encode(), redact=[r"\d{4}-\d\d"])
    found = find(folder, name)
    assert found is not None and found.redacted == 1
    assert (
        json.loads(found.text)["a"] in (REDACTED, f"number {REDACTED}") and json.loads(found.text)["b"] == 1
    )


def test_members_that_hold_secrets_are_taken_out(folder: str) -> None:
    _, name = keep(
        folder, b'{"password":"a\\"b","Authorization" : "Bearer x","client_secret":"s","user":"me"}'
    )
    found = find(folder, name)
    assert found is not None
    gone = dict.fromkeys(["password", "Authorization", "client_secret"], REDACTED)
    assert json.loads(found.text) == {**gone, "user": "me"} and found.redacted == 3


def test_members_the_operator_named_are_taken_out_wherever_they_stand(folder: str) -> None:
    data = b'{"SSN":123,"note":"ssn","rows":[{"ssn":{"a":[1]}, "n":1.50}]}'
    _, name = keep(folder, data, redact=["ssn"])
    found = find(folder, name)
    assert found is not None and found.redacted == 2
    assert found.text == f'{{"SSN":"{REDACTED}","note":"ssn","rows":[{{"ssn":"{REDACTED}","n":1.50}}]}}'
    _, words = keep(folder, b"the ssn of nobody", redact=["ssn"])
    assert (said := find(folder, words)) is not None and said.text == "the ssn of nobody"


def test_a_secret_that_is_known_later_is_not_written_from_then_on(folder: str) -> None:
    secrets = Scrubber()
    payloads, _ = keep(folder, b'"before"', secrets=secrets)
    secrets.add(["s3cret-value"])
    data = b'"it is s3cret-value"'
    payloads.keep("result", "ab" * 32, data)
    payloads.flush()
    assert (found := find(folder, "ab" * 32)) is not None and found.text == f'"it is {REDACTED}"'


def test_a_payload_too_long_is_left_out_and_said_so(folder: str) -> None:
    _, name = keep(folder, b"x" * 101, limit_bytes=100)
    found = find(folder, name)
    assert found is not None and (found.size, found.text, found.left_out) == (
        101,
        "",
        "longer than 100 bytes",
    )


def test_a_pattern_that_is_none_is_an_error(folder: str) -> None:
    with pytest.raises(EarnestError) as caught:
        Payloads(folder, "w", Clock(), redact=["(a"])
    assert caught.value.code == "E1414"


def test_a_failure_is_told_and_stops_nothing(folder: str) -> None:
    Path(folder).write_text("a file where the folder should be")
    payloads, name = keep(folder, b"{}")
    assert payloads.problem is not None and payloads.problem.code == "E1415"
    os.unlink(folder)
    payloads.keep("arguments", name, b"{}")
    payloads.flush()
    assert payloads.problem is None and find(folder, name)
