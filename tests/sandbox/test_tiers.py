"""Which tier a machine gives, and the programs that the kernel is given."""

import ast
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from earnest.core.errors import EarnestError
from earnest.sandbox import tiers
from earnest.sandbox.box import Folder, Plan
from earnest.sandbox.confined import Confined
from earnest.sandbox.launch import filter as rules
from earnest.sandbox.launch import first, kernel, layers, ward
from earnest.sandbox.namespaces import Namespaces
from earnest.sandbox.seatbelt import profile

SOURCE = Path(tiers.__file__).parent
TRIED = """
import msgspec
from earnest.sandbox import tiers
print(msgspec.json.encode([tiers.choose().name, tiers.tried()]).decode())
"""


def test_the_best_tier_is_the_one_that_was_seen_to_work():
    assert tiers.choose().name == "namespaces"
    assert tiers.choose("B").name == tiers.choose("confined").name == "confined"
    found = {each.name: each for each in tiers.tried()}
    assert (found["namespaces"].works, found["confined"].works, found["seatbelt"].works) == (True, True, False)
    with pytest.raises(EarnestError) as caught:
        tiers.choose("seatbelt")
    assert caught.value.code == "E1804" and caught.value.message == "that tier does not work here: seatbelt: it needs macOS"
    with pytest.raises(EarnestError) as caught:
        tiers.choose("Z")
    assert caught.value.code == "E1804"


NO_NAMESPACES = """
from earnest.sandbox.launch import kernel
kernel.become_itself_in_a_user_namespace()
with open("/proc/sys/user/max_user_namespaces", "w") as file:
    file.write("0")
"""
MASKED_PROC = """
from earnest.sandbox.launch import kernel
kernel.become_itself_in_a_user_namespace()
kernel.unshare(kernel.CLONE_NEWNS)
kernel.mount("", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
kernel.mount("", "/proc/irq", "tmpfs", kernel.MS_RDONLY)
"""


@pytest.mark.parametrize(
    "before, why, remedy",
    [(NO_NAMESPACES, "unshare", "sysctl -w user.max_user_namespaces"), (MASKED_PROC, "proc", "")],
    ids=["forbidden", "as in a container"],
)
def test_without_namespaces_the_next_tier_is_chosen_and_the_reason_told(before, why, remedy):
    done = subprocess.run([sys.executable, "-c", before + TRIED], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    name, found = json.loads(done.stdout)
    assert name == "confined"
    assert found[0]["works"] is False and why in found[0]["why"] and remedy in found[0]["remedy"]


def test_each_mechanism_is_tried():
    found = {each.name: each for each in tiers.mechanisms()}
    assert {"user namespace", "overlay", "network namespace", "seccomp listener", "Landlock", "all ports"} <= found.keys()
    assert all(each.works for each in found.values() if each.tiers), found


def test_a_plan_that_no_box_can_follow_is_refused_at_once(tmp_path):
    def plan(**more):
        return Plan(**{"argv": ("/bin/true",), "env": {}, "cwd": "/h", "home": "/h", **more})

    for wrong in (
        plan(argv=()), plan(cwd="here"), plan(home="/a/../b"), plan(folders=(Folder("/w", str(tmp_path / "none")),)),
        plan(folders=(Folder("/w", None, "write"),)), plan(reach="hosts", hosts=("a b",)),
    ):  # fmt: skip
        for tier in (Namespaces(), Confined()):
            with pytest.raises(EarnestError) as caught:
                tier.box(wrong)
            assert caught.value.code == "E1801"
    there = str(tmp_path)
    for wrong in (plan(home=there, cwd=there), plan(folders=(Folder("/other", there, "read"),), home=f"{there}/h", cwd="/")):
        with pytest.raises(EarnestError) as caught:
            Confined().box(wrong)
        assert caught.value.code == "E1803"
    assert os.listdir(tmp_path) == []


def test_without_namespaces_a_copy_at_its_own_path_is_there_to_be_read(make_rig):
    rig = make_rig("confined")
    (rig.folder / "own").mkdir()
    (rig.folder / "own" / "file").write_text("there")
    own = f"{rig.folder}/own"
    done = rig.sh(f"cat {own}/file; echo x > {own}/file", folders=(Folder(own, own),))
    assert done.out == "there" and done.status != 0 and done.refused() == {f"{own}/file"}


def test_a_program_in_whose_folder_something_is_mounted_is_there_to_be_read(tmp_path, monkeypatch):
    for name in ("plain/mnt", "parted/mnt", "made"):
        (tmp_path / name).mkdir(parents=True)
    plain, parted = f"{tmp_path}/plain", f"{tmp_path}/parted"
    monkeypatch.setattr(layers, "mount_points", lambda: ["/", f"{parted}/mnt"])
    plan = {
        **{"watch": True, "files": {}, "folders": [], "links": [], "runtimes": [plain, parted]},
        **{"account": "/home/someone", "home": "/home/someone/own", "cwd": "/"},
    }
    of_box = layers.Layers(f"{tmp_path}/made")
    first._furnish(of_box, plan)
    shown = {layer.target: layer.access for layer in of_box.all}
    assert (shown[plain], shown[parted]) == ("copy", "read")
    with pytest.raises(OSError, match="file system of its own"):
        of_box.grant("/srv/other", parted, "copy")


def test_what_runs_in_a_box_imports_the_standard_library_alone():
    own = ("earnest.sandbox.launch", "earnest.sandbox.internet")
    shared = (SOURCE.parent / "net" / "__init__.py", SOURCE.parent / "net" / "netlink.py")
    for path in (*(SOURCE / "launch").glob("*.py"), *(SOURCE / "internet").glob("*.py"), *shared):
        if path.name == "authority.py":  # runs outside
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                module = node.module or ""
                parts = [f"{module}.{alias.name}" for alias in node.names] if module == "earnest.net" else [module]
                names += [part for part in parts if part != "earnest.net.netlink"]
            for name in names:
                assert name.split(".")[0] in sys.stdlib_module_names or name.startswith(own), f"{path.name}: {name}"


# The seccomp programs, by an interpreter of the few instructions they use (classic BPF)


def verdict(code: bytes, name: str, *args: int, arch: int = kernel.AUDIT_ARCH, number: int | None = None) -> int:
    data = struct.pack("=iIQ6Q", kernel.NUMBERS[name] if number is None else number, arch, 0, *(*args, *[0] * (6 - len(args))))
    steps = list(struct.iter_unpack("=HBBI", code))
    place, value = 0, 0
    while True:
        operation, true, false, operand = steps[place]
        place += 1
        if operation == 0x06:
            return operand
        if operation == 0x20:
            value = struct.unpack_from("=I", data, operand)[0]
        elif operation == 0x54:
            value &= operand
        else:
            holds = {0x15: value == operand, 0x35: value >= operand, 0x45: bool(value & operand)}[operation]
            place += true if holds else false


def test_the_program_of_every_box_refuses_what_walls_do_not_hold():
    code = rules.program(rules.base(listened=False))
    assert verdict(code, "mount") == verdict(code, "ptrace") == verdict(code, "socket", 40, 1) == rules.REFUSE
    assert verdict(code, "io_uring_setup") == verdict(code, "clone3") == rules.ABSENT
    assert verdict(code, "clone", 0x10000000 | 17) == rules.REFUSE and verdict(code, "clone", 17) == rules.ALLOW
    assert verdict(code, "ioctl", 0, 0x5412) == rules.REFUSE and verdict(code, "ioctl", 0, 0x5401) == rules.ALLOW
    for family in (1, 2, 10, 16):
        assert verdict(code, "socket", family, 1) == rules.ALLOW
    assert verdict(code, "openat") == verdict(code, "connect") == rules.ALLOW
    assert verdict(code, "openat", arch=0x40000003) == rules.ABSENT  # 32-bit
    assert verdict(code, "openat", number=0x40000000 | 257) == rules.ABSENT  # x32
    assert verdict(rules.program(rules.base(listened=True)), "mount") == rules.TELL


def test_where_a_box_writes_to_the_machine_no_file_gets_set_id_bits():
    code = rules.program(rules.no_setuid(listened=False))
    made = os.O_CREAT | os.O_WRONLY
    assert verdict(code, "openat", 0, 0, made, 0o644) == verdict(code, "openat", 0, 0, os.O_RDONLY, 0o4755) == rules.ALLOW
    assert verdict(code, "openat", 0, 0, made, 0o4755) == verdict(code, "openat", 0, 0, os.O_TMPFILE, 0o2755) == rules.REFUSE
    assert verdict(code, "fchmod", 0, 0o4755) == verdict(code, "fchmodat", 0, 0, 0o2755) == rules.REFUSE
    assert verdict(code, "fchmod", 0, 0o1777) == rules.ALLOW and verdict(code, "openat2") == rules.ABSENT


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_program_without_namespaces_holds_on_both_machines(machine, monkeypatch):
    column = 1 if machine == "aarch64" else 0
    numbers = {name: pair[column] for name, pair in kernel._OLD.items() if pair[column] >= 0} | kernel._NEW
    monkeypatch.setattr(kernel, "NUMBERS", numbers)
    code = rules.program(ward.wanted(watched=True, landlock=5) | rules.counted())
    stream, datagram, raw = 1 | 0o2000000, 2, 3
    assert [verdict(code, "socket", family, stream) for family in (1, 2, 10)] == [rules.ALLOW] * 3
    assert [verdict(code, "socket", 2, stream, protocol) for protocol in (0, 6)] == [rules.ALLOW] * 2
    assert [verdict(code, "socket", 2, stream, protocol) for protocol in (132, 262)] == [rules.TELL] * 2
    assert [verdict(code, "socket", family, kind) for family in (1, 2, 10) for kind in (datagram, raw)] == [rules.TELL] * 6
    assert [verdict(code, "socket", 16, raw, protocol) for protocol in (0, 15)] == [rules.ALLOW, rules.TELL]
    assert verdict(code, "socketpair", 1, 1) == rules.ALLOW and verdict(code, "socketpair", 1, 2) == rules.TELL
    assert verdict(code, "openat", 0, 0, os.O_RDONLY | os.O_CLOEXEC) == rules.ALLOW
    assert verdict(code, "openat", 0, 0, os.O_RDWR) == verdict(code, "openat", 0, 0, os.O_RDONLY | os.O_TRUNC) == rules.TELL
    assert verdict(code, "sendto", 3, 0, 0, 0, 1) == rules.ALLOW and verdict(code, "sendto", 3, 0, 0, 0x20000000) == rules.TELL
    assert verdict(code, "prlimit64", 0) == rules.ALLOW and verdict(code, "prlimit64", 77) == rules.TELL
    assert verdict(code, "clone", 0x10000) == rules.ALLOW and verdict(code, "clone", 17) == rules.TELL
    assert verdict(code, "clone", 0x10000000 | 0x10000) == rules.TELL
    assert {verdict(code, name) for name in ("kill", "connect", "bind", "fchmod", "unlinkat", "setxattr")} == {rules.TELL}
    assert verdict(code, "read", number=63 if column else 0) == rules.ALLOW


def test_the_profile_for_macos_quotes_paths_and_opens_one_port():
    text = profile(["/a b"], ['/c"d', "/e\\f"], 8123)
    assert '(subpath "/c\\"d")' in text and '(subpath "/e\\\\f")' in text and '(subpath "/a b")' in text
    assert text.startswith("(version 1)\n(deny default)") and text.count("(") == text.count(")")
    assert 'localhost:8123' in text and "network-outbound" not in profile([], [], 0)
