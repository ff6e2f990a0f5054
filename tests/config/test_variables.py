"""References are looked up late, mistakes name variable and field, and a secret is never printed."""

import copy
import json
import pickle
from pathlib import Path

import msgspec
import pytest

from earnest.config.variables import Secret, parse
from earnest.core.errors import EarnestError


def look(text: str, env: dict[str, str] | None = None, **more: object) -> str:
    return parse(text, "servers.x.env.T").resolve(env or {}, **more).reveal()  # type: ignore[arg-type]


def test_text_and_references_are_put_together() -> None:
    assert look("a ${env:X}-${env:Y} b", {"X": "1", "Y": ""}) == "a 1- b"
    assert look("plain $X {x} $$ \\") == "plain $X {x} $$ \\"
    assert look("$${env:X} ${env:X}", {"X": "1"}) == "${env:X} 1"


def test_what_a_reference_stands_for_is_not_looked_up_again() -> None:
    assert look("${env:X}", {"X": "${env:Y}", "Y": "no"}) == "${env:Y}"


def test_a_secret_is_never_printed() -> None:
    secret = Secret("hunter2")
    shown = [repr(secret), str(secret), f"{secret}", f"{secret:>30}", "%s" % secret, f"{[secret]}"]  # noqa: UP031
    assert not [text for text in shown if "hunter2" in text]


def test_a_secret_goes_into_no_serialiser() -> None:
    secret = Secret("hunter2")
    for write in (json.dumps, msgspec.json.encode, pickle.dumps, copy.copy):
        with pytest.raises(TypeError):
            write(secret)


def test_a_template_shows_references_and_hides_text() -> None:
    assert repr(parse("hunter2${env:X}", "f")) == "…${env:X}"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("${env:NO}", "${env:NO} in servers.x.env.T is not set"),
        ("${keyring:a/b}", "${keyring:a/b} in servers.x.env.T is not in the keyring"),
        (
            "${file:/nowhere/at/all}",
            "${file:/nowhere/at/all} in servers.x.env.T: /nowhere/at/all: No such file",
        ),
    ],
)
def test_what_is_not_there_names_variable_and_field(text: str, says: str) -> None:
    with pytest.raises(EarnestError) as caught:
        look(text, keyring=lambda service, user: None)
    assert caught.value.code == "E1007" and says in caught.value.message and caught.value.remedy


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("${TOK}", "write ${env:TOK}"),
        ("${evn:X}", 'did you mean "env"?'),
        ("${env:}", "names nothing"),
        ("${keyring:x}", "${keyring:service/user}"),
        ("a ${env:X", "never closed"),
        ("${input:k}", "no variable of earnest's"),
    ],
)
def test_a_wrong_reference_is_refused_when_the_file_is_read(text: str, says: str) -> None:
    with pytest.raises(EarnestError) as caught:
        parse(text, "f")
    assert caught.value.code == "E1007" and says in str(caught.value)


def test_a_file_gives_its_content_without_the_last_line_end(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_bytes(b"abc\n\n")
    path.chmod(0o600)
    assert look("${file:token}", base=str(tmp_path)) == "abc\n"


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_secret_file_that_others_can_write_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "token"
    path.write_bytes(b"abc")
    path.chmod(mode)
    with pytest.raises(EarnestError) as caught:
        look("${file:token}", base=str(tmp_path))
    assert caught.value.code == "E1008" and f"chmod 600 {path}" in caught.value.remedy


def test_a_folder_a_large_file_and_bytes_are_no_secrets(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * 70_000)
    (tmp_path / "bytes").write_bytes(b"\xff")
    for name in ("large", "bytes", "."):
        if name != ".":
            (tmp_path / name).chmod(0o600)
        with pytest.raises(EarnestError) as caught:
            look(f"${{file:{name}}}", base=str(tmp_path))
        assert caught.value.code == ("E1008" if name == "bytes" else "E1007")


def test_a_keyring_that_fails_is_told() -> None:
    def broken(service: str, user: str) -> str:
        raise RuntimeError("locked")

    with pytest.raises(EarnestError, match="locked") as caught:
        look("${keyring:a/b}", keyring=broken)
    assert caught.value.code == "E1009"
    assert look("${keyring:a/b/c}", keyring=lambda service, user: f"{service}|{user}") == "a|b/c"
