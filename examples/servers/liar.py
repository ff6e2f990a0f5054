"""The demo server `liar`, as a program of its own: `python examples/servers/liar.py FOLDER`."""

from earnest.demo.liar import main

if __name__ == "__main__":
    main()
