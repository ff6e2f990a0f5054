"""What a program says of its tools: hints, facets, roles of arguments, in any of the spellings people use.

A mapping from tool to statements, a pack (by name, as an object, or as a file). In a mapping a statement is a hint or facet
(`readOnly`,
`read_only`, `readOnlyHint`), `arg_roles` (argument or path to `destination`, `selector`, `amount`, `content`; also `sink`,
`sel`, `qty`), and what a tool's definition holds: `inputSchema`, `title`, `annotations` (which only ever raise here: they
are the server's words). What is not said is worst.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from earnest.config.packs import Pack, built_in, load_packs
from earnest.core import canonical
from earnest.core.errors import EarnestError
from earnest.core.hints import RawHints, raw_from_object
from earnest.core.profile import NAMES, NOTHING, WORST, Labels, Profile, Standing, Trust, entailed, resolve
from earnest.core.roles import Role, label

_SPELLINGS: Final = {
    **{name: name for name in NAMES},
    "readOnly": "read_only",
    "openWorld": "open_world",
    "readOnlyHint": "read_only",
    "destructiveHint": "destructive",
    "idempotentHint": "idempotent",
    "openWorldHint": "open_world",
    "readsPrivate": "reads_private",
    "seesUntrusted": "sees_untrusted",
    "canExfiltrate": "can_exfiltrate",
}
_OTHERS: Final = frozenset(
    (
        "arg_roles",
        "argRoles",
        "roles",
        "inputSchema",
        "input_schema",
        "title",
        "annotations",
        "undoable",
        "note",
        "description",
        "server",
        "name",
    )
)


class ToolLabels(msgspec.Struct, frozen=True):
    """What is known of one tool. `undoable`: whoever runs the call can take its effect back."""

    name: str
    profile: Profile = WORST
    roles: Mapping[str, Role] = {}
    schema: Mapping[str, Any] | None = None
    title: str = ""
    undoable: bool = False
    claims: RawHints = RawHints()


METHODS: Final = {
    # A read can leak by its address; nothing is known of what comes back.
    "resources.read": ToolLabels(
        "resources.read", resolve(Standing(operator=Labels(read_only=True, source="method"))), {"uri": Role.DESTINATION}
    ),
    "prompts.get": ToolLabels("prompts.get", resolve(Standing(operator=Labels(read_only=True, source="method")))),
}
"""Calls of a server that are not calls of tools, by the names that labels may use."""


class Listed(msgspec.Struct, frozen=True):
    """A tool as its server lists it."""

    name: str
    title: str
    schema: Mapping[str, Any] | None
    claims: RawHints
    digest: str

    @classmethod
    def of(cls, definition: Any) -> Listed:
        """Of one object of `tools/list`. Raises E1004 for what is none."""
        name = definition.get("name") if isinstance(definition, Mapping) else None
        if not isinstance(name, str) or not name:
            raise EarnestError("E1004", f"a tool's definition is an object with a name, not {definition!r:.80}")
        schema = definition.get("inputSchema")
        title = definition.get("title")
        return cls(
            name,
            title if isinstance(title, str) else "",
            schema if isinstance(schema, Mapping) else None,
            raw_from_object(definition.get("annotations")),
            canonical.digest(json.dumps(definition).encode()),
        )

    def labels(self, trust: Trust, first: Listed) -> ToolLabels:
        """Labels of a tool that the program said nothing of. `first`: as it was listed first."""
        standing = Standing(trust=trust, claims=self.claims, pin_holds=self.digest == first.digest)
        return ToolLabels(self.name, resolve(standing), {}, self.schema, self.title, claims=self.claims)

    def beside(self, said: ToolLabels) -> ToolLabels:
        """The program's labels, with the schema and title that only the server knows."""
        return msgspec.structs.replace(said, schema=said.schema or self.schema, title=said.title or self.title)


def read(labels: object) -> dict[str, ToolLabels]:
    """The labels of all tools. Raises `EarnestError` E1003 unknown statement, E1004 wrong type, E1005 wrong value."""
    if labels is None:
        return {}
    if isinstance(labels, Pack):
        return _of_pack(labels)
    if isinstance(labels, str | Path):
        return _of_pack(_named(labels))
    if isinstance(labels, Mapping):
        return {str(name): _tool(str(name), said) for name, said in labels.items()}
    raise EarnestError("E1004", f"labels are a mapping or a pack, not {type(labels).__name__}")


def _named(name: str | Path) -> Pack:
    path = Path(name)
    if path.suffix == ".toml":
        packs = [pack for pack in load_packs(path.parent) if Path(pack.path).name == path.name]
    else:
        packs = [pack for pack in load_packs(built_in()) if pack.name == str(name)]
    if not packs:
        raise EarnestError(
            "E1005", f"there is no pack {str(name)!r}", "give the name of a pack that ships, or the path of a file"
        )
    return packs[0]


def _of_pack(pack: Pack) -> dict[str, ToolLabels]:
    found: dict[str, ToolLabels] = {}
    for name, tool in pack.tools.items():
        roles = {path: role for path, text in tool.roles.items() if (role := label(text)) is not None}
        # The program vouches for the pack: it says which server it talks to.
        found[name] = ToolLabels(name, resolve(Standing(operator=tool.labels)), roles)
    return found


def _tool(name: str, said: object) -> ToolLabels:
    if not isinstance(said, Mapping):
        raise EarnestError("E1004", f"labels of {name!r} are a mapping, not {type(said).__name__}")
    stated: dict[str, bool] = {}
    for key, value in said.items():
        plain = _SPELLINGS.get(str(key))
        if plain is None:
            if key not in _OTHERS:
                known = f"known: {', '.join(NAMES)}, arg_roles"
                raise EarnestError("E1003", f"labels of {name!r} say {key!r}, which means nothing", known)
            continue
        if value is None:
            continue
        if not isinstance(value, bool):
            raise EarnestError("E1004", f"{key!r} of {name!r} is true or false, not {value!r}")
        stated[plain] = value
    roles: dict[str, Role] = {}
    given = said.get("arg_roles") or said.get("argRoles") or said.get("roles") or {}
    if not isinstance(given, Mapping):
        raise EarnestError("E1004", f"arg_roles of {name!r} is a mapping")
    for path, text in given.items():
        role = label(str(text))
        if role is None:
            raise EarnestError("E1005", f"{text!r} is no role of an argument", f"one of {', '.join(Role)}")
        roles[str(path)] = role
    schema = said.get("inputSchema") or said.get("input_schema")
    if schema is not None and not isinstance(schema, Mapping):
        raise EarnestError("E1004", f"inputSchema of {name!r} is a mapping")
    claims = raw_from_object(said.get("annotations"))
    labels = entailed(msgspec.structs.replace(NOTHING, **stated))
    return ToolLabels(
        name,
        resolve(Standing(operator=labels, claims=claims)),
        roles,
        schema,
        str(said.get("title") or ""),
        said.get("undoable") is True,
        claims,
    )
