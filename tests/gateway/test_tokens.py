"""Tokens of HTTP clients: one for each, kept where only their owner reads."""

import os
import stat
from pathlib import Path

import pytest

from earnest.core.errors import EarnestError
from earnest.gateway.tokens import LOCAL, Tokens, named_tokens
from earnest.net.checks import token_digest


def test_a_token_that_was_shown_before_counts_once_it_is_made(tmp_path: Path) -> None:
    tokens = Tokens(str(tmp_path))
    digests = tokens.digests()
    wanted = "w" * 43
    assert tokens.make("cursor", wanted) == wanted and digests[token_digest(wanted)] == "cursor"
    assert tokens.make("cursor", "v" * 43) == wanted, "a client keeps the token it has"
    assert named_tokens(str(tmp_path)) == {wanted: "cursor"}
    assert stat.S_IMODE(os.stat(tmp_path / "tokens.json").st_mode) == 0o600
    assert digests[token_digest(tokens.local())] == LOCAL


@pytest.mark.parametrize("wanted", ["short", "w" * 42, "w" * 43 + "\n", "with spaces " * 6, "t" * 43])
def test_a_guessable_token_or_that_of_another_client_is_refused(tmp_path: Path, wanted: str) -> None:
    tokens = Tokens(str(tmp_path))
    tokens.make("codex", "t" * 43)
    with pytest.raises(EarnestError) as caught:
        tokens.make("cursor", wanted)
    assert caught.value.code == "E1031" and named_tokens(str(tmp_path)) == {"t" * 43: "codex"}


def test_a_damaged_file_is_told_and_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "tokens.json").write_text("{")
    with pytest.raises(EarnestError, match="damaged"):
        named_tokens(str(tmp_path))
