"""The demo server `mailbox`, as a program of its own: `python examples/servers/mailbox.py FOLDER`."""

from earnest.demo.mailbox import main

if __name__ == "__main__":
    main()
