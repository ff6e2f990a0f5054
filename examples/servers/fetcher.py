"""The demo server `fetcher`, as a program of its own: `python examples/servers/fetcher.py FOLDER`."""

from earnest.demo.fetcher import main

if __name__ == "__main__":
    main()
