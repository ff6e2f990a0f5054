"""The sections of earnest.toml: what each may hold, with defaults. Times are seconds, sizes bytes."""

from __future__ import annotations

import re
from typing import Final, Literal, cast

import msgspec

from earnest.config import tool_tables
from earnest.config.containing import Containment, containment
from earnest.config.document import nearest
from earnest.config.reading import Table
from earnest.config.variables import Template
from earnest.core.dispatch import DispatchSpec
from earnest.core.errors import EarnestError
from earnest.core.profile import NOTHING, Labels, Trust
from earnest.refine.registry import RefineRule

PRESETS: Final = ("observe", "balanced", "cautious", "read-only")
"""From the mildest to the strictest."""

FLOW_INTEGRITY: Final = ("words", "always", "off")

_SERVER_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_ORIGIN: Final = re.compile(r"(https?://[^\s/?#@]+)(?:[/?#].*)?", re.IGNORECASE)
_OWN_HEADERS: Final = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "accept", "accept-encoding", "content-type"}
)


class ServerSettings(msgspec.Struct, frozen=True):
    """One `[servers.NAME]`. Either `command` or `url` is set; neither means settings for a server that a
    client names by `earnest stdio NAME -- COMMAND`.

    `trust` is None where the file says nothing. `timeout` overrides `[limits] call_timeout_s`.
    `forward_headers` are headers of the client's request that go on to the server. `shared`: one upstream
    session for all clients. `contain` is None where the file says nothing of it, False where it is not to be contained.
    """

    name: str
    command: tuple[Template, ...] = ()
    url: Template | None = None
    env: dict[str, Template] = {}
    headers: dict[str, Template] = {}
    forward_headers: tuple[str, ...] = ()
    cwd: Template | None = None
    timeout: float | None = None
    trust: Trust | None = None
    contain: Containment | bool | None = None
    shared: bool = False
    ca: str = ""
    client_cert: str = ""
    client_key: str = ""
    source: str = ""

    @property
    def credentialed(self) -> bool:
        """Whether the server is given environment or headers, any of which may be a credential."""
        return bool(self.env or self.headers or self.forward_headers or self.client_cert)


class Condition(msgspec.Struct, frozen=True):
    """A refinement by a CEL condition over the arguments: the labels that hold where `when` is true."""

    when: str
    labels: Labels
    source: str = ""


class ToolLabels(msgspec.Struct, frozen=True):
    """One `[labels."NAME/TOOL"]`. `pin`: the definition it was written for; empty means the one first
    seen."""

    server: str
    tool: str
    labels: Labels = NOTHING
    arg_roles: dict[str, str] = {}
    refine: tuple[RefineRule | Condition, ...] = ()
    dispatcher: DispatchSpec | None = None
    pin: str = ""
    source: str = ""


class ClientSettings(msgspec.Struct, frozen=True):
    """One `[clients.NAME]`. `asks_person`: an in-band question reaches a person. `ask_host`: asks of preset
    and user's rules are left to the client. `idle_s`: labels end after this silence; 0 means never."""

    name: str
    asks_person: bool = False
    ask_host: bool = False
    conversation: Literal["process", "session", "principal"] = "process"
    idle_s: float = 0.0


class Asking(msgspec.Struct, frozen=True):
    """How a person is asked. `floor_s`: an answer faster than this came from no person."""

    queue: bool = True
    hold_s: float = 45.0
    valid_s: float = 600.0
    floor_s: float = 0.5


class Limits(msgspec.Struct, frozen=True):
    """Bounds, each with an error that names it (E17xx). `head_s`, `body_s`: seconds that a request's head, and
    then its body, may take to arrive; `connections`, `sessions` over HTTP. `restarts` in a row before a server
    is given up; the pause before one doubles from `restart_wait_s`."""

    body_bytes: int = 4 * 1024 * 1024
    depth: int = 128
    headers: int = 100
    header_bytes: int = 32 * 1024
    head_s: float = 10.0
    body_s: float = 30.0
    connections: int = 1024
    sessions: int = 8192
    in_flight_per_client: int = 64
    in_flight_per_server: int = 64
    call_timeout_s: float = 60.0
    call_hard_timeout_s: float = 600.0
    restarts: int = 5
    restart_wait_s: float = 0.5


class Listen(msgspec.Struct, frozen=True):
    """Where HTTP is served. `hosts`, `origins`: accepted beyond the listener's own address; `port` 0 takes
    a free one."""

    host: str = "127.0.0.1"
    port: int = 7573
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()


class Receipts(msgspec.Struct, frozen=True):
    """`strict` waits for the disk before a call goes out; `redact` are names of members whose values
    are not kept, or regular expressions of text that is not. `undo_days`: how long a call can be undone."""

    strict: bool = False
    payloads: bool = True
    payload_days: float = 7.0
    undo_days: float = 7.0
    redact: tuple[str, ...] = ()


class Flow(msgspec.Struct, frozen=True):
    """`[flow]`. `integrity`: where the integrity rule speaks: in conversations whose user's words are known (`words`), in all
    (`always`), or in none (`off`)."""

    integrity: Literal["words", "always", "off"] = "words"


class HookSettings(msgspec.Struct, frozen=True):
    """`[hook]`. `without_daemon`: what a host's hook answers while no daemon can: it refuses every call (`refuse`), or all but
    the host's own tools that only read in a closed world (`reads`)."""

    without_daemon: Literal["refuse", "reads"] = "refuse"


class View(msgspec.Struct, frozen=True):
    """One `[views.NAME]`: the tools for which all that is given holds. `tools` are `server/tool` globs,
    `when` is CEL."""

    name: str
    when: str = ""
    servers: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    source: str = ""


def source_of(table: Table) -> str:
    """`path:line` of a table, for reasons and explanations."""
    line = table.source.data.count(b"\n", 0, table.node.start) + 1
    return f"{table.source.path}:{line}"


def server(name: str, table: Table) -> ServerSettings:
    """Read one `[servers.NAME]`."""
    if not _SERVER_NAME.fullmatch(name):
        table.source.fail(
            table.node,
            "E1006",
            f'"{name}" cannot name a server',
            "use lower-case letters, digits, - and _, a letter or digit first, at most 64",
        )
    command = table.templates("command")
    url = table.template("url")
    if command and url is not None:
        table.fail("url", "E1005", f"{table.name} has both a command and a url", "a server is one or the other")
    if table.has("command"):
        if not command or not command[0].parts:
            table.fail(
                "command",
                "E1005",
                f"{table.path('command')} names no program",
                'write ["program", "argument"]',
            )
        for part in command:
            for reference in part.references:
                if reference.kind != "env":
                    table.fail(
                        "command",
                        "E1005",
                        f"{reference} in {part.field} would be seen by every process of this machine",
                        f"hand it over in [{table.name}.env]",
                    )
    if url is not None and not url.references and not _ORIGIN.fullmatch(url.shown()):
        table.fail("url", "E1005", f"{table.path('url')} must start with https:// or http://, and hold no user")
    trust = table.choice("trust", tuple(Trust), "")
    timeout = table.number("timeout", 0, least=0.001) if table.has("timeout") else None
    table.take("timeout")
    found = ServerSettings(
        name=name,
        command=command,
        url=url,
        env=table.template_map("env"),
        headers=_headers(table),
        forward_headers=table.texts("forward_headers"),
        cwd=table.template("cwd"),
        timeout=timeout,
        trust=Trust(trust) if trust else None,
        contain=containment(table),
        shared=table.flag("shared", False),
        ca=table.text("ca"),
        client_cert=table.text("client_cert"),
        client_key=table.text("client_key"),
        source=source_of(table),
    )
    table.finish()
    http_only = ("headers", "forward_headers", "ca", "client_cert", "client_key")
    for key in ("env", "cwd", "contain") if url is not None else http_only if command else ():
        if table.has(key):
            other = "a command" if url is not None else "a url"
            table.fail(key, "E1005", f"{table.path(key)} belongs to {other}, which this server does not have")
    if found.client_key and not found.client_cert:
        table.fail("client_key", "E1005", f"{table.name} has a client_key without a client_cert")
    return found


def _headers(table: Table) -> dict[str, Template]:
    headers = table.template_map("headers")
    seen: set[str] = set()
    for name, value in headers.items():
        node = table.node.get("headers", name) or table.node
        text = value.shown()
        if not _HEADER_NAME.fullmatch(name) or any(sign in text for sign in "\r\n"):
            table.source.fail(node, "E1005", f"{table.name}.headers.{name} is no header")
        if name.lower() in _OWN_HEADERS or name.lower().startswith("mcp-"):
            table.source.fail(node, "E1005", f"the header {name} is written by earnest itself", "remove it")
        if name.lower() in seen:
            table.source.fail(node, "E1005", f"the header {name} stands twice, in two spellings", "remove one")
        seen.add(name.lower())
    return headers


def tool_labels(name: str, table: Table) -> ToolLabels:
    """Read one `[labels."NAME/TOOL"]`."""
    owner, slash, tool = name.partition("/")
    if not slash or not tool or not _SERVER_NAME.fullmatch(owner):
        table.source.fail(table.node, "E1006", f'"{name}" names no tool', 'write [labels."SERVER/TOOL"]')
    pin = table.text("pin")
    if pin and not re.fullmatch(r"v\d+:[0-9a-f]{64}", pin):
        table.fail("pin", "E1005", f"{table.path('pin')} is no pin", "`earnest pins list` prints them: v1: and 64 hex digits")
    found = ToolLabels(
        server=owner,
        tool=tool,
        labels=tool_tables.labels(table, source_of(table)),
        arg_roles=tool_tables.roles(table),
        refine=tuple(_refine(rule) for rule in table.tables("refine")),
        dispatcher=tool_tables.dispatcher(tool, table),
        pin=pin,
        source=source_of(table),
    )
    table.finish()
    return found


def _refine(table: Table) -> RefineRule | Condition:
    source = source_of(table)
    labels = tool_tables.labels(table, source)
    return tool_tables.refinement(table, labels, source, lambda when: Condition(when, labels, source), condition_speaks=False)


def client(name: str, table: Table) -> ClientSettings:
    """Read one `[clients.NAME]`."""
    conversation = table.choice("conversation", ("process", "session", "principal"), "process")
    found = ClientSettings(
        name=name,
        asks_person=table.choice("asks", ("person", "nobody"), "nobody") == "person",
        ask_host=table.choice("ask", ("host", "earnest"), "earnest") == "host",
        conversation=cast(Literal["process", "session", "principal"], conversation),
        idle_s=table.number("idle_s", 0.0),
    )
    table.finish()
    return found


def asking(table: Table) -> Asking:
    """Read `[asking]`."""
    d = Asking()
    found = Asking(
        queue=table.flag("queue", d.queue),
        hold_s=table.number("hold_s", d.hold_s, most=3600),
        valid_s=table.number("valid_s", d.valid_s, least=1, most=86400),
        floor_s=table.number("floor_s", d.floor_s, most=60),
    )
    table.finish()
    return found


def limits(table: Table) -> Limits:
    """Read `[limits]`."""
    d = Limits()
    found = Limits(
        body_bytes=table.whole("body_bytes", d.body_bytes, least=1024),
        depth=table.whole("depth", d.depth, least=8, most=1000),
        headers=table.whole("headers", d.headers, least=8, most=10_000),
        header_bytes=table.whole("header_bytes", d.header_bytes, least=1024),
        head_s=table.number("head_s", d.head_s, least=0.1, most=3600),
        body_s=table.number("body_s", d.body_s, least=0.1, most=3600),
        connections=table.whole("connections", d.connections, least=1),
        sessions=table.whole("sessions", d.sessions, least=2),
        in_flight_per_client=table.whole("in_flight_per_client", d.in_flight_per_client, least=1),
        in_flight_per_server=table.whole("in_flight_per_server", d.in_flight_per_server, least=1),
        call_timeout_s=table.number("call_timeout_s", d.call_timeout_s, least=0.001),
        call_hard_timeout_s=table.number("call_hard_timeout_s", d.call_hard_timeout_s, least=0.001),
        restarts=table.whole("restarts", d.restarts),
        restart_wait_s=table.number("restart_wait_s", d.restart_wait_s, most=3600),
    )
    table.finish()
    if found.call_hard_timeout_s < found.call_timeout_s:
        table.fail(
            "call_hard_timeout_s",
            "E1005",
            f"limits.call_hard_timeout_s ({found.call_hard_timeout_s:g}) is below "
            f"call_timeout_s ({found.call_timeout_s:g}), which it is the maximum of",
        )
    return found


def listen(table: Table) -> Listen:
    """Read `[listen]`."""
    d = Listen()
    found = Listen(
        host=table.text("host", d.host),
        port=table.whole("port", d.port, most=65535),
        hosts=table.texts("hosts"),
        origins=table.texts("origins"),
    )
    table.finish()
    for origin in found.origins:
        match = _ORIGIN.fullmatch(origin)
        if not match or match[1] != origin:
            table.fail(
                "origins",
                "E1005",
                f'listen.origins: "{origin}" is no origin',
                "write https://host or http://host:port",
            )
    if not found.host:
        table.fail("host", "E1005", "listen.host is empty", 'write "127.0.0.1", or "0.0.0.0" for every address')
    return found


def receipts(table: Table) -> Receipts:
    """Read `[receipts]`."""
    d = Receipts()
    found = Receipts(
        strict=table.flag("strict", d.strict),
        payloads=table.flag("payloads", d.payloads),
        payload_days=table.number("payload_days", d.payload_days, most=36500),
        undo_days=table.number("undo_days", d.undo_days, most=36500),
        redact=table.texts("redact"),
    )
    table.finish()
    return found


def flow(table: Table) -> Flow:
    """Read `[flow]`."""
    integrity = table.choice("integrity", FLOW_INTEGRITY, FLOW_INTEGRITY[0])
    table.finish()
    return Flow(cast(Literal["words", "always", "off"], integrity))


def hook(table: Table) -> HookSettings:
    """Read `[hook]`."""
    without = table.choice("without_daemon", ("refuse", "reads"), "refuse")
    table.finish()
    return HookSettings(cast(Literal["refuse", "reads"], without))


def view(name: str, table: Table) -> View:
    """Read one `[views.NAME]`. Its condition is checked by the policy compiler, its servers against all
    servers later."""
    if not _SERVER_NAME.fullmatch(name):
        table.source.fail(table.node, "E1006", f'"{name}" cannot name a view', "use lower-case letters, digits, - and _")
    found = View(
        name=name,
        when=table.text("when"),
        servers=table.texts("servers"),
        tools=table.texts("tools"),
        source=source_of(table),
    )
    table.finish()
    if not (found.when or found.servers or found.tools):
        table.source.fail(table.node, "E1005", f"{table.name} says nothing", "give it when, servers or tools")
    return found


def check_names(views: dict[str, View], servers: dict[str, ServerSettings]) -> None:
    """Refuse a view whose server is a misspelling of a configured one (E1005). Other unknown names pass:
    servers also come from clients' command lines."""
    for found in views.values():
        for name in found.servers:
            hint = nearest(name, list(servers))
            if name not in servers and hint.startswith("did"):
                raise EarnestError(
                    "E1005",
                    f'{found.source}: view {found.name} names server "{name}", which is not configured',
                    hint,
                )
