"""From a served server to a link to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from earnest.gateway.served import Served
from earnest.net.dial import TlsSettings
from earnest.upstream.base import Link
from earnest.upstream.http import HttpLink
from earnest.upstream.opening import ClientHello
from earnest.upstream.stdio import StdioLink


class Connector:
    """Makes links. `started` and `ended` hear of the processes that carry them."""

    def __init__(
        self,
        log: Callable[[str], None],
        started: Callable[[int], None],
        ended: Callable[[int], None],
        scrub: Callable[[str], str] = lambda text: text,
    ) -> None:
        """`scrub` takes secrets out of what servers say, before it is shortened."""
        self._log = log
        self._scrub = scrub
        self._started = started
        self._ended = ended

    def __call__(self, served: Served, client: ClientHello, forwarded: Mapping[str, str]) -> Link:
        """`forwarded`: headers of the client's own that the operator lets through to this server."""
        launch = served.launch
        if launch.url:
            tls = TlsSettings(launch.ca, launch.client_cert, launch.client_key)
            return HttpLink(
                served.name,
                launch.url,
                client=client,
                log=self._log,
                headers={**launch.headers, **forwarded},
                tls=tls,
                open_timeout=served.timeout,
                scrub=self._scrub,
            )
        return StdioLink(
            served.name,
            launch.argv,
            env=launch.env,
            cwd=launch.cwd,
            client=client,
            log=self._log,
            started=self._started,
            ended=self._ended,
            open_timeout=served.timeout,
            scrub=self._scrub,
        )
