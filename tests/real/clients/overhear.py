"""Stands between a client and its command, and writes down what both say: `overhear.py LOG COMMAND...`."""

import os
import subprocess
import sys
import threading


def pass_on(source, target, log, mark):
    """Copy lines until there are no more."""
    for line in iter(source.readline, b""):
        os.write(log, mark + line)
        target.write(line)
        target.flush()
    target.close()


def main(log, command):
    """Entry point."""
    fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    back = threading.Thread(target=pass_on, args=(process.stdout, sys.stdout.buffer, fd, b"< "), daemon=True)
    back.start()
    threading.Thread(target=pass_on, args=(sys.stdin.buffer, process.stdin, fd, b"> "), daemon=True).start()
    code = process.wait()
    back.join(5)
    os._exit(code)


main(sys.argv[1], sys.argv[2:])
