"""Runs a command as a user that owns nothing: `python ordinary.py FOLDER COMMAND…` as root. The interpreter and this tree are
made readable for that user in a mount namespace of its own, wherever they lie; FOLDER becomes its home."""

import os
import sys

from earnest.sandbox.launch import kernel

USER = 64321


def readable(path: str) -> None:
    """Lay an empty folder over the first one on the way that others may not enter, and put `path` back where it was."""
    above = "/"
    for part in path.split("/")[1:]:
        above = os.path.join(above, part)
        if not os.stat(above).st_mode & 0o001:
            held = os.open(path, os.O_PATH)
            kernel.mount("", above, "tmpfs", 0, "mode=755")
            os.makedirs(path, exist_ok=True)
            kernel.mount(f"/proc/self/fd/{held}", path, "", kernel.MS_BIND | kernel.MS_REC)
            return


def main() -> None:
    folder = sys.argv[1]
    kernel.unshare(kernel.CLONE_NEWNS)
    kernel.mount("", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    tree = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    for path in (sys.base_prefix, sys.prefix, tree):
        readable(path)
    os.chown(folder, USER, USER)
    os.setgroups([])
    os.setgid(USER)
    os.setuid(USER)
    os.execve(sys.argv[2], sys.argv[2:], {**os.environ, "HOME": folder, "TMPDIR": folder, "PYTHONDONTWRITEBYTECODE": "1"})


main()
