"""The events of a box, read from the file that its processes write (`launch/report.py`)."""

from __future__ import annotations

from msgspec import DecodeError, ValidationError, json

from earnest.sandbox.box import Event


class Journal:
    """Events of one box, read as they come."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._read = 0
        self._events: list[Event] = []

    def events(self, since: int = 0) -> tuple[Event, ...]:
        """From the `since`-th event on."""
        try:
            with open(self._path, "rb") as file:
                file.seek(self._read)
                new = file.read()
        except FileNotFoundError:
            new = b""
        whole = new[: new.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.splitlines():
            try:
                self._events.append(json.decode(line, type=Event))
            except (DecodeError, ValidationError):  # half a line, from a process that was ended while it wrote
                continue
        return tuple(self._events[since:])
