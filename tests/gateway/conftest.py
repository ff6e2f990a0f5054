"""Fixtures of the gateway's tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.live import Start, gateways


@pytest.fixture
async def gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Start]:
    """`await gateway(servers, preset="observe", more="")`: a running gateway (see `live.py`)."""
    async with gateways(tmp_path, monkeypatch) as start:
        yield start
