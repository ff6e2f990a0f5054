"""What a box has for a root: one overlay for each folder of the system that is shown, folders of the plan over them.

First all is planned, then mounted. What the box's own making puts into it (mount points, the CA, what hides a secret)
lies in a *made* folder, a layer below the box's upper one, so that an upper folder holds what was done in the box and
nothing else; `overlay.py` reads them.

One overlay cannot have `/` as its lower folder in a user namespace, nor any folder below which something else is mounted
(the kernel keeps such mounts locked together); a folder like that is put together from its entries.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from typing import Final, NamedTuple

from earnest.sandbox.launch import kernel

SYSTEM: Final = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "opt", "var", "nix", "gnu")
"""Top-level folders that a box shows; of the others it sees what its plan names."""
SECRETS: Final = (
    "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/ssh", "/etc/ssl/private", "/etc/pki/private",
    "/etc/sudoers", "/etc/sudoers.d", "/etc/kubernetes", "/etc/rancher", "/etc/docker", "/etc/wireguard", "/etc/openvpn",
    "/etc/ipsec.d", "/etc/ipsec.secrets", "/etc/ppp", "/etc/krb5.keytab", "/etc/NetworkManager/system-connections",
    "/etc/netplan", "/etc/wpa_supplicant", "/etc/letsencrypt", "/etc/cloudflared", "/etc/boto.cfg", "/etc/environment",
    "/etc/security/opasswd", "/var/backups", "/var/lib/cloud", "/var/lib/docker", "/var/lib/containerd", "/var/lib/kubelet",
    "/var/lib/containers", "/var/lib/rancher", "/var/lib/waagent", "/var/lib/NetworkManager", "/var/lib/iwd", "/var/lib/sss",
    "/var/lib/systemd", "/var/lib/private", "/var/lib/bluetooth", "/var/lib/mysql", "/var/lib/postgresql", "/var/lib/redis",
    "/var/lib/mongodb", "/var/snap", "/var/log", "/var/mail", "/var/spool", "/var/www", "/var/home", "/var/roothome",
    "/var/tmp", "/var/crash", "/var/db",
)  # fmt: skip
"""What lies in those folders and is no program's business; where it is, the box has nothing, or an empty folder."""
_KEPT_EMPTY: Final = {"/var/log", "/var/tmp", "/var/spool", "/var/mail", "/var/lib/systemd"}
DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty")
_SMALL: Final = 1 << 20
_MOST: Final = 200
"""Layers of one box; past it, folders that have mounts below them are left out."""


class Layer(NamedTuple):
    """A folder of the box. `access` as in `box.Folder`, or `plain`: a copy that is there in whole, not over what it is of.
    `lowers`, the upper ones first, are paths of the machine."""

    number: int
    target: str
    lowers: list[str]
    access: str

    @property
    def is_own(self) -> bool:
        """Whether what is written there stays in the box."""
        return self.access in ("copy", "plain")


def mount_points() -> list[str]:
    """Where something is mounted on this machine, as this process sees it (man 5 proc)."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        fields = [line.split(" ", 5)[4] for line in file]
    return [re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field) for field in fields]


def within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


class Layers:
    """The layers of one box, in the order in which they are mounted. `made` is where what is made for them lies."""

    def __init__(self, made: str) -> None:
        self.all: list[Layer] = []
        self._made = made
        self._mounts = [path for path in mount_points() if path != "/"]
        self._privileged = os.geteuid() == 0
        self.add("/", [], "copy")
        self._chmod(self._place(self.all[0], "/"), 0o755)

    def add(self, target: str, lowers: list[str], access: str) -> Layer:
        layer = Layer(len(self.all), target, [*lowers], access)
        self.all.append(layer)
        os.mkdir(f"{self._made}/{layer.number}")
        return layer

    # what stands where

    def _holder(self, path: str) -> Layer:
        """The layer in which a path lies."""
        return next(layer for layer in reversed(self.all) if within(path, layer.target))

    def _place(self, layer: Layer, path: str) -> str:
        return f"{self._made}/{layer.number}/{os.path.relpath(path, layer.target)}"

    def made_path(self, path: str) -> str:
        """Where what is made for a path lies."""
        return self._place(self._holder(path), path)

    def _standing(self, layer: Layer, path: str) -> str | None:
        """The path of the machine that gives what a box has at `path`."""
        rest = os.path.relpath(path, layer.target)
        for folder in (f"{self._made}/{layer.number}", *layer.lowers):
            candidate = os.path.normpath(f"{folder}/{rest}")
            if os.path.lexists(candidate):
                return candidate
        return None

    def _room(self, path: str, mode: int | None) -> tuple[Layer, str]:
        """Where in a made folder `path` may be put; its parents are there afterwards."""
        layer = self._holder(path)
        if not layer.is_own and path != layer.target and self._standing(layer, path) is None:
            raise FileNotFoundError(2, f"{path}: there is no such place in {layer.target}, which the box does not change")
        folder = layer.target
        for part in os.path.relpath(path, layer.target).split("/")[:-1]:
            folder = os.path.join(folder, part)
            self._made_folder(layer, folder, None)
        return layer, self._place(layer, path)

    def _made_folder(self, layer: Layer, path: str, mode: int | None) -> None:
        here, standing = self._place(layer, path), self._standing(layer, path)
        if os.path.isdir(here) and not os.path.islink(here):
            return
        if standing is not None and not stat.S_ISDIR(os.lstat(standing).st_mode):
            raise NotADirectoryError(20, f"{path} is no folder here ({standing})")
        os.mkdir(here)
        if mode is None:
            mode = stat.S_IMODE(os.lstat(standing).st_mode) if standing else 0o755
            if standing and not os.access(standing, os.W_OK):
                mode &= ~0o222  # ours now, and yet not to be written
        self._chmod(here, mode)

    def _chmod(self, path: str, mode: int) -> None:
        os.chmod(path, mode)

    # putting something there

    def folder(self, path: str, mode: int | None = None) -> None:
        """An empty folder, unless there is one."""
        layer = self._holder(path)
        if path == layer.target:
            return
        standing = self._standing(layer, path)
        if standing is None:
            layer, _ = self._room(path, mode)
            self._made_folder(layer, path, mode)
        elif not stat.S_ISDIR(os.lstat(standing).st_mode):
            raise NotADirectoryError(20, f"{path} is no folder here ({standing})")

    def file(self, path: str, content: bytes, mode: int = 0o644) -> None:
        _, here = self._room(path, None)
        if os.path.lexists(here):
            os.unlink(here)
        with open(here, "wb") as file:
            file.write(content)
        self._chmod(here, mode if self._privileged else mode & ~0o022)

    def link(self, path: str, text: str) -> None:
        if self._standing(self._holder(path), path) is None:
            _, here = self._room(path, None)
            os.symlink(text, here)

    def hide(self, path: str) -> None:
        """Take away what the layers below have at a path."""
        layer = self._holder(path)
        standing = self._standing(layer, path)
        if standing is None or path == layer.target:
            return
        _, here = self._room(path, None)
        if os.path.lexists(here):
            return
        if path in _KEPT_EMPTY:
            os.mkdir(here)
            os.setxattr(here, "user.overlay.opaque", b"y")
            self._chmod(here, 0o1777 if path == "/var/tmp" else 0o755 if self._privileged else 0o555)
        else:
            os.mknod(here, stat.S_IFCHR, 0)  # what overlayfs takes for "deleted"

    # the parts of a box

    def mounted_below(self, path: str) -> str:
        """Where below a folder another file system begins; empty where none does."""
        return next((point for point in self._mounts if within(point, path) and point != path), "")

    def system(self, path: str) -> None:
        """A folder of the system; put together from its entries where something is mounted below it."""
        if any(within(path, secret) for secret in SECRETS):
            self.folder(path, 0o555)
        elif not self.mounted_below(path):
            self.folder(path)
            self.add(path, [path], "copy")
        elif len(self.all) < _MOST:
            self.folder(path)
            with os.scandir(path) as entries:
                for entry in sorted(entries, key=lambda entry: entry.name):
                    self._entry(entry)

    def _entry(self, entry: os.DirEntry[str]) -> None:
        if entry.is_symlink():
            self.link(entry.path, os.readlink(entry.path))
        elif entry.is_dir():
            if os.access(entry.path, os.R_OK | os.X_OK):
                self.system(entry.path)
        elif entry.is_file() and entry.path not in SECRETS:
            if entry.stat().st_size <= _SMALL:
                try:
                    with open(entry.path, "rb") as file:
                        self.file(entry.path, file.read(), stat.S_IMODE(entry.stat().st_mode))
                except PermissionError:
                    pass  # not for this user, so not for the box
            else:
                self.grant(entry.path, entry.path, "read")

    def grant(self, target: str, source: str | None, access: str) -> None:
        """A folder or file of the plan. Copies of one target lie over one another. A small folder is copied in whole (`plain`):
        an overlay cannot rename a folder that lies in a layer below, nor change what belongs to others."""
        if source is None:
            self.folder(target)
            return
        if not os.path.isdir(source):
            self._grant_file(target, source, access)
            return
        here = self._holder(target)
        if access in ("copy", "plain") and here.is_own:
            if here.target == target:
                here.lowers.insert(0, source)
                return
            if access == "plain":
                self.folder(target)
                self.add(target, [source], "plain")
                return
            below = self.mounted_below(source)
            if not below:
                self.folder(target)
                self.add(target, [source], "copy")
                return
            raise OSError(22, f"{source} cannot be copied into a box: {below} in it is a file system of its own; name others")
        self.folder(target)
        self.add(target, [source], access)

    def _grant_file(self, target: str, source: str, access: str) -> None:
        status = os.stat(source)
        if access in ("copy", "plain"):
            with open(source, "rb") as file:
                self.file(target, file.read(), stat.S_IMODE(status.st_mode))
            return
        if self._standing(self._holder(target), target) is None:
            self.file(target, b"")
        self.all.append(Layer(len(self.all), target, [source], access))

    def mount(self, root: str, upper: str, work: str) -> None:
        """Mount all of it below `root`."""
        for layer in self.all:
            target = os.path.normpath(f"{root}/{layer.target}")
            if layer.access == "plain":
                self._mount_plain(layer, target, f"{upper}/{layer.number}")
                continue
            if not layer.is_own:
                kernel.bind(layer.lowers[0], target, read_only=layer.access == "read")
                continue
            # By descriptor: a path may hold what separates options, and be longer than a page of them.
            made = f"{self._made}/{layer.number}"
            lowers = [*([made] if os.listdir(made) or not layer.lowers else []), *layer.lowers]
            folders = [*lowers, f"{upper}/{layer.number}", f"{work}/{layer.number}"]
            for folder, like in ((folders[-2], layer.lowers[0] if layer.lowers else made), (folders[-1], None)):
                os.mkdir(folder)
                if like is not None:
                    self._like(folder, like)
            held = [os.open(folder, os.O_PATH | os.O_DIRECTORY) for folder in folders]
            *below, up, aside = [f"/proc/self/fd/{number}" for number in held]
            options = f"lowerdir={':'.join(below)},upperdir={up},workdir={aside},userxattr"
            kernel.mount("overlay", target, "overlay", kernel.MS_NOSUID | kernel.MS_NODEV, options)
            for number in held:
                os.close(number)

    def _mount_plain(self, layer: Layer, target: str, folder: str) -> None:
        """Copy a folder, and write down when each part of it was last changed, by which later changes show."""
        os.mkdir(folder)
        for source in (*reversed(layer.lowers), f"{self._made}/{layer.number}"):
            _copy(source, folder)
        self._chmod(folder, stat.S_IMODE(os.stat(layer.lowers[0]).st_mode))
        times: dict[str, int] = {}
        for above, folders, files in os.walk(folder):
            for name in (*folders, *files):
                path = os.path.join(above, name)
                times[os.path.relpath(path, folder)] = os.lstat(path).st_ctime_ns
        with open(f"{self._made}/{layer.number}.json", "w") as file:
            json.dump(times, file)
        kernel.bind(folder, target, read_only=False)

    def _like(self, folder: str, like: str) -> None:
        """The root of an upper folder gives the mounted folder its mode; its owner is us, who may not write everywhere."""
        mode = stat.S_IMODE(os.stat(like).st_mode)
        self._chmod(folder, mode if os.access(like, os.W_OK) else mode & ~0o222)


def _copy(source: str, to: str) -> None:
    """All of a folder that can be read, with modes and times; sockets and the like are left out."""
    with os.scandir(source) as entries:
        for entry in entries:
            target = os.path.join(to, entry.name)
            status = entry.stat(follow_symlinks=False)
            try:
                if entry.is_symlink():
                    os.symlink(os.readlink(entry.path), target)
                elif entry.is_dir():
                    if not os.path.isdir(target):
                        os.mkdir(target)
                    os.chmod(target, 0o700)
                    _copy(entry.path, target)
                elif entry.is_file():
                    with open(entry.path, "rb") as file, open(target, "wb") as out:
                        while piece := file.read(_SMALL):
                            out.write(piece)
                else:
                    continue
            except PermissionError:
                continue
            if not entry.is_symlink():
                with contextlib.suppress(OSError):  # before Linux 6.6 there are none in memory
                    for name in os.listxattr(entry.path):
                        if name.startswith("user."):
                            os.setxattr(target, name, os.getxattr(entry.path, name))
                os.chmod(target, stat.S_IMODE(status.st_mode))
            os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns), follow_symlinks=False)
