"""The engine's tests run on the loop the daemon runs on."""

from __future__ import annotations

import asyncio

import pytest
import uvloop


@pytest.fixture(scope="session", params=["uvloop", "asyncio"])
def event_loop_policy(request: pytest.FixtureRequest) -> asyncio.AbstractEventLoopPolicy:
    return uvloop.EventLoopPolicy() if request.param == "uvloop" else asyncio.DefaultEventLoopPolicy()
