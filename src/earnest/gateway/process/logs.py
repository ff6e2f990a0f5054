"""The daemon's log: a file that rotates, with standard output and error following it."""

import logging
import logging.handlers
import os
from collections.abc import Callable


class DaemonLog(logging.handlers.RotatingFileHandler):
    """What libraries and a crash print reaches the file too, and the current one."""

    def __init__(
        self, path: str, max_bytes: int = 2 << 20, files: int = 3, scrub: Callable[[str], str] = lambda text: text
    ) -> None:
        """`scrub` takes secrets out of each line, tracebacks included."""
        super().__init__(path, maxBytes=max_bytes, backupCount=files, encoding="utf-8", errors="backslashreplace")
        self.setFormatter(_Scrubbed(scrub))
        self._follow()

    def doRollover(self) -> None:
        """Rotates and takes the descriptors along."""
        super().doRollover()
        self._follow()

    def _follow(self) -> None:
        assert self.stream is not None
        for fd in (1, 2):
            os.dup2(self.stream.fileno(), fd)


class _Scrubbed(logging.Formatter):
    def __init__(self, scrub: Callable[[str], str]) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")
        self._scrub = scrub

    def format(self, record: logging.LogRecord) -> str:
        return self._scrub(super().format(record))


def daemon_log(path: str, scrub: Callable[[str], str] = lambda text: text) -> logging.Logger:
    """A logger of its own, at INFO, that writes to this file without what `scrub` takes out."""
    log = logging.Logger("earnest")
    log.setLevel(logging.INFO)
    log.addHandler(DaemonLog(path, scrub=scrub))
    return log
