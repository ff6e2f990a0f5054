"""What was written in folders that are a box's alone, by comparing them with how they began."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from typing import Final

from earnest.sandbox.box import Entry, File, Look
from earnest.sandbox.overlay import Contents, file_at

_MOST: Final = 100_000
"""Paths that are looked at."""


class Folders:
    """The folders of one box, as they are when this is made and at each look."""

    def __init__(self, roots: Iterable[str], contents: Contents) -> None:
        self._roots = tuple(roots)
        self._contents = contents
        self._bases: dict[str, File] = {}
        self._changed: dict[str, int] = {}
        for path, status in self._walk():
            self._bases[path] = file_at(path, status, contents, ours=True)
            self._changed[path] = status.st_ctime_ns

    def base(self, path: str) -> File | None:
        return self._bases.get(path)

    def look(self) -> Look:
        entries: dict[str, Entry] = {}
        seen: set[str] = set()
        for path, status in self._walk():
            seen.add(path)
            base = self._bases.get(path)
            # A file whose status did not change was not written to; one put back as it was shows by that alone.
            if base is not None and status.st_ctime_ns == self._changed[path]:
                continue
            now = file_at(path, status, self._contents, ours=True)
            if base != now or not stat.S_ISDIR(status.st_mode):
                entries[path] = Entry(base, now)
        for path in self._bases.keys() - seen:
            entries[path] = Entry(self._bases[path], None)
        return Look(entries)

    def _walk(self) -> Iterator[tuple[str, os.stat_result]]:
        waiting = list(self._roots)
        count = 0
        while waiting and count < _MOST:
            try:
                found = list(os.scandir(waiting.pop()))
            except OSError:
                continue
            for item in found:
                count += 1
                try:
                    status = item.stat(follow_symlinks=False)
                except OSError:
                    continue
                yield item.path, status
                if stat.S_ISDIR(status.st_mode):
                    waiting.append(item.path)
