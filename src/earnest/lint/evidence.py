"""What a tool seems to do, all signs together: description, name, parameters. Computed once for each server.

A sign is never the name alone. Two conclusions matter: which acts of writing are likely, and whether the tool only reads. The
second is `high` only if the first clause reads, the name agrees or is silent, and nothing anywhere speaks against it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from earnest.lint.language import Act, Text, read, words_of
from earnest.lint.lexicon import DESTROYS, WRITES, Form, Kind, shipped
from earnest.lint.model import Confidence, Server, Tool

_ACTION: Final = frozenset(("action", "operation", "method", "mode", "op", "command", "verb", "subcommand", "act"))
_LASTING: Final = re.compile(
    r"^(?:output|save|dest|destination|download|export|local|response|request|write|result)(?:file|dir|directory|path|folder|filename|name)+$"
    r"|^(?:overwrite|force|dryrun|filename|createdirs|droptarget|commitmessage|ifmatch)$"
)
_REPLACING: Final = re.compile(
    r"(?:droptarget|overwrite(?:existing|file)?|replace(?:all|existing)|delete(?:existing|source|files))\Z"
)
_CONTENT: Final = frozenset(
    ("content", "body", "message", "text", "data", "values", "value", "payload", "updates", "new_name", "newname")
)


class Evidence(msgspec.Struct, frozen=True):
    """Signs of one tool. `writes`: acts that change something, surest first. `reads`: how sure it is that it only reads (None:
    not).

    `named`: what the name's verb does. `actions`: values of a parameter that chooses among acts, with what each does.
    """

    text: Text
    named: Form | None
    writes: tuple[Act, ...]
    destroys: tuple[Act, ...]
    reads: Confidence | None
    actions: tuple[tuple[str, Kind | None], ...]
    lasting: tuple[str, ...]

    def surest(self, *kinds: Kind) -> Act | None:
        """The surest act of these kinds."""
        return next((act for act in self.writes if act.kind in kinds), None)


class Seen(msgspec.Struct, frozen=True):
    """A server with the evidence of each of its tools, in their order."""

    server: Server
    evidence: tuple[Evidence, ...]

    @property
    def tools(self) -> Iterator[tuple[Tool, Evidence]]:
        """Each tool with its evidence."""
        return zip(self.server.tools, self.evidence, strict=True)


def gather(server: Server) -> Seen:
    """A server with the evidence of its tools."""
    common = _common(server)
    return Seen(server, tuple(look(tool, common) for tool in server.tools))


def look(tool: Tool, common: frozenset[str] = frozenset()) -> Evidence:
    """The evidence of one tool; `common`: words that stand in most names of its server and say nothing."""
    text = read(tool.description)
    named = _named(tool.name, common)
    actions = _actions(tool)
    lasting = tuple(name for name in tool.properties if _LASTING.match(re.sub(r"[_-]", "", name).lower()))
    writes = [act for act in text.acts if act.kind in WRITES or (act.kind == "run" and act.sure != "low")]
    writes += [
        Act(kind, value, "", "medium", "schema", f"{value!r} is one of its actions")
        for value, kind in actions
        if kind is not None and kind in WRITES
    ]
    writes += [
        Act("overwrite", name, "", "medium", "schema", f"it has a parameter {name!r}")
        for name in tool.properties
        if _REPLACING.match(re.sub(r"[_-]", "", name).lower())
    ]
    writes = [_weighed(act, named, text) for act in writes]
    order = {"high": 0, "medium": 1, "low": 2}
    writes.sort(key=lambda act: order[act.sure])
    return Evidence(
        text,
        named,
        tuple(writes),
        tuple(act for act in writes if act.kind in DESTROYS),
        _reads(tool, text, named, writes, lasting),
        actions,
        lasting,
    )


def _common(server: Server) -> frozenset[str]:
    if len(server.tools) < 3:
        return frozenset()
    counts = Counter(word for tool in server.tools for word in set(words_of(tool.name)[:2]))
    return frozenset(word for word, count in counts.items() if count >= 0.7 * len(server.tools))


def _named(name: str, common: frozenset[str]) -> Form | None:
    """The verb of a name: its first word, or the last (`deploy_plan_get`), after words that all tools of the server share."""
    lexicon = shipped()
    whole = words_of(name)
    words = [word for word in whole if word not in common]
    if whole[:1] == ["api"]:  # a name made from an operation of an API: its verb is a method
        words = whole[1:]
        if words[:1] == ["post"] and len(words) > 1:
            words = words[1:]
    if not words:
        return None
    first = lexicon.verbs.get(words[0])
    last = lexicon.verbs.get(words[-1]) if len(words) > 1 else None
    if last is not None and (last.form != "base" or words[-1] in ("report", "order", "record", "post", "set", "log", "check")):
        last = None
    if first is not None and first.form == "base":
        # Two verbs that disagree: one of them is a noun ("deploy_plan_get"), and the name says nothing.
        return None if last is not None and last.kind == "read" and first.kind not in ("read", "compute") else first
    if last is not None:
        return last
    second = lexicon.verbs.get(words[1]) if len(words) > 2 else None
    return second if second is not None and second.form == "base" else None


def _actions(tool: Tool) -> tuple[tuple[str, Kind | None], ...]:
    found: list[tuple[str, Kind | None]] = []
    for name, schema in tool.properties.items():
        if name.lower() not in _ACTION or not isinstance(schema, Mapping):
            continue
        for value in _values(schema):
            words = words_of(value)
            # An action is a verb in its base form; "labels" and "commits" are what is listed.
            forms = [
                one if one is not None and one.form == "base" else None
                for one in map(shipped().verbs.get, words[:1] + words[-1:])
            ]
            first, last = forms if len(words) > 1 else [*forms[:1], None] if forms else [None, None]
            if " " in value and last is not None and last.kind == "read":  # "link show": an object, then what is done
                first = last
            chosen = first if first is not None and len(words) <= 3 else last
            kind = chosen.kind if chosen is not None else None
            found.append((value, kind))
    return tuple(found)


def _values(schema: Mapping[str, Any]) -> list[str]:
    enum = schema.get("enum")
    values = [value for value in enum if isinstance(value, str)] if isinstance(enum, list) else []
    for key in ("oneOf", "anyOf"):
        for one in schema.get(key) or () if isinstance(schema.get(key), list) else ():
            if isinstance(one, Mapping):
                if isinstance(one.get("const"), str):
                    values.append(one["const"])
                values += [value for value in one.get("enum") or () if isinstance(value, str)]
    return values


def _weighed(act: Act, named: Form | None, text: Text) -> Act:
    """An act of the description beside the name and what else is said."""
    sure = act.sure
    agrees = named is not None and named.kind == act.kind and act in text.first
    same = named is not None and named.base == act.verb
    if agrees and sure == "low" and act.kind == "update":
        sure = "medium"
    elif agrees and sure == "medium" and act.kind not in ("run", "manage") and (act.kind != "send" or same):
        sure = "high"
    elif act.where == "description" and sure == "high" and not agrees:
        reading = named is not None and named.kind in ("read", "compute")
        if reading and act.kind in ("create", "update", "run", "manage") and not _strong(act):
            sure = "medium"
        if text.harmless and act.kind in ("create", "update", "run", "manage"):
            sure = "medium"
    return act if sure == act.sure else msgspec.structs.replace(act, sure=sure)


def _strong(act: Act) -> bool:
    return act.kind in ("save", "send") or bool(shipped().durable.intersection(act.object.split()))


def _reads(tool: Tool, text: Text, named: Form | None, writes: list[Act], lasting: tuple[str, ...]) -> Confidence | None:
    if writes or not text.first:
        return None
    kinds = {act.kind for act in text.first}
    if not kinds <= {"read", "compute"}:
        return None
    if named is not None and named.kind not in ("read", "compute"):
        return "low"
    if lasting or any(act.kind not in ("read", "compute") for act in text.later):
        return "low"
    if any(act.sure != "high" for act in text.first) or any(act.verb == "download" for act in text.later):
        return "medium"
    if _CONTENT.intersection(name.lower() for name in tool.properties):
        return "medium"
    return "high"
