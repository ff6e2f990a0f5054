"""The daemon's log: a file that rotates, with standard output and error following it."""

import logging
import logging.handlers
import os


class DaemonLog(logging.handlers.RotatingFileHandler):
    """What libraries and a crash print reaches the file too, and the current one."""

    def __init__(self, path: str, max_bytes: int = 2 << 20, files: int = 3) -> None:
        super().__init__(path, maxBytes=max_bytes, backupCount=files, encoding="utf-8", errors="backslashreplace")
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        self._follow()

    def doRollover(self) -> None:
        """Rotates and takes the descriptors along."""
        super().doRollover()
        self._follow()

    def _follow(self) -> None:
        assert self.stream is not None
        for fd in (1, 2):
            os.dup2(self.stream.fileno(), fd)


def daemon_log(path: str) -> logging.Logger:
    """A logger of its own, at INFO, that writes to this file."""
    log = logging.Logger("earnest")
    log.setLevel(logging.INFO)
    log.addHandler(DaemonLog(path))
    return log
