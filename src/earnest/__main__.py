"""`python -m earnest`: the command line, or the shim where a client starts it this way."""

import sys


def _run() -> None:
    if sys.argv[1:2] in (["stdio"], ["hook"]) and sys.argv[1:3] != ["hook", "install"]:
        # A client that was configured with `python -m earnest stdio` pays for the interpreter, not for the
        # command line.
        from earnest.shim.handover import main as shim

        sys.exit(shim(sys.argv[1:]))
    from earnest.cli.main import main

    main()


if __name__ == "__main__":
    _run()
