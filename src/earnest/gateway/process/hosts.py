"""The programs that clients came from, remembered for as long as they run, beyond the daemon's own life.

A model can end the daemon (`earnest stop`, a signal) or have its host disconnect, and then what descends from that host would
look like anybody's. So a host stays one until its process ends. Kept as `boot pid start` lines in a file beside the socket.
"""

import os

from earnest.gateway.process.peers import Process, is_shell, process
from earnest.gateway.process.reap import boot_id

_MOST = 1000


class Hosts:
    """All hosts of one instance that still run."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._boot = boot_id()
        self._known = self._read()
        self._noted = set(self._known)

    def add(self, host: Process) -> None:
        """Remember a host. A person's own shell is none once its client has left: people try commands by hand."""
        if host.key in self._noted or is_shell(host):
            return
        self._known = {key for key in self._known if _runs(key)} | {host.key}
        lines = [f"{self._boot} {pid} {start}\n" for pid, start in sorted(self._known)[-_MOST:]]
        fresh = f"{self._path}.new"
        try:
            fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                os.write(fd, "".join(lines).encode())
            finally:
                os.close(fd)
            os.replace(fresh, self._path)
            self._noted = set(self._known)
        except OSError:
            pass  # a full disk: this daemon remembers, and the next client of this host is noted again

    @property
    def alive(self) -> frozenset[tuple[int, int]]:
        """(pid, start) of those that run."""
        return frozenset(key for key in self._known if _runs(key))

    def _read(self) -> set[tuple[int, int]]:
        found: set[tuple[int, int]] = set()
        try:
            with open(self._path, encoding="ascii", errors="replace") as file:
                for line in file:
                    words = line.split()
                    if len(words) == 3 and words[0] == self._boot and (words[1] + words[2]).isdigit():
                        found.add((int(words[1]), int(words[2])))
        except OSError:
            pass
        return {key for key in found if _runs(key)}


def _runs(key: tuple[int, int]) -> bool:
    one = process(key[0])
    return one is not None and one.key == key
