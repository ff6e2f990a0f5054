"""Recorded lists of tools: a `tools/list` answer, its result, a plain list, a file of recordings, a folder of snapshots.

Known by shape: a JSON-RPC response (`{"jsonrpc", "result": {"tools"}}`), its result (`{"tools": […]}`, with whatever stands
beside), a list of tools, a single tool (a snapshot that holds one), one such object a line (JSON Lines: one server each), and
a list of servers.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from earnest.core.errors import EarnestError
from earnest.lint.model import Place, Server, Tool, tool_of

SUFFIXES: Final = (".json", ".jsonl", ".ndjson", ".snap")
_INSTALLED: Final = frozenset(("node_modules", ".git", ".venv", "venv", "__pycache__", "site-packages", ".tox"))
MAX_BYTES: Final = 256 << 20


def read_bytes(data: bytes, name: str, source: str = "") -> list[Server]:
    """The servers in recorded data; `name` is for one that does not say its own. Raises E1020 for what holds no tools."""
    values = _decoded(data, source or name)
    servers: list[Server] = []
    for value in values:
        servers += _servers(value, name, source)
    if not servers:
        raise EarnestError(
            "E1020",
            f"{source or name} holds no list of tools",
            'Give {"tools": [...]}, a list of tools, or JSON Lines of them.',
        )
    return servers


def read_path(path: Path) -> list[Server]:
    """The servers in a file, or in all recordings below a folder. Recordings of one server are joined: the last counts, the
    one before is `earlier`."""
    if not path.is_dir():
        return read_bytes(_load(path), path.stem, str(path))
    servers: list[Server] = []
    single: dict[Path, list[Server]] = {}
    for file in _files(path):
        try:
            data = _load(file)
            found = read_bytes(data, file.stem, str(file))
            alone = len(found) == 1 and _is_tool(_decoded(data, str(file))[0])
        except EarnestError as error:
            if error.code != "E1020":
                raise
            continue  # something else that lies in the folder
        if alone:
            single.setdefault(file.parent, []).append(found[0])
        else:
            servers += found
    for folder, ones in single.items():  # one tool a file: the folder is the server
        tools = tuple(tool for one in ones for tool in one.tools)
        servers.append(Server(_folder_name(folder, path), tools, source=str(folder)))
    if not servers:
        raise EarnestError(
            "E1020", f"{path} holds no recorded list of tools", f"Files that count end in {', '.join(SUFFIXES)}."
        )
    return _joined(servers)


def _files(root: Path) -> list[Path]:
    """Files below a folder that may be recordings, without what was installed there."""
    found: list[Path] = []
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if name not in _INSTALLED]
        found += [Path(folder, name) for name in names if name.endswith(SUFFIXES)]
    return sorted(path for path in found if path.is_file())  # a pipe would be waited for


def _folder_name(folder: Path, root: Path) -> str:
    return (
        folder.parent.name if folder.name.strip("_") in ("toolsnaps", "snapshots", "testdata") else (folder.name or root.name)
    )


def _joined(servers: Sequence[Server]) -> list[Server]:
    found: dict[str, Server] = {}
    for server in servers:
        before = found.get(server.name)
        if before is not None and before.source == server.source:
            found[f"{server.name}\0{len(found)}"] = server  # two of one name in one dump are two servers
        else:
            found[server.name] = server if before is None else msgspec.structs.replace(server, earlier=before.tools)
    return list(found.values())


def read_bounded(file: BinaryIO, name: str) -> bytes:
    """All that is in a file or a pipe. Raises E1020 for more than `MAX_BYTES`."""
    data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise EarnestError("E1020", f"{name} is larger than {MAX_BYTES >> 20} MiB")
    return data


def _load(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return read_bounded(file, str(path))
    except OSError as error:
        raise EarnestError("E1019", f"{path}: {error.strerror}") from None


def _decoded(data: bytes, source: str) -> list[Any]:
    try:
        return [msgspec.json.decode(data)]
    except RecursionError:
        raise _too_deep(source) from None
    except msgspec.MsgspecError as error:
        return _lines(data, source, error)


def _lines(data: bytes, source: str, error: Exception) -> list[Any]:
    lines = [line for line in data.splitlines() if line.strip()]
    if len(lines) < 2:
        raise EarnestError("E1020", f"{source} is not JSON: {error}")
    try:
        return [msgspec.json.decode(line) for line in lines]
    except RecursionError:
        raise _too_deep(source) from None
    except msgspec.MsgspecError as second:
        raise EarnestError("E1020", f"{source} is neither JSON nor JSON Lines: {second}") from None


def _too_deep(source: str) -> EarnestError:
    return EarnestError("E1020", f"{source} nests too deeply to be a list of tools")


def _servers(value: Any, name: str, source: str) -> list[Server]:
    if isinstance(value, list):
        if value and all(isinstance(one, Mapping) and isinstance(one.get("tools"), list) for one in value):
            return [server for one in value for server in _servers(one, name, source)]
        if value and all(_is_tool(one) for one in value):
            return [Server(name, _tools(value, source), source=source)]
        return []
    if not isinstance(value, Mapping):
        return []
    result = value.get("result")
    if isinstance(result, Mapping) and isinstance(result.get("tools"), list):
        return [Server(name, _tools(result["tools"], source), source=source)]
    if isinstance(value.get("tools"), list) and all(isinstance(one, Mapping) for one in value["tools"]):
        return [_recording(value, name, source)]
    if _is_tool(value):
        return [Server(name, _tools([value], source), source=source)]
    return []


def _recording(value: Mapping[str, Any], name: str, source: str) -> Server:
    info = value.get("serverInfo")
    said = value.get("server")
    own = info.get("name") if isinstance(info, Mapping) else None
    live = value.get("cohort", "live") == "live" and isinstance(info, Mapping)
    return Server(
        said if isinstance(said, str) and said else own if isinstance(own, str) and own and name == "-" else name,
        _tools(value["tools"], source),
        info=info if isinstance(info, Mapping) else {},
        protocol=_text(value.get("protocolVersion")),
        package=_text(value.get("package")),
        instructions=_text(value.get("instructions")),
        source=source,
        live=live,
    )


def _tools(values: Sequence[Any], source: str) -> tuple[Tool, ...]:
    place = Place(source) if source else None
    return tuple(tool_of(one, place) for one in values if isinstance(one, Mapping))


def _is_tool(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and isinstance(value.get("name"), str)
        and bool({"inputSchema", "description", "annotations"} & value.keys())
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
