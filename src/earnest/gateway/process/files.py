"""How many files this process may hold open: each connection of a listener is one."""

from __future__ import annotations

import resource


def allow(wanted: int) -> int:
    """Raise the soft limit of open files to `wanted`, as far as the hard one lets it; returns what is allowed now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
    except (OSError, ValueError):  # macOS has a further limit of its own
        return soft
    return raised
