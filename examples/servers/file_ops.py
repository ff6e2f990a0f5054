"""The demo server `file_ops`, as a program of its own: `python examples/servers/file_ops.py FOLDER`."""

from earnest.demo.file_ops import main

if __name__ == "__main__":
    main()
