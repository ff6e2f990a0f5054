"""An earnest.toml that merely lies in the working directory: it may come with a cloned repository.

Theory. Whoever wrote such a file is a stranger, so of all it says only what tightens counts, and the rest
is reported, never silently dropped. It tightens by ask and deny rules (in the floor tier, where they cannot
answer before something stricter), by a stricter preset, by labels on their riskier side, by less trust and
by containment.
A server it names is not started and not even resolved; it is listed until a person approves this path with
this hash at a terminal. After that the file is read by `settings.load` like the operator's own.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping

import msgspec

from earnest.config import sections, toml_ranges
from earnest.config.containing import Containment
from earnest.config.document import Member, Node
from earnest.config.reading import Source, Table
from earnest.config.sanitizers import sanitizer
from earnest.config.sections import PRESETS, ServerSettings, ToolLabels
from earnest.config.settings import PolicyText, Settings, policy_text, read
from earnest.core.errors import EarnestError
from earnest.core.hints import RISKY
from earnest.core.profile import NAMES, Labels, Trust

FILE_NAME = "earnest.toml"

_ORDER = tuple(Trust)


class Overlay(msgspec.Struct, frozen=True):
    """What a found file may say. `pending`: its servers, not started. `contained`: servers it wants
    contained; `contain`: whether all of which nothing is said. `ignored`: what it said in vain, one sentence each.
    Approval is of `path` (real path) and `sha256` together."""

    path: str
    sha256: str
    preset: str = ""
    labels: tuple[ToolLabels, ...] = ()
    policies: tuple[PolicyText, ...] = ()
    trust_caps: dict[str, Trust] = {}
    contained: tuple[str, ...] = ()
    contain: bool = False
    pending: tuple[ServerSettings, ...] = ()
    ignored: tuple[str, ...] = ()


def overlay(path: str, env: Mapping[str, str]) -> Overlay | None:
    """Read a found file; None where there is none.

    A mistake in it is an error as in any other file (codes of `settings.load`): a file that means to forbid
    something must not be passed over because of a typing mistake.
    """
    data = read(path, missing_is_error=False)
    if data is None:
        return None
    top = Table(Source(path, data), toml_ranges.scan(path, data), "")
    ignored: list[str] = []
    pending: list[ServerSettings] = []
    caps: dict[str, Trust] = {}
    contained: list[str] = []
    for name, table in top.named("servers"):
        server = sections.server(name, table)
        if server.command or server.url is not None:
            pending.append(server)
        else:
            if server.trust is not None:
                caps[name] = server.trust
            if server.contain:
                contained.append(name)
                if server.contain not in (True, Containment()):
                    ignored.append(f"{server.source}: what [servers.{name}.contain] grants")
            others = [member.key for member in table.node.members if member.key not in ("trust", "contain")]
            if others:
                ignored.append(f"{server.source}: [servers.{name}] {', '.join(others)}")
    labels = []
    for name, table in top.named("labels"):
        found = sections.tool_labels(name, table)
        raised = _raising(found)
        if raised is not None:
            labels.append(raised)
        if raised != found:
            ignored.append(f"{found.source}: labels that make {name} look safer")
    preset = top.choice("preset", PRESETS, "") if top.has("preset") else ""
    folder = os.path.dirname(os.path.abspath(path))
    policies = []
    for policy in policy_text(top, folder, env):
        kept, wanted, dropped = _tightening(policy)
        policies.append(kept)
        preset = max(preset or "observe", wanted or "observe", key=PRESETS.index) if preset or wanted else ""
        ignored += dropped
    # These are read for their mistakes and then left alone.
    for key, reader in _LEFT_ALONE.items():
        if top.has(key):
            line = data.count(b"\n", 0, (top.node.get(key) or top.node).start) + 1
            ignored.append(f"{path}:{line}: [{key}] is the operator's to say")
            _read_anyway(top, key, reader)
    for name in top.texts("include"):
        ignored.append(f"{path}: include {name}")
    contain = top.flag("contain", False)
    top.finish()
    return Overlay(
        path=os.path.realpath(path),
        sha256=hashlib.sha256(data).hexdigest(),
        preset=preset,
        labels=tuple(labels),
        policies=tuple(policies),
        trust_caps=caps,
        contained=tuple(contained),
        contain=contain,
        pending=tuple(pending),
        ignored=tuple(ignored),
    )


def tighten(settings: Settings, found: Overlay) -> Settings:
    """The operator's settings under a found file: nothing in the result is looser than before."""
    caps = dict(settings.trust_caps)
    for name, trust in found.trust_caps.items():
        caps[name] = _less(caps.get(name, trust), trust)
    servers = {
        name: msgspec.structs.replace(server, trust=_less(server.trust, caps[name]))
        if server.trust is not None and name in caps
        else server
        for name, server in settings.servers.items()
    }
    for name in found.contained:
        known = servers.get(name) or ServerSettings(name, source=found.path)
        if not settings.containment(known):
            servers[name] = msgspec.structs.replace(known, contain=Containment())
    stricter = max(settings.preset, found.preset or settings.preset, key=PRESETS.index)
    return msgspec.structs.replace(
        settings,
        servers=servers,
        trust_caps=caps,
        preset=stricter,
        contain=settings.contain or found.contain,
        labels=_merged(settings.labels, found.labels),
        policies=settings.policies + found.policies,
    )


def _less(a: Trust, b: Trust) -> Trust:
    return min(a, b, key=_ORDER.index)


def _raising(found: ToolLabels) -> ToolLabels | None:
    """The labels' riskier half alone. Roles, refinements and dispatchers can lower, so they go."""
    kept = {name: risky for name in NAMES if found.labels.get(name) is (risky := RISKY.get(name, True))}
    if not kept:
        return None
    labels = Labels(**kept, source=found.labels.source)
    return ToolLabels(server=found.server, tool=found.tool, labels=labels, source=found.source)


def _merged(own: tuple[ToolLabels, ...], added: tuple[ToolLabels, ...]) -> tuple[ToolLabels, ...]:
    """One entry a tool; where both speak of a value, the added, riskier one counts."""
    by_tool = {(labels.server, labels.tool): labels for labels in own}
    for extra in added:
        key = (extra.server, extra.tool)
        base = by_tool.get(key)
        if base is None:
            by_tool[key] = extra
            continue
        says = {name: value for name in NAMES if (value := extra.labels.get(name)) is not None}
        # A refinement could lower again, per call, what was just raised.
        by_tool[key] = msgspec.structs.replace(
            base, labels=msgspec.structs.replace(base.labels, **says), refine=(), dispatcher=None
        )
    return tuple(by_tool.values())


def _tightening(policy: PolicyText) -> tuple[PolicyText, str, list[str]]:
    """The policy's asks and denies, to stand in the floor tier, the preset it wants, and what was dropped."""
    dropped: list[str] = []
    preset = policy.node.text("preset")
    node = _asks_and_denies(policy, policy.node, dropped, top=True)
    return msgspec.structs.replace(policy, node=node, tier="floor"), preset if preset in PRESETS else "", dropped


def _asks_and_denies(policy: PolicyText, table: Node, dropped: list[str], *, top: bool) -> Node:
    """The table without what allows. What is written wrong stays in it, so that whoever compiles the policy refuses it: a
    prohibition with a typing mistake must not become nothing."""
    members: list[Member] = []
    for member in table.members:
        node = member.node
        if member.key == "rule" and node.kind == "array":
            rules = tuple(kept for item in node.items if (kept := _strict(policy, item, dropped)) is not None)
            members.append(msgspec.structs.replace(member, node=msgspec.structs.replace(node, items=rules)))
        elif member.key == "floor" and top and node.kind == "object":
            inner = _asks_and_denies(policy, node, dropped, top=False)
            members.append(msgspec.structs.replace(member, node=inner))
        elif member.key == "allow" or (top and member.key == "test"):
            dropped.append(f"{_at(policy, member.start)}: {member.key}")
        elif top and member.key == "preset" and node.value in PRESETS:
            pass  # the stricter of two presets counts, so this one is looked at where presets are
        else:
            members.append(member)
    return msgspec.structs.replace(table, members=tuple(members))


def _strict(policy: PolicyText, rule: Node, dropped: list[str]) -> Node | None:
    """A rule as far as it tightens."""
    name = rule.text("name") or "without a name"
    if rule.text("then") == "allow":
        dropped.append(f"{_at(policy, rule.start)}: the rule {name} asks or denies nothing")
        return None
    if rule.text("flow") != "accept":
        return rule
    dropped.append(f"{_at(policy, rule.start)}: the rule {name} may not accept the flow")
    return msgspec.structs.replace(rule, members=tuple(member for member in rule.members if member.key != "flow"))


def _at(policy: PolicyText, start: int) -> str:
    line = policy.data.count(b"\n", 0, start) + 1
    return f"{policy.path}:{line}"


_LEFT_ALONE: Mapping[str, Callable[[str, Table], object]] = {
    "clients": sections.client,
    "asking": lambda _, table: sections.asking(table),
    "limits": lambda _, table: sections.limits(table),
    "listen": lambda _, table: sections.listen(table),
    "receipts": lambda _, table: sections.receipts(table),
    "flow": lambda _, table: sections.flow(table),
    "hook": lambda _, table: sections.hook(table),
    "views": sections.view,
    "sanitizers": sanitizer,
}


def _tables(top: Table, key: str) -> Iterator[tuple[str, Table]]:
    if key in ("clients", "views", "sanitizers"):
        yield from top.named(key)
    else:
        table = top.table(key)
        if table is not None:
            yield key, table


def _read_anyway(top: Table, key: str, reader: Callable[[str, Table], object]) -> None:
    for name, table in _tables(top, key):
        reader(name, table)


def pending_error(found: Overlay, name: str) -> EarnestError:
    """What to say where a server of a found file is wanted: E1012."""
    return EarnestError(
        "E1012",
        f'the server "{name}" comes from {found.path}, which nobody has approved',
        f"Read it, then approve it: earnest config approve {found.path}",
    )
