"""Putting earnest before a server, and taking it away again, as edits of byte ranges.

Theory. Wrapping a local server changes its command and puts a few words before its arguments, the last of
them the original command in the very spelling it had; so a wrapped entry holds all that is needed to unwrap
it, and unwrapping works after other edits, after a client has rewritten the file, and without any record.
Exactness rests on two spellings: words put into a list that was there are separated by `, `, a list that
was not there is written without spaces directly before the command, so unwrapping knows which of the two it
undoes.

A remote server's address goes into the operator's configuration, and `Original` remembers what the file
held. Its own headers stay where they are and travel through (`forward_headers`), so no secret is copied and
no reference resolved.
"""

from __future__ import annotations

import json
import re
from typing import Final, NoReturn

import msgspec

from earnest.config.clients.dialect import ClientFile, Dialect, Entry, own_words
from earnest.config.document import Edit, Member, Node
from earnest.core.errors import EarnestError

TOKEN_HEADER: Final = "X-Earnest-Token"
"""Carries the listener's token where `Authorization` is the server's own."""


class Original(msgspec.Struct, frozen=True):
    """What a remote entry held before: raw text of the values that were replaced, empty where one was not."""

    where: tuple[str, ...]
    url: str
    url_key: str
    new_key: str
    type_key: str = ""
    type_value: str = ""
    header: str = ""


class Listener(msgspec.Struct, frozen=True):
    """Where the local listener is (`http://127.0.0.1:7573`) and this client's token for it."""

    address: str
    token: str


class Wrapping(msgspec.Struct, frozen=True):
    """The edits for one entry; for a remote one also what to remember and the headers to forward."""

    edits: tuple[Edit, ...]
    original: Original | None = None
    forward_headers: tuple[str, ...] = ()


def wrap(
    dialect: Dialect, entry: Entry, name: str, program: str, listener: Listener | None = None, config: str = ""
) -> Wrapping:
    """The edits that put earnest before one server.

    `name`: what earnest calls it; `program`: the path or name of earnest to write; `config`: the configuration that a person
    named, empty for the usual one. Raises E1014 where the entry is not to be touched (`entry.leave`), is wrapped already, or
    offers no range that can be edited safely.
    """
    if entry.leave or entry.wrapped:
        _refuse(entry, entry.leave or "it is wrapped already")
    if entry.kind == "http":
        if listener is None:
            _refuse(entry, "earnest's listener has no address yet")
        return _wrap_remote(dialect, entry, name, listener)
    command = _member(entry, "command")
    if held := dialect.variables(config):
        _refuse(entry, f"the path of the configuration holds {', '.join(held)}, which the client would resolve")
    words = [_text(word) for word in ("stdio", name, "--client", dialect.name, *(("--config", config) if config else ()), "--")]
    words.append(_raw(entry.file, command.node))
    edits = [Edit(command.node.start, command.node.end, _text(program))]
    args = entry.node.get("args")
    if args is None:
        edits.append(_before(entry, command, "args", b"[" + b",".join(words) + b"]"))
    elif args.items:
        edits.append(Edit(args.items[0].start, args.items[0].start, b", ".join(words) + b", "))
    else:
        edits.append(Edit(args.start + 1, args.start + 1, b", ".join(words)))
    return Wrapping(edits=tuple(edits))


def unwrap(entry: Entry, original: Original | None = None) -> tuple[Edit, ...]:
    """The edits that take earnest away from one wrapped server. A remote one needs its `Original` (E1014
    without)."""
    if not entry.wrapped:
        _refuse(entry, "it is not wrapped")
    if entry.kind == "http":
        if original is None:
            _refuse(entry, "nothing remembers its address; the backups do")
        return _unwrap_remote(entry, original)
    command, args = _member(entry, "command"), _member(entry, "args")
    items, count = args.node.items, own_words(entry.args)
    edits = [Edit(command.node.start, command.node.end, _raw(entry.file, items[count - 1]))]
    own = b"[" + b",".join(_raw(entry.file, item) for item in items[:count]) + b"]"
    if len(items) == count and _raw(entry.file, args.node) == own and _stands_before(entry, args, command):
        edits.append(Edit(args.start, command.start, b""))
    elif len(items) > count:
        edits.append(Edit(items[0].start, items[count].start, b""))
    else:
        edits.append(Edit(items[0].start, items[-1].end, b""))
    return tuple(edits)


def _wrap_remote(dialect: Dialect, entry: Entry, name: str, listener: Listener) -> Wrapping:
    file = entry.file
    url = _member(entry, entry.url_key)
    edits = [Edit(url.node.start, url.node.end, _text(f"{listener.address}/s/{name}/mcp"))]
    sources = [key for key in dialect.header_sources if entry.node.get(key) is not None]
    occupied = bool(sources) or any(header.lower() == "authorization" for header in entry.headers)
    header, value = (TOKEN_HEADER, listener.token) if occupied else ("Authorization", f"Bearer {listener.token}")
    original = Original(
        where=entry.where,
        url=_raw(file, url.node).decode(),
        url_key=entry.url_key,
        new_key=entry.url_key,
        header=header,
    )
    if entry.url_key != dialect.streamable_key and ("url", "sse") in dialect.url_keys:
        if entry.node.get(dialect.streamable_key) is not None:
            _refuse(entry, f"it has both {entry.url_key} and {dialect.streamable_key}")
        edits.append(Edit(url.start, url.end, _key(entry, url, dialect.streamable_key)))
        original = msgspec.structs.replace(original, new_key=dialect.streamable_key)
    for key in ("type", "transport"):
        kind = entry.node.member(key)
        if kind is not None and kind.node.value in ("sse", "http+sse"):
            edits.append(Edit(kind.node.start, kind.node.end, _text(dialect.type_http)))
            original = msgspec.structs.replace(original, type_key=key, type_value=_raw(file, kind.node).decode())
    edits.append(_add_header(dialect, entry, url, header, value))
    forwarded = list(entry.headers)
    by_name = entry.node.get("env_http_headers")
    forwarded += [member.key for member in by_name.members] if by_name is not None else []
    if "bearer_token_env_var" in sources:
        forwarded.append("Authorization")
    return Wrapping(edits=tuple(edits), original=original, forward_headers=tuple(dict.fromkeys(forwarded)))


def _add_header(dialect: Dialect, entry: Entry, url: Member, header: str, value: str) -> Edit:
    assign = b" = " if entry.file.toml else b": "
    pair = _text(header) + assign + _text(value)
    headers = entry.node.get(dialect.headers_key)
    if headers is None:
        return _before(entry, url, dialect.headers_key, b"{" + pair + b"}")
    if headers.kind != "object" or not (headers.inline or headers.members):
        _refuse(entry, f"its {dialect.headers_key} offer no place for one more")
    if not headers.members:
        return Edit(headers.start + 1, headers.start + 1, pair)
    first = headers.members[0]
    if headers.inline:
        return Edit(first.start, first.start, pair + b", ")
    prefix = _prefix(entry.file, first)
    return Edit(first.start, first.start, prefix + pair + _line_end(entry.file, first))


def _unwrap_remote(entry: Entry, original: Original) -> tuple[Edit, ...]:
    file = entry.file
    url = _member(entry, original.new_key)
    edits = [Edit(url.node.start, url.node.end, original.url.encode())]
    if original.url_key != original.new_key:
        edits.append(Edit(url.start, url.end, _key(entry, url, original.url_key)))
    kind = entry.node.member(original.type_key) if original.type_key else None
    if kind is not None:
        edits.append(Edit(kind.node.start, kind.node.end, original.type_value.encode()))
    for key in ("headers", "http_headers"):
        headers = entry.node.member(key)
        if headers is None:
            continue
        members = headers.node.members
        index = next((i for i, member in enumerate(members) if member.key == original.header), -1)
        if index < 0:
            continue
        own = members[index]
        whole = _raw(file, headers.node)
        alone = len(members) == 1
        if alone and whole == b"{" + file.data[own.start : own.node.end] + b"}" and _stands_before(entry, headers, url):
            edits.append(Edit(headers.start, url.start, b""))
        elif index + 1 < len(members):
            edits.append(Edit(own.start, members[index + 1].start, b""))
        elif index:
            edits.append(Edit(members[index - 1].node.end, own.node.end, b""))
        else:
            edits.append(Edit(own.start, own.node.end, b""))
    return tuple(edits)


def _before(entry: Entry, member: Member, key: str, value: bytes) -> Edit:
    """Insert a new key directly before another."""
    assign = b" = " if entry.file.toml else b": "
    return Edit(member.start, member.start, _key(entry, member, key) + assign + value + _separator(entry, member))


def _stands_before(entry: Entry, first: Member, second: Member) -> bool:
    """Whether two keys stand one after the other exactly as `_before` writes them."""
    return entry.file.data[first.node.end : second.start] == _separator(entry, second)


def _separator(entry: Entry, member: Member) -> bytes:
    """What stands between two keys: a line end where each has its own line, else a comma."""
    data = entry.file.data
    line = data[data.rfind(b"\n", 0, member.start) + 1 : member.start].removeprefix(b"\xef\xbb\xbf")
    return b", " if entry.node.inline or line.strip() else _line_end(entry.file, member)


def _line_end(file: ClientFile, member: Member) -> bytes:
    """The end of a line as this file writes it, and the indent of a key's own line."""
    start = file.data.rfind(b"\n", 0, member.start) + 1
    indent = re.match(rb"[ \t]*", file.data[start : member.start])
    stop = file.data.find(b"\n", member.start)
    crlf = stop > 0 and file.data[stop - 1 : stop] == b"\r"
    return (b"\r\n" if crlf else b"\n") + (indent.group() if indent else b"")


def _key(entry: Entry, member: Member, key: str) -> bytes:
    """A key as its neighbour is written: quoted in JSON, with the neighbour's dotted prefix in TOML."""
    return _prefix(entry.file, member) + key.encode() if entry.file.toml else _text(key)


def _prefix(file: ClientFile, member: Member) -> bytes:
    """The dotted prefix of a TOML key, empty for a plain one."""
    written = file.data[member.start : member.end]
    name = re.escape(member.key.encode())
    last = re.search(rb"(?:" + name + rb"|\"" + name + rb"\"|'" + name + rb"')$", written)
    return written[: last.start()] if file.toml and last else b""


def _member(entry: Entry, key: str) -> Member:
    member = entry.node.member(key)
    if member is None:
        _refuse(entry, f"its {key} is gone")
    return member


def _raw(file: ClientFile, node: Node) -> bytes:
    return file.data[node.start : node.end]


def _text(value: str) -> bytes:
    """A string that JSON and TOML read alike."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f").encode()


def _refuse(entry: Entry, why: str) -> NoReturn:
    raise EarnestError("E1014", f"{entry.file.path}: {entry.name} was left alone: {why}", "nothing was changed in it")
