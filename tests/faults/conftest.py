"""The rig of this folder: a home, the real daemon, clients, a person."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from attacks.rig import Rig, rigged


@pytest.fixture
async def rig(home: Any, tmp_path: Path) -> AsyncIterator[Rig]:
    """See `attacks.rig.Rig`."""
    async with rigged(home, tmp_path) as made:
        yield made
