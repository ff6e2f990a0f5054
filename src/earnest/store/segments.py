"""The files a chain of receipts lies in: `WRITER-00000001.jsonl`, `WRITER-00000002.jsonl`, … and
`WRITER.checkpoints`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Final

import msgspec

from earnest.core.receipt import Line, chain, read_line

_NAME: Final = re.compile(r"([A-Za-z0-9-]{1,64})-(\d{8})\.jsonl")
_BLOCK: Final = 1 << 16


def writers(folder: str) -> list[str]:
    """Who has written receipts into `folder`; none where there is no such folder."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    return sorted({found[1] for name in names if (found := _NAME.fullmatch(name))})


def segments(folder: str, writer: str) -> list[str]:
    """The paths of a writer's segments, in order."""
    names = [name for name in os.listdir(folder) if (found := _NAME.fullmatch(name)) and found[1] == writer]
    return [os.path.join(folder, name) for name in sorted(names)]


def segment(folder: str, writer: str, number: int) -> str:
    """The path of a writer's segment, counted from 1."""
    return os.path.join(folder, f"{writer}-{number:08d}.jsonl")


def number(path: str) -> int:
    """The number of a segment."""
    return int(path[-len("00000001.jsonl") : -len(".jsonl")])


def checkpoints(folder: str, writer: str) -> str:
    """The path of the file with a writer's signed checkpoints, one JWS a line."""
    return os.path.join(folder, f"{writer}.checkpoints")


def lines(folder: str, writer: str) -> Iterator[bytes]:
    """All whole lines of a chain, without line feeds. What stands after the last line feed of the last
    segment is still being written, or was torn off and will be set aside by the writer's next start: it is
    passed over."""
    paths = segments(folder, writer)
    for path in paths:
        with open(path, "rb") as file:
            for data in file:
                if data.endswith(b"\n"):
                    yield data[:-1]
                elif path != paths[-1]:
                    yield data


def rest(folder: str, writer: str) -> bytes:
    """What stands after the last line feed of the last segment, 64 KiB of it at most."""
    paths = segments(folder, writer)
    if not paths:
        return b""
    with open(paths[-1], "rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - _BLOCK))
        return file.read(_BLOCK).rpartition(b"\n")[2]


class Tail(msgspec.Struct, frozen=True):
    """The end of a segment: the last line that is one, its hash, and the size of the file up to there."""

    line: Line | None
    head: str
    size: int


def tail(path: str) -> Tail:
    """Find the last whole and readable line of a segment without reading all of it."""
    size = os.path.getsize(path)
    block = _BLOCK
    with open(path, "rb") as file:
        while True:
            start = max(0, size - block)
            file.seek(start)
            data = file.read(size - start)
            # The first line of a block that does not start the file may be half a line.
            first = data.find(b"\n") + 1 if start else 0
            end = data.rfind(b"\n")
            while end >= first > 0 or (end >= 0 and not start):
                begin = data.rfind(b"\n", 0, end) + 1
                if begin < first:
                    break
                try:
                    found = read_line(data[begin:end])
                except msgspec.DecodeError:
                    end = begin - 1
                    continue
                return Tail(found, chain(data[begin:end]), start + end + 1)
            if not start:
                return Tail(None, "", 0)
            block *= 8
