"""Entry of the shim under `python -I -S`: kept tiny, because a script is compiled anew at each start.

The package `earnest` is stood in for by an empty one with the same path, so that its modules load from their
compiled files under their real names, without what `earnest/__init__.py` may import.
"""

import sys

_package = type(sys)("earnest")
_package.__path__ = [__file__.rpartition("/")[0].rpartition("/")[0]]
sys.modules["earnest"] = _package

from earnest.shim.handover import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
