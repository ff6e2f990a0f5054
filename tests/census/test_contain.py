"""Boxes of surveyed servers, without namespaces too."""

import contextlib
import os
import subprocess

import pytest

from earnest.census import contain
from earnest.sandbox.confined import Confined

SAYS = ("/bin/sh", "-c", 'echo "$HOME"; ls -A "$HOME" | wc -l; touch "$HOME/mine" && echo made')


def test_without_namespaces_each_server_has_a_home_that_any_user_can_make(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contain, "choose", Confined)
    with contextlib.ExitStack() as stack:
        boxes = [stack.enter_context(contain.box(SAYS, {"PATH": "/usr/bin:/bin"}, (), None, 10.0)) for _ in range(2)]
        said = [subprocess.run(box.argv, env=dict(box.env), capture_output=True, text=True, timeout=30) for box in boxes]
    homes = [done.stdout.splitlines()[0] for done in said]
    assert [done.stdout.splitlines()[1:] for done in said] == [["0", "made"]] * 2, said
    assert len(set(homes)) == 2 and not any(home.startswith("/home/") or os.path.exists(home) for home in homes)
