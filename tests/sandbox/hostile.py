"""A program that tries to get out of its box. Told by a JSON object what there is outside, it prints what came of each try:
`held` with the error, or `ESCAPED` with what it got. Only the standard library; every try is harmless where it succeeds."""

import ctypes
import fcntl
import json
import os
import platform
import socket
import struct
import sys

libc = ctypes.CDLL(None, use_errno=True)
ARM = platform.machine() == "aarch64"
NUMBERS = {
    # x86-64, arm64
    "ptrace": (101, 117), "keyctl": (250, 219), "add_key": (248, 217), "mount": (165, 40), "unshare": (272, 97),
    "setns": (308, 268), "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "process_vm_readv": (310, 270), "pidfd_getfd": (438, 438), "pidfd_open": (434, 434),
    "open_tree": (428, 428), "fsopen": (430, 430), "kexec_load": (246, 104), "init_module": (175, 105), "reboot": (169, 142),
    "chroot": (161, 51), "clone3": (435, 435), "open_by_handle_at": (304, 265), "pivot_root": (155, 41), "swapon": (167, 224),
    "sethostname": (170, 161), "prlimit64": (302, 261), "fcntl": (72, 25),
}  # fmt: skip
found: dict[str, str] = {}
told = json.loads(sys.argv[1])


def call(name, *args):
    done = libc.syscall(ctypes.c_long(NUMBERS[name][ARM]), *[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    if done < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return done


def attempt(name, act):
    try:
        found[name] = f"ESCAPED {act()!r}"
    except Exception as error:
        found[name] = f"held {error}"


def read(path):
    with open(path, "rb") as file:
        return file.read(100)


def wrong(path):
    """Whether the secret can be read at a path; anything else there is the box's own."""
    data = read(path)
    if told["secret"].encode() not in data:
        raise OSError(f"only {data!r}")
    return data


def connect(family, address, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as line:
        line.settimeout(3)
        line.connect(address)
        line.sendall(b"let me out")
        return line.recv(100)


def send(family, address):
    with socket.socket(family, socket.SOCK_DGRAM) as line:
        line.settimeout(1)
        line.sendto(b"let me out", address)
        return line.recv(100)


# Secrets
attempt("secret", lambda: wrong(told["secret_path"]))
for name in ("1", "self", str(os.getppid()), str(told["pid"])):
    attempt(f"secret through /proc/{name}/root", lambda: wrong(f"/proc/{name}/root{told['secret_path']}"))  # noqa: B023
    attempt(f"secret through /proc/{name}/cwd", lambda: wrong(f"/proc/{name}/cwd/{told['secret_path'].lstrip('/')}"))  # noqa: B023
attempt("environment of another", lambda: wrong(f"/proc/{told['pid']}/environ"))
attempt("shadow", lambda: read("/etc/shadow"))
attempt("home", lambda: next(name for name in os.listdir(told["real_home"]) if name not in told["known"]))

# Files outside
for name, path in told["outside"].items():
    attempt(f"write {name}", lambda: os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)))  # noqa: B023
    attempt(f"truncate {name}", lambda: os.truncate(path, 0))  # noqa: B023
    attempt(f"mode of {name}", lambda: os.chmod(path, 0o777))  # noqa: B023
    attempt(f"times of {name}", lambda: os.utime(path, (1, 1)))  # noqa: B023
    attempt(f"attribute of {name}", lambda: os.setxattr(path, "user.escaped", b"y"))  # noqa: B023
    attempt(f"remove {name}", lambda: os.unlink(path))  # noqa: B023
    attempt(f"link to {name}", lambda: os.link(path, f"{told['home']}/hard"))  # noqa: B023
    attempt(f"rename onto {name}", lambda: os.rename(f"{told['home']}/mine", path))  # noqa: B023
attempt("folder outside", lambda: os.mkdir(f"{told['outside_folder']}/new"))
granted = told["granted"]
made = f"{told['written']}/made"
attempt("set-user-id file", lambda: os.close(os.open(made, os.O_WRONLY | os.O_CREAT, 0o4755)))
with open(made, "w") as mine:
    attempt("set-user-id by descriptor", lambda: os.fchmod(mine.fileno(), 0o4755))
attempt("set-group-id", lambda: os.chmod(made, 0o2755))
attempt("set-user-id device", lambda: os.mknod(f"{told['written']}/node", 0o104755))
os.unlink(made)
attempt("write read-only", lambda: os.close(os.open(f"{granted}/file", os.O_WRONLY)))
attempt("make in read-only", lambda: os.mkdir(f"{granted}/new"))
attempt("mode in read-only", lambda: os.chmod(f"{granted}/file", 0o777))
held = os.open(f"{granted}/file", os.O_RDONLY)
attempt("lock", lambda: fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB))
attempt("lock of records", lambda: fcntl.lockf(held, fcntl.LOCK_EX | fcntl.LOCK_NB))
attempt("lease", lambda: fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_RDLCK))
attempt("lease by a number with more bits", lambda: call("fcntl", held, fcntl.F_SETLEASE | 1 << 32, fcntl.F_RDLCK))
attempt("watch of a folder", lambda: fcntl.fcntl(os.open(granted, os.O_RDONLY), fcntl.F_NOTIFY, fcntl.DN_ACCESS))
with open(f"{told['home']}/own", "w") as own:
    fcntl.flock(own, fcntl.LOCK_EX)
    fcntl.lockf(own, fcntl.LOCK_EX)
attempt("mode by descriptor", lambda: os.fchmod(held, 0o777))
attempt("times by descriptor", lambda: os.utime(held, (1, 1)))
attempt("reopen for writing", lambda: os.close(os.open(f"/proc/self/fd/{held}", os.O_WRONLY)))
os.symlink(told["secret_path"], f"{told['written']}/link")
attempt("through our link", lambda: wrong(f"{told['written']}/link"))
attempt("through a link that was there", lambda: wrong(f"{told['written']}/planted"))
attempt("up from a grant", lambda: wrong(f"{told['written']}/../../{os.path.relpath(told['secret_path'], '/')}"))

# The kernel and its files
for path in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/kernel/hostname"):
    attempt(f"open {path}", lambda: os.close(os.open(path, os.O_WRONLY)))  # noqa: B023
for path in ("/dev/mem", "/dev/kmsg", "/dev/sda", "/dev/vda", "/dev/kvm", "/dev/net/tun", "/dev/fuse", "/dev/input/event0"):
    attempt(f"open {path}", lambda: os.close(os.open(path, os.O_RDWR)))  # noqa: B023
attempt("device", lambda: os.mknod(f"{told['home']}/mem", 0o20600, os.makedev(1, 1)))
attempt("block device", lambda: os.mknod(f"{told['home']}/disk", 0o60600, os.makedev(8, 0)))
attempt("uid map", lambda: os.write(os.open("/proc/self/uid_map", os.O_WRONLY), b"0 0 1"))

# Calls
zeros = ctypes.create_string_buffer(256)
attempt("mount", lambda: call("mount", b"none", b"/tmp", b"tmpfs", 0, 0))
attempt("unshare user", lambda: call("unshare", 0x10000000))
attempt("unshare mounts", lambda: call("unshare", 0x20000))
attempt("setns", lambda: call("setns", os.open("/proc/self/ns/net", os.O_RDONLY), 0))
attempt("setns of init", lambda: call("setns", os.open("/proc/1/ns/net", os.O_RDONLY), 0))
attempt("ptrace", lambda: call("ptrace", 16, told["pid"], 0, 0))
attempt("ptrace of init", lambda: call("ptrace", 16, 1, 0, 0))
attempt("process_vm_readv", lambda: call("process_vm_readv", told["pid"], zeros, 1, zeros, 1, 0))
attempt("pidfd_getfd", lambda: call("pidfd_getfd", call("pidfd_open", os.getppid(), 0), 0, 0))
attempt("keyctl", lambda: call("keyctl", 0, -3, 1))
attempt("add_key", lambda: call("add_key", b"user", b"escaped", b"x", 1, -3))
attempt("bpf", lambda: call("bpf", 0, zeros, 128))
attempt("perf", lambda: call("perf_event_open", zeros, 0, -1, -1, 0))
attempt("userfaultfd", lambda: call("userfaultfd", 1))
attempt("io_uring", lambda: call("io_uring_setup", 1, zeros))
attempt("open_tree", lambda: call("open_tree", -100, b"/", 1))
attempt("fsopen", lambda: call("fsopen", b"tmpfs", 0))
attempt("kexec", lambda: call("kexec_load", 0, 0, 0, 0))
attempt("module", lambda: call("init_module", zeros, 16, b""))
attempt("reboot", lambda: call("reboot", 0, 0, 0, 0))
attempt("chroot", lambda: call("chroot", b"/tmp"))
attempt("pivot_root", lambda: call("pivot_root", b"/", b"/"))
attempt("clone3 new user", lambda: call("clone3", struct.pack("=8Q", 0x10000000, 0, 0, 0, 17, 0, 0, 0), 64))
attempt("file handle", lambda: call("open_by_handle_at", -100, zeros, 0))
attempt("swap", lambda: call("swapon", b"/dev/null", 0))
attempt("hostname", lambda: call("sethostname", b"escaped", 7))
attempt("terminal input", lambda: fcntl.ioctl(0, 0x5412, b"x"))
line = os.pipe()[0]
attempt("signal by the kernel", lambda: (fcntl.fcntl(line, fcntl.F_SETOWN, told["pid"]), os.kill(told["pid"], 0)))
attempt("signal by a number with more bits", lambda: call("fcntl", line, fcntl.F_SETOWN | 1 << 32, told["pid"]))
attempt("signal another", lambda: os.kill(told["pid"], 0))
attempt("signal all", lambda: os.kill(-1, 0) or os.kill(told["pid"], 0))
attempt("signal a group", lambda: os.killpg(told["group"], 0))
attempt("limits of another", lambda: call("prlimit64", told["pid"], 7, 0, zeros))

# Networks
attempt("loopback", lambda: connect(socket.AF_INET, ("127.0.0.1", told["port"])))
attempt("loopback by name", lambda: connect(socket.AF_INET, ("localhost", told["port"])))
attempt("loopback, IPv6", lambda: connect(socket.AF_INET6, ("::1", told["port"])))
attempt("loopback, mapped", lambda: connect(socket.AF_INET6, ("::ffff:127.0.0.1", told["port"])))
attempt("any address", lambda: connect(socket.AF_INET, ("0.0.0.0", told["port"])))
attempt("own address", lambda: connect(socket.AF_INET, (told["address"], told["port"])))
attempt("link-local", lambda: connect(socket.AF_INET, ("169.254.169.254", 80)))
attempt("outside", lambda: connect(socket.AF_INET, ("192.0.2.1", 80)))
attempt("datagram to the loopback", lambda: send(socket.AF_INET, ("127.0.0.1", told["datagrams"])))
attempt("abstract socket", lambda: connect(socket.AF_UNIX, "\0" + told["abstract"]))
attempt("UNIX socket outside", lambda: connect(socket.AF_UNIX, told["socket"]))
attempt("UNIX socket in a grant", lambda: connect(socket.AF_UNIX, f"{granted}/socket"))
attempt("UNIX datagram in a grant", lambda: send(socket.AF_UNIX, f"{granted}/datagrams"))
attempt("pipe in a grant", lambda: os.write(os.open(f"{granted}/pipe", os.O_WRONLY | os.O_NONBLOCK), b"let me out"))
attempt("pipe anew", lambda: os.write(os.open(
    f"/proc/self/fd/{os.open(f'{granted}/pipe', os.O_RDONLY | os.O_NONBLOCK)}", os.O_WRONLY | os.O_NONBLOCK), b"let me out"))
attempt("UNIX socket through a link", lambda: (os.symlink(f"{granted}/socket", f"{told['home']}/s"),
                                               connect(socket.AF_UNIX, f"{told['home']}/s")))  # fmt: skip
attempt("vsock", lambda: socket.socket(40, socket.SOCK_STREAM))
attempt("packets", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
attempt("crypto socket", lambda: socket.socket(38, socket.SOCK_SEQPACKET))


def fast_open():
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as line:
        line.settimeout(3)
        line.sendto(b"let me out", 0x20000000, ("127.0.0.1", told["port"]))
        return line.recv(100)


attempt("connect by sending", fast_open)


def beside():
    """Listen on the port of another, on another address, and take that for leave to connect to it."""
    with socket.create_server(("127.0.0.2", told["port"])):
        return connect(socket.AF_INET, ("127.0.0.1", told["port"]))


attempt("port of another", beside)
with open("/proc/self/status") as file:
    state = dict(line.split(":\t", 1) for line in file.read().splitlines() if ":\t" in line)
print(json.dumps({"found": found, "caps": [state["CapEff"], state["CapBnd"], state["NoNewPrivs"]]}))
