"""The gateway's side of hosts' hooks: what of a host's calls comes here, who is asked where the host cannot ask, and the marks
between the daemon and a hook that has to answer without one (`shim/alone.py`)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from earnest.core.errors import EarnestError
from earnest.core.flow import Key
from earnest.gateway.asking import prompt_json
from earnest.gateway.session import Session
from earnest.pdp.approvals import lock_of
from earnest.pdp.catalog import Server, Tool
from earnest.pdp.facts import Judgement
from earnest.shim.alone import MARK, UNHEARD

if TYPE_CHECKING:
    from earnest.gateway.app import App

TAKEN: Final = f"{UNHEARD}.taken"
JOINED: Final = "earnest"
"""How a route of several servers is called in a host's configuration."""
_MOST: Final = 1 << 20


class HookSide:
    """See the module."""

    def __init__(self, app: App) -> None:
        self._app = app

    def served(self, host: Key, name: str, tool: str) -> tuple[str, Server, Tool] | None:
        """What a host calls a server and a tool, if one of its own sessions has them (`hooked.Served`)."""
        for session in self._app.gateway.sessions:
            if session.client.key != host or not _is_called(session, name):
                continue
            found = self._own(session, tool) if session.route.kind == "server" else self._joined(session, tool)
            if found is not None:
                return found
        return None

    def _own(self, session: Session, tool: str) -> tuple[str, Server, Tool] | None:
        for served in session.servers():
            found = [one for one in served.server.tools.values() if host_name(one.name) == host_name(tool)]
            if len(found) == 1 and not session.hidden(served, found[0]):
                return served.name, served.server, found[0]
        return None

    def _joined(self, session: Session, tool: str) -> tuple[str, Server, Tool] | None:
        back = self._app.gateway.names.tools(session).back
        pairs = {pair for alias, pair in back.items() if host_name(alias) == host_name(tool)}
        if len(pairs) != 1:
            return None
        name, own = next(iter(pairs))
        for served in session.servers():
            entry = served.server.tools.get(own)
            if served.name == name and entry is not None and not session.hidden(served, entry):
                return name, served.server, entry
        return None

    def asked(self, judgement: Judgement) -> str:
        """See `hooked.Asked`."""
        app, lock = self._app, lock_of(judgement)
        used = app.approvals.take(lock)
        if used is not None:
            judgement.approval = used.id
            return "yes"
        if not app.world.settings.asking.queue:
            return ""
        approval = app.approvals.ask(lock, prompt_json(judgement))
        app.gateway.asked(approval)
        return approval.id

    def asks_itself(self, host: str) -> bool:
        """Whether the operator leaves asks of preset and user rules to this host."""
        return self._app.world.settings.client(host).ask_host

    # without a daemon

    def mark(self) -> None:
        """Leave or take away the mark that lets hooks allow reads while there is no daemon, as the configuration says."""
        path = os.path.join(self._app.ctx.instance, MARK)
        try:
            if self._app.world.settings.hook.without_daemon == "reads":
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600))
            else:
                with suppress(FileNotFoundError):
                    os.unlink(path)
        except OSError as error:
            raise EarnestError("E1013", f"{path} cannot be changed: {error.strerror}", "check the folder") from None

    def unheard(self, tell: Callable[[str], None]) -> None:
        """See `hooked.Unheard`. Raises E1413 where what was left cannot be read: then nothing is answered."""
        folder = self._app.ctx.instance
        fresh, taken = os.path.join(folder, UNHEARD), os.path.join(folder, TAKEN)
        try:
            if not os.path.lexists(taken):
                try:
                    os.rename(fresh, taken)
                except FileNotFoundError:
                    return
            with open(taken, "rb") as file:
                sessions = file.read(_MOST + 1)
            for session in dict.fromkeys(sessions.decode("ascii", "replace").split("\n")):
                if session:
                    tell(session)
            self._app.records.flush()
            os.unlink(taken)
        except OSError as error:
            raise EarnestError("E1013", f"{taken} cannot be read: {error.strerror}", "check the folder") from None


def _is_called(session: Session, name: str) -> bool:
    """Whether a host may know a session's route by this name. Hosts write it in ways of their own, and `init` made it a slug,
    with a number where two servers had one name; what it proves is shown by the calls that come."""
    wanted = _slug(name)
    if session.route.kind == "server":
        own = _slug(session.route.name)
        return own == wanted or bool(re.fullmatch(re.escape(wanted) + r"-\d{1,3}", own))
    view = _slug(session.route.name)
    return wanted == JOINED or (session.route.kind == "view" and wanted in (view, f"{JOINED}-{view}"))


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def host_name(name: str) -> str:
    """A name of a tool as hosts write it into theirs (`mcp__SERVER__TOOL`)."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)
