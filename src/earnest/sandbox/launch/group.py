"""A control group that bounds how many processes there are (cgroups(7), versions 1 and 2), where root may make one."""

from __future__ import annotations

import contextlib
import os
import time
from typing import Final

_MOUNTS: Final = ("/sys/fs/cgroup/pids", "/sys/fs/cgroup", "/sys/fs/cgroup/unified")


class Group:
    """This process and what it starts, bounded together. `path` is empty where no group could be made."""

    def __init__(self, most: int) -> None:
        self._above = ""
        self.path = ""
        for above in _places():
            path = f"{above}/earnest-box-{os.getpid()}"
            try:
                os.mkdir(path)
            except OSError:
                continue
            if _written(f"{path}/pids.max", most) and _written(f"{path}/cgroup.procs", os.getpid()):
                self._above, self.path = above, path
                return
            with contextlib.suppress(OSError):
                os.rmdir(path)

    def leave(self) -> None:
        """Step out of it and take it away; all others in it have ended."""
        if not self.path or not _written(f"{self._above}/cgroup.procs", os.getpid()):
            return
        for _ in range(50):
            try:
                os.rmdir(self.path)
                return
            except OSError:  # the last one is still on its way out
                time.sleep(0.01)


def _places() -> list[str]:
    """Where a group may be made: below this process's own, in each hierarchy that counts processes."""
    with open("/proc/self/cgroup") as file:
        lines = [line.rstrip("\n").split(":", 2) for line in file]
    found = []
    for number, controllers, own in lines:
        if "pids" in controllers.split(",") or number == "0":
            found += [mount + own.rstrip("/") for mount in _MOUNTS]
    return [path for path in dict.fromkeys(found) if os.path.isdir(path)]


def _written(path: str, value: int) -> bool:
    try:
        descriptor = os.open(path, os.O_WRONLY)  # never made: a folder that is no group has no such file
    except OSError:
        return False
    try:
        os.write(descriptor, str(value).encode())
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
