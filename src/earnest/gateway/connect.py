"""From a served server to a link to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from earnest.core.lanes import Lane
from earnest.gateway.contained import ContainedLink, Stopped
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
        stopped: Callable[[Served, Lane, Stopped], None] = lambda served, lane, what: None,
    ) -> None:
        """`scrub` takes secrets out of what servers say, before it is shortened. `stopped` hears what the boxes of contained
        ones refused."""
        self._refused = stopped
        self._log = log
        self._scrub = scrub
        self._started = started
        self._ended = ended

    def __call__(
        self,
        served: Served,
        client: ClientHello,
        forwarded: Mapping[str, str],
        lane: Lane | None = None,
        umask: int | None = None,
    ) -> Link:
        """`forwarded`: headers of the client's own that the operator lets through to it. `lane`: of a contained server.
        `umask`: of a process; None for this one's."""
        launch = served.launch
        if lane is not None:
            return ContainedLink(
                served.name,
                launch,
                lane,
                stopped=lambda what: self._refused(served, lane, what),
                client=client,
                log=self._log,
                started=self._started,
                ended=self._ended,
                open_timeout=served.timeout,
                scrub=self._scrub,
                umask=umask,
            )
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
            umask=umask,
        )
