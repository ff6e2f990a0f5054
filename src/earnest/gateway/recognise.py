"""Who is at the other end of connections, found out for all that come together at once."""

from __future__ import annotations

import asyncio

from earnest.gateway.process.peers import Process
from earnest.gateway.process.tcp_peers import hosts_of

Found = tuple[Process, ...]


class Recogniser:
    """Looks up host processes behind connections on a thread, one look through the machine's processes at a time: a burst of
    clients costs two of them, not one for each."""

    def __init__(self) -> None:
        self._waiting: list[tuple[object, asyncio.Future[Found]]] = []
        self._looking: asyncio.Future[list[Found]] | None = None

    async def host(self, client: object, listener: object) -> Found:
        """The host process behind a connection from `client` to `listener`, then its ancestors; nothing if unsure."""
        mine: asyncio.Future[Found] = asyncio.get_running_loop().create_future()
        self._waiting.append((client, mine))
        if self._looking is None:
            self._look(listener)
        return await mine

    def _look(self, listener: object) -> None:
        asked, self._waiting = self._waiting, []
        loop = asyncio.get_running_loop()
        clients = [client for client, _ in asked]
        self._looking = loop.run_in_executor(None, hosts_of, clients, listener)

        def found(looking: asyncio.Future[list[Found]]) -> None:
            self._looking = None
            error = None if looking.cancelled() else looking.exception()
            hosts = [()] * len(asked) if looking.cancelled() or error is not None else looking.result()
            for (_, future), host in zip(asked, hosts, strict=True):
                if future.done():
                    continue
                if error is not None:
                    future.set_exception(error)
                else:
                    future.set_result(host)
            if self._waiting:
                self._look(listener)

        self._looking.add_done_callback(found)
