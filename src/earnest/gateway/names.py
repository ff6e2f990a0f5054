"""Names on routes of several servers: aliases of tools and prompts, owners of resources and tasks.

Aliases of tools come from the catalog; prompts and resources are known once their lists were walked, which happens before the
first call that needs them. Everything is a table; no name is ever split.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import msgspec

from earnest.gateway.served import Served
from earnest.protocol import calls, names
from earnest.protocol.methods import Method
from earnest.protocol.names import Aliases, Resources

if TYPE_CHECKING:
    from earnest.gateway.session import Session

PREFIX: Final = names.client_prefix("earnest")
"""What clients put before each tool of a server they know as `earnest`; its length counts."""


MAX_TASKS: Final = 10_000
"""Tasks of one session that are remembered; later ones cannot be asked for on a route of several servers."""


class _Known:
    """What one session has learnt of the servers of its route."""

    def __init__(self) -> None:
        self.prompts: dict[str, list[str]] = {}
        self.uris: dict[str, list[str]] = {}
        self.templates: dict[str, list[str]] = {}
        self.walked: set[str] = set()
        self.tasks: dict[str, str] = {}
        self.prompt_aliases: Aliases | None = None
        self.resources: Resources | None = None


class _Item(msgspec.Struct):
    name: str = ""
    uri: str = ""
    uriTemplate: str = ""


class Names:
    """The tables of all sessions."""

    def __init__(self) -> None:
        self._known: dict[Session, _Known] = {}
        self._aliases: dict[tuple[object, ...], Aliases] = {}

    def changed(self) -> None:
        """Some server's lists changed: what was learnt is learnt again."""
        for known in self._known.values():
            known.walked.clear()
        self._aliases.clear()

    def forget(self, session: Session) -> None:
        """The session is gone."""
        self._known.pop(session, None)

    def tools(self, session: Session) -> Aliases:
        """The aliases of all tools of the route's servers, hidden ones too, so that no view changes a name."""
        servers = session.servers()
        key = tuple((s.name, s.server.identity, s.server.generation, id(s.server)) for s in servers)
        known = self._aliases.get(key)
        if known is None:
            if len(self._aliases) > 64:
                self._aliases.clear()
            known = names.aliases(((s.name, tool) for s in servers for tool in s.server.tools), PREFIX)
            self._aliases[key] = known
        return known

    def needs(self, session: Session, method: Method) -> tuple[str, ...]:
        """The lists that must be walked before a call of this method can be routed."""
        if session.route.kind == "server":
            return ()
        wanted: tuple[str, ...] = ()
        if method.kind == "prompt":
            wanted = ("prompts/list",)
        elif method.kind in ("resource", "subscription"):
            wanted = ("resources/list", "resources/templates/list")
        elif method.kind == "completion":
            wanted = ("prompts/list", "resources/list", "resources/templates/list")
        known = self._known.get(session)
        return tuple(name for name in wanted if known is None or name not in known.walked)

    def learn(self, session: Session, served: Served, method: str, items: Iterable[bytes]) -> None:
        """Take what a server lists."""
        known = self._known.setdefault(session, _Known())
        seen: list[_Item] = []
        for item in items:
            try:
                seen.append(msgspec.json.decode(item, type=_Item))
            except msgspec.MsgspecError:
                continue
        if method == "prompts/list":
            known.prompts[served.name] = [item.name for item in seen]
            known.prompt_aliases = None
        elif method == "resources/list":
            known.uris[served.name] = [item.uri for item in seen]
            known.resources = None
        else:
            known.templates[served.name] = [item.uriTemplate for item in seen]
            known.resources = None

    def walked(self, session: Session, method: str) -> None:
        """All servers' lists of this kind were learnt."""
        self._known.setdefault(session, _Known()).walked.add(method)

    def task(self, session: Session, served: Served, task_id: str) -> None:
        """A server made a task for this session."""
        known = self._known.setdefault(session, _Known())
        if known.tasks.get(task_id, served.name) != served.name:
            known.tasks[task_id] = ""  # two servers gave it: whose task is meant cannot be said
        elif len(known.tasks) < MAX_TASKS:
            known.tasks[task_id] = served.name

    def relabelled(self, session: Session, served: Served, method: str, item: bytes) -> bytes:
        """A listed object under the name it has on this route."""
        try:
            seen = msgspec.json.decode(item, type=_Item)
        except msgspec.MsgspecError:
            return item
        if method == "prompts/list":
            alias = self._prompts(session).of[served.name, seen.name]
            return item if alias == seen.name else calls.with_member(item, "name", calls.string(alias))
        member = "uri" if method == "resources/list" else "uriTemplate"
        uri = seen.uri or seen.uriTemplate
        shown = self._resources(session).served(served.name, uri)
        return item if shown == uri else calls.with_member(item, member, calls.string(shown))

    def owner(self, session: Session, method: Method, kind: str, name: str) -> tuple[str, str] | None:
        """The server and its own name of a prompt, resource or task."""
        if kind == "task":
            known = self._known.get(session)
            server = known.tasks.get(name) if known is not None else None
            return (server, name) if server else None
        if kind == "prompt":
            return self._prompts(session).back.get(name)
        if kind == "resource":
            route = self._resources(session).route(name)
            return (route.server, route.uri) if route is not None else None
        return self.tools(session).back.get(name)

    def _prompts(self, session: Session) -> Aliases:
        known = self._known.setdefault(session, _Known())
        if known.prompt_aliases is None:
            pairs = ((server, prompt) for server, prompts in known.prompts.items() for prompt in prompts)
            known.prompt_aliases = names.aliases(pairs, PREFIX)
        return known.prompt_aliases

    def _resources(self, session: Session) -> Resources:
        known = self._known.setdefault(session, _Known())
        if known.resources is None:
            known.resources = names.resources(
                [served.name for served in session.servers()],
                [(server, uri) for server, uris in known.uris.items() for uri in uris],
                [(server, template) for server, templates in known.templates.items() for template in templates],
            )
        return known.resources
