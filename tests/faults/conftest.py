"""The rig of this folder: a home, the real daemon, clients, a person; for shapes of bytes a gateway in this process."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from attacks.rig import Rig, rigged
from faults.wire.field import Field, fielded


@pytest.fixture
async def rig(home: Any, tmp_path: Path) -> AsyncIterator[Rig]:
    """See `attacks.rig.Rig`."""
    async with rigged(home, tmp_path) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["modern", "legacy"])
async def field(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Field]:
    """See `faults.wire.field.Field`, in both eras."""
    with pytest.MonkeyPatch.context() as patch:
        async with fielded(tmp_path_factory.mktemp("field"), patch, modern=request.param == "modern") as made:
            yield made
    assert os.environ.get("HOME")
