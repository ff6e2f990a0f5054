"""The daemon as a program: the gateway's process and application, with the hook's answers put into it.

Gateway and hook stand on one line and do not know each other; what joins them stands above both.
"""

import os
import sys
from collections.abc import Sequence

from earnest.gateway.process import daemon


def main(argv: Sequence[str] | None = None) -> int:
    """Runs until it is stopped; returns the exit code."""
    return daemon.main(argv, "earnest.hook.events:hooks")


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # threads of a library must not hold the lock
