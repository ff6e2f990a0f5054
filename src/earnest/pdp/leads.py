"""Whether paths of arguments that were found harmless still lead where they led.

Theory. What the floor says of arguments depends on them, which are compared, and on where the paths in them lead, which can
change at any time: a folder is exchanged for a link, a file gets a second name. So nothing about a path is remembered but the
place it led to, and the kernel is asked about it at every call. Most paths are *straight*: no part of them is a link, so they
are the place they lead to. For those one question is enough: does it open if links are not followed (openat2 and
RESOLVE_NO_SYMLINKS, Linux 5.6)? For the others what was opened has to be named, by /proc, which costs four times as much.

The code for straight ones is `_leads.pyx` (decision record 0011); without it, or a kernel that knows the question, the others'
way is taken for all.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from earnest.pdp import _leads as compiled
else:
    compiled = None
    if os.environ.get("EARNEST_COMPILED") != "0":
        try:
            from earnest.pdp import _leads as compiled
        except ImportError:
            pass
        else:
            # Made of another source than lies here, it would not fit; and the kernel has to know the question.
            with open(os.path.join(os.path.dirname(__file__), "_leads.pyx"), "rb") as file:
                fits = hashlib.sha256(file.read()).hexdigest()[:16] == compiled.MARK
            if not fits or not compiled.lead_straight((b"/",)):
                compiled = None

Led = tuple[tuple[bytes, ...], tuple[tuple[str, str], ...]]
"""Straight paths, then the others, each with the place it leads to."""

PATH_ONLY: Final = getattr(os, "O_PATH", 0) and os.O_PATH | os.O_CLOEXEC


def led(places: Mapping[str, str]) -> Led:
    """Paths with where they lead, as `still_lead` takes them."""
    straight = [path for path, place in places.items() if compiled is not None and path == place]
    others = tuple((path, place) for path, place in places.items() if compiled is None or path != place)
    return tuple(os.fsencode(path) for path in straight), others


def still_lead(places: Led) -> bool:
    """Whether each path leads to its place, and to no file that has other names."""
    straight, others = places
    if straight and not compiled.lead_straight(straight):
        return False
    if others:
        for path, place in others:
            if not _leads_to(path, place):
                return False
    return True


def _leads_to(path: str, place: str) -> bool:
    try:
        fd = os.open(path, PATH_ONLY)
    except (OSError, ValueError):
        return False
    try:
        about = os.fstat(fd)
        return (about.st_nlink < 2 or not stat.S_ISREG(about.st_mode)) and os.readlink(f"/proc/self/fd/{fd}") == place
    except OSError:
        return False
    finally:
        os.close(fd)
