"""Boxes for tests: each tier, as whoever runs the suite and, where that is root, as an ordinary user."""

import os
import shutil
import signal
from collections.abc import Iterator

import pytest

from sandbox.rig import TIERS, USERS, Rig


@pytest.fixture
def make_rig() -> Iterator[object]:
    made: list[Rig] = []

    def make(tier: str = "namespaces", user: str = "me") -> Rig:
        rig = Rig(tier, user)
        made.append(rig)
        return rig

    yield make
    for rig in made:
        for pid in rig.left():
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(rig.folder, ignore_errors=True)


@pytest.fixture(params=[(tier, user) for tier in TIERS for user in USERS], ids="-".join)
def rig(request: pytest.FixtureRequest, make_rig) -> Rig:
    """A rig of each tier and user."""
    return make_rig(*request.param)


@pytest.fixture(params=TIERS)
def mine(request: pytest.FixtureRequest, make_rig) -> Rig:
    """A rig of each tier, as whoever runs the suite."""
    return make_rig(request.param)
