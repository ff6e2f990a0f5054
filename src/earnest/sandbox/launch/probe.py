"""Tries each mechanism that boxes are made of, by doing it, each in a process of its own; prints one JSON object a line.

Run as `python -I -S probe.py FOLDER`, FOLDER an empty one.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Final

if __name__ == "__main__":  # started as a file, in isolation: nobody else says where the package is
    sys.path.append(os.path.abspath(__file__).removesuffix("/earnest/sandbox/launch/probe.py"))

from earnest.sandbox.internet import netlink
from earnest.sandbox.launch import filter as rules
from earnest.sandbox.launch import kernel, landlock
from earnest.sandbox.launch.boxed import raise_loopback


def _user_namespace(folder: str) -> str:
    kernel.become_itself_in_a_user_namespace()
    return ""


def _mount_namespace(folder: str) -> None:
    kernel.become_itself_in_a_user_namespace()
    kernel.unshare(kernel.CLONE_NEWNS)
    kernel.mount("", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)


def _overlay(folder: str) -> str:
    _mount_namespace(folder)
    kernel.mount("box", folder, "tmpfs", 0, "size=1048576")
    where = "in memory"
    try:
        os.setxattr(folder, "user.overlay.try", b"y")
    except OSError:
        kernel.syscall("umount2", os.fsencode(folder), 0)
        where = "on disk: overlays over memory need Linux 6.6"
    for name in ("lower", "upper", "work", "whole"):
        os.mkdir(f"{folder}/{name}")
    os.mkdir(f"{folder}/lower/old")
    options = f"lowerdir={folder}/lower,upperdir={folder}/upper,workdir={folder}/work,userxattr"
    kernel.mount("overlay", f"{folder}/whole", "overlay", 0, options)
    os.rmdir(f"{folder}/whole/old")
    return where


def _process_namespace(folder: str) -> str:
    kernel.become_itself_in_a_user_namespace()
    kernel.unshare(kernel.CLONE_NEWPID)
    child = os.fork()
    if child == 0:
        try:
            kernel.unshare(kernel.CLONE_NEWNS)
            kernel.mount("", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
            kernel.mount("proc", "/proc", "proc")
        except OSError:
            os._exit(1)
        os._exit(0 if os.getpid() == 1 else 1)
    if os.waitpid(child, 0)[1]:
        raise OSError("no /proc of its own can be mounted")
    return ""


def _enter_network() -> None:
    """A network namespace of our own, in which every address is ours."""
    kernel.become_itself_in_a_user_namespace()
    kernel.unshare(kernel.CLONE_NEWNET)
    raise_loopback()
    netlink.all_addresses()


def _reaches(family: socket.AddressFamily, address: str) -> None:
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.bind(("", 80))
        listener.listen(1)
        socket.create_connection((address, 80), 1).close()


def _network_namespace(folder: str) -> str:
    _enter_network()
    _reaches(socket.AF_INET, "93.184.0.1")
    return ""


def _ports(folder: str) -> str:
    _enter_network()
    netlink.lead_to(61001)
    return ""


def _ipv6(folder: str) -> str:
    _enter_network()
    _reaches(socket.AF_INET6, "2606:2800:220:1::1")
    return ""


def _listener(folder: str) -> str:
    own, other = os.pipe()
    child = os.fork()
    if child == 0:
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        number = rules.install({"ptrace": rules.always(rules.TELL)}, listened=True)
        os.write(other, b"%d" % number)
        signal.pause()
        os._exit(0)
    os.close(other)
    number = int(os.read(own, 16))
    try:
        os.close(kernel.descriptor_of(child, number))
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
    return ""


def _landlock(folder: str) -> str:
    known = landlock.version()
    if not known:
        raise OSError("the kernel has none, or it is switched off")
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    landlock.restrict(["/usr"], [folder], [], tcp=False)
    try:
        os.listdir("/")
    except PermissionError:
        return f"version {known}"
    raise OSError("it holds nothing back")


_TRIES: Final[tuple[tuple[str, str, Callable[[str], str]], ...]] = (
    ("user namespace", "A", _user_namespace),
    ("overlay", "A", _overlay),
    ("process namespace", "A", _process_namespace),
    ("network namespace", "A", _network_namespace),
    ("all ports", "", _ports),
    ("IPv6", "", _ipv6),
    ("seccomp listener", "AB", _listener),
    ("Landlock", "B", _landlock),
)
"""Name, tiers that cannot do without, and the try."""


def main(folder: str) -> None:
    for name, needed, attempt in _TRIES:
        own, other = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                told = {"works": True, "detail": attempt(folder)}
            except Exception as error:
                told = {"works": False, "detail": str(error)}
            os.write(other, json.dumps(told).encode()[:4000])
            os._exit(0)
        os.close(other)
        os.waitpid(child, 0)
        text = os.read(own, 4096)
        os.close(own)
        said = json.loads(text) if text else {"works": False, "detail": "it was killed"}
        print(json.dumps({"name": name, "tiers": needed, **said}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
