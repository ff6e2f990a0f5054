"""What is seen of a box's files, in each tier."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from earnest.sandbox.box import Answer, Folder, Limits, Plan, changes
from earnest.sandbox.confined import Confined
from earnest.sandbox.namespaces import Namespaces
from earnest.sandbox.tiers import choose
from sandbox.rig import HERE, Outcome

FIXTURE = {"kept": "kept\n", "changed": "old\n", "removed": "gone\n", "tree/one": "1\n", "tree/sub/two": "2\n", "moved": "m\n"}


@pytest.fixture
def fixture(rig):
    folder = rig.folder / "fixture"
    for name, text in FIXTURE.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
        os.utime(folder / name, (1000, 1000))
    for path in (folder, *folder.rglob("*")):
        os.chown(path, 64321 if rig.user == "ordinary" else -1, -1)
    return folder


def test_each_kind_of_change_is_told_by_path_with_what_was_there(rig, fixture):
    work = f"{rig.home}/work"
    script = f"""
cd {work}
echo new > fresh; mkdir -p deep/er; echo more >> changed; rm removed; rm -r tree; mkdir tree; echo again > tree/three
mv moved elsewhere; touch -d @2000 kept; ln -s kept link; chmod 600 elsewhere
"""
    done = rig.sh(script, folders=(Folder(work, str(fixture)),))
    assert done.status == 0, done.err
    seen = {path.removeprefix(f"{work}/"): what for path, what in done.changed().items()}
    assert seen == {
        "fresh": "created", "deep": "created", "deep/er": "created", "changed": "overwritten", "removed": "deleted",
        "tree/one": "deleted", "tree/sub": "deleted", "tree/sub/two": "deleted", "tree/three": "created",
        "moved": "deleted", "elsewhere": "created", "kept": "touched", "link": "created",
    }  # fmt: skip
    contents = {path.removeprefix(f"{work}/"): pair for path, pair in done.contents.items()}
    assert contents["changed"] == (b"old\n", b"old\nmore\n")
    assert contents["removed"] == (b"gone\n", None)
    assert contents["fresh"] == (None, b"new\n")
    assert done.look.entries[f"{work}/link"].now.target == "kept"
    # The fixture itself is as it was.
    assert {str(path.relative_to(fixture)): path.read_text() for path in fixture.rglob("*") if path.is_file()} == FIXTURE


def test_what_was_written_and_put_back_is_seen_as_opened(mine):
    (mine.folder / "fixture").mkdir()
    (mine.folder / "fixture" / "file").write_text("as it was\n")
    work = f"{mine.home}/work"
    script = f"cd {work}; cp -p file saved; echo other > file; cat saved > file; touch -r saved file; rm saved"
    done = mine.sh(script, folders=(Folder(work, str(mine.folder / "fixture")),))
    assert done.changed() == {f"{work}/file": "opened"}, done.err


def test_a_folder_of_the_fixture_can_be_renamed(rig, fixture):
    work = f"{rig.home}/work"
    done = rig.sh(f"cd {work}; mv tree wood && mv wood/sub . && chmod 500 sub", folders=(Folder(work, str(fixture)),))
    assert done.status == 0, done.err
    assert {path.removeprefix(f"{work}/"): what for path, what in done.changed().items()} == {
        "tree": "deleted", "tree/one": "deleted", "tree/sub": "deleted", "tree/sub/two": "deleted",
        "wood": "created", "wood/one": "created", "sub": "created", "sub/two": "created",
    }  # fmt: skip


def test_a_large_fixture_lies_below_an_overlay(make_rig):
    rig = make_rig("namespaces")
    folder = rig.folder / "large"
    for number in range(11):
        (folder / f"d{number}").mkdir(parents=True)
        for each in range(100):
            (folder / f"d{number}" / f"f{each}").write_text("as it was\n")
    work = f"{rig.home}/work"
    script = "rm -r d3; echo x > d4/f5; : > d5/new; cp -p d6/f1 ~/s; echo y > d6/f1; cat ~/s > d6/f1; touch -r ~/s d6/f1"
    changed = rig.sh(f"cd {work}; {script}; rm ~/s", folders=(Folder(work, str(folder)),)).changed()
    gone = {f"{work}/d3", *(f"{work}/d3/f{each}" for each in range(100))}
    rest = {path: what for path, what in changed.items() if path not in gone}
    assert {changed[path] for path in gone} == {"deleted"}
    assert rest == {f"{work}/d4/f5": "overwritten", f"{work}/d5/new": "created", f"{work}/d6/f1": "opened"}


def test_a_folder_may_lie_in_another_and_hides_what_was_there(mine):
    for name in ("outer/inner/hidden", "outer/seen", "other/file"):
        (mine.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (mine.folder / name).write_text("there\n")
    work = f"{mine.home}/work"
    outer, other = (str(mine.folder / name) for name in ("outer", "other"))
    folders = (Folder(work, outer), Folder(f"{work}/more", other), Folder(f"{work}/none"))
    done = mine.sh(f"cd {work}; cat seen more/file; echo x > more/file; echo y > none/fresh; rm inner/hidden", folders=folders)
    assert (done.status, done.out) == (0, "there\nthere\n"), done.err
    assert done.changed() == {
        f"{work}/more/file": "overwritten", f"{work}/none/fresh": "created", f"{work}/inner/hidden": "deleted",
    }  # fmt: skip


def test_what_is_deleted_in_a_folder_that_lies_in_another_is_told(mine):
    for name in ("outer/seen", "outer/inner/gone", "outer/inner/old", "outer/inner/sub/gone"):
        (mine.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (mine.folder / name).write_text(name)
    outer, inner = f"{mine.home}/outer", f"{mine.home}/outer/inner"
    folders = (Folder(outer, f"{mine.folder}/outer"), Folder(inner, f"{mine.folder}/outer/inner"))
    done = mine.sh(f"cd {inner}; rm -r gone sub; mv old new", folders=folders)
    assert (done.status, done.err) == (0, "")
    assert done.changed() == {
        f"{inner}/gone": "deleted", f"{inner}/sub": "deleted", f"{inner}/sub/gone": "deleted", f"{inner}/old": "deleted",
        f"{inner}/new": "created",
    }  # fmt: skip


def test_a_program_that_only_reads_leaves_nothing(rig, fixture):
    work = f"{rig.home}/work"
    done = rig.sh(f"cd {work}; cat kept tree/sub/two; ls -lR . > /dev/null", folders=(Folder(work, str(fixture)),))
    assert (done.status, done.out, done.changed()) == (0, "kept\n2\n", {})


def test_writes_anywhere_are_seen_where_namespaces_are(make_rig):
    rig = make_rig("namespaces")
    done = rig.sh("echo 1 > /tmp/t; echo 2 > /var/tmp/v; echo 3 > /dev/shm/s; rm -f /etc/hostname; mkdir /made 2>/dev/null; :")
    seen = done.changed()
    assert {"/tmp/t": "created", "/var/tmp/v": "created", "/dev/shm/s": "created"}.items() <= seen.items()
    if os.geteuid() == 0:
        assert seen["/made"] == "created" and seen["/etc/hostname"] == "deleted"
        assert os.path.exists("/etc/hostname") and not os.path.exists("/made")


def test_a_system_is_shown_without_its_secrets_and_homes(make_rig):
    rig = make_rig("namespaces")
    done = rig.sh("ls -A /home /root /mnt /var/log; ls /etc/passwd /usr/bin/env; ls /etc/shadow /etc/ssh 2>/dev/null")
    assert [line for line in done.out.splitlines() if line and not line.endswith(":")] == ["/etc/passwd", "/usr/bin/env"]


def test_looks_compare_with_one_another_while_the_command_runs(mine):
    plan = mine.plan("/bin/sh", "-c", "echo 1 > ~/a; read x; echo 2 > ~/a; echo 3 > ~/b; read x; rm ~/b; read x; exit 0")
    box = choose(mine.tier).box(plan)
    process = subprocess.Popen(box.argv, env=dict(box.env), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    home = mine.home

    def wait(path: str, content: bytes | None) -> object:
        for _ in range(2000):
            look = box.look()
            entry = look.entries.get(path)
            if (box.bytes_of(path, look) if entry and entry.now else None) == content:
                return look
            time.sleep(0.005)
        raise AssertionError(path)

    def go_on() -> None:
        process.stdin.write(b"\n")
        process.stdin.flush()

    first = wait(f"{home}/a", b"1\n")
    go_on()
    second = wait(f"{home}/b", b"3\n")
    assert [(c.path, c.kind) for c in changes(first, second)] == [(f"{home}/a", "overwritten"), (f"{home}/b", "created")]
    go_on()
    third = wait(f"{home}/b", None)
    assert [(c.path, c.kind) for c in changes(second, third)] == [(f"{home}/b", "deleted")]
    # What a file held at a look is kept, however often it was written since.
    assert [box.bytes_of(f"{home}/a", look) for look in (first, third, None)] == [b"1\n", b"2\n", None]
    assert changes(third, box.look()) == ()
    process.stdin.close()
    assert process.wait(20) == 0
    assert box.close() == box.close() and box.close().status == 0
    assert not os.path.exists(os.path.dirname(box.argv[-1])) and not os.path.exists(home)


def test_closing_ends_what_runs_and_a_box_may_be_closed_unstarted(mine):
    for tier in (Namespaces(), Confined()):
        tier.box(Plan(("/bin/true",), {}, mine.home, mine.home)).close()
    box = choose(mine.tier).box(mine.plan("/bin/sh", "-c", "echo up; sleep 300"))
    process = subprocess.Popen(box.argv, env=dict(box.env), stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n"
    assert box.close().status is None
    assert process.wait(10) != 0 and mine.gone()


def test_a_command_ends_its_box_as_it_ended_itself(mine):
    assert mine.sh("exit 7").status == 7
    killed = mine.sh("kill -USR2 $$")
    assert killed.status == -12 and killed.ended.status == -12
    assert mine.run("no-such-program").status == 127


def test_a_command_is_as_nice_as_who_made_its_box(rig):
    rig.through = ["nice", "-n", "3"]
    done = rig.sh("nice")
    assert (done.status, done.out) == (0, f"{os.nice(0) + 3}\n"), done.err


def test_making_processes_does_not_fail_because_others_end(rig):
    turn = "n=$((n+1)); x=`echo a=b | sed -e s/a=//`; [ $x = b ] || bad=$((bad+1))"
    done = rig.sh(f"n=0; bad=0; while [ $n -lt 60 ]; do {turn}; done; echo $bad")
    assert (done.out, done.err) == ("0\n", "")


def test_a_box_may_be_started_again_after_it_ended(mine):
    box = choose(mine.tier).box(mine.plan("/bin/sh", "-c", "echo $$ > ~/file"))
    for _ in range(2):
        assert subprocess.run(box.argv, env=dict(box.env), timeout=60).returncode == 0
        assert f"{mine.home}/file" in box.look().entries
    process = subprocess.Popen(box.argv, env=dict(box.env))
    assert box.close().limit == "" and process.wait(20) is not None and mine.gone()


def test_the_environment_of_a_plan_goes_to_its_command_alone(mine):
    env = {**mine.env(), "LD_PRELOAD": "/evil.so", "PYTHONHOME": "/evil", "WITH_SPACE": "a b\nc"}
    box = choose(mine.tier).box(mine.plan("/usr/bin/env", "-0", env=env))
    assert not {"LD_PRELOAD", "PYTHONHOME"} & box.env.keys()
    done = subprocess.run(box.argv, env=dict(box.env), capture_output=True, timeout=60)
    assert b"WITH_SPACE=a b\nc\0" in done.stdout and f"HOME={mine.home}".encode() in done.stdout
    box.close()


def test_root_may_be_another_user_inside(make_rig):
    rig = make_rig("namespaces")
    done = rig.sh("id -u; id -un > /dev/null && echo known; echo x > ~/file; stat -c %u ~/file", user=23456)
    expected = "23456\nknown\n23456\n" if os.geteuid() == 0 else f"{os.geteuid()}\nknown\n{os.geteuid()}\n"
    assert (done.status, done.out) == (0, expected), done.err
    assert done.changed() == {f"{rig.home}/file": "created"}


def test_answers_and_plans_are_plain_data():
    plan = Plan(("x",), {}, "/h", "/h", answers=(Answer("h", "/p"),))
    assert plan.answers[0].status == 200 and plan.reach == "none"


MOUNTED = """
import os, sys
from earnest.sandbox.launch import kernel
kernel.become_itself_in_a_user_namespace()
kernel.unshare(kernel.CLONE_NEWNS)
kernel.mount("", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
kernel.mount(sys.argv[1], "/etc/hostname", "", kernel.MS_BIND)  # as containers do
kernel.mount("", "/opt", "tmpfs")
for name in ("above/below", "beside"):
    os.makedirs(f"/opt/{name}")
kernel.mount("", "/opt/above/below", "tmpfs")
for name in ("above/below", "beside"):
    open(f"/opt/{name}/file", "w").write("there")
os.execv(sys.argv[2], sys.argv[2:])
"""


def test_folders_with_other_file_systems_below_them_are_shown_and_seen(make_rig):
    rig = make_rig()
    (rig.folder / "name").write_text("inner\n")
    plan = rig.plan("/bin/sh", "-c", "cat /opt/*/file /opt/*/*/file; echo more >> /opt/above/below/file; test -s /etc/passwd")
    driver = [sys.executable, "-c", MOUNTED, str(rig.folder / "name"), sys.executable, str(HERE / "driver.py"), "namespaces"]
    done = subprocess.run(driver, input=msgspec.json.encode(plan), capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    told = msgspec.json.decode(done.stdout, type=Outcome)
    assert (told.status, told.out) == (0, "therethere"), told.err
    assert told.changed() == {"/opt/above/below/file": "overwritten"}
    assert told.contents["/opt/above/below/file"] == (b"there", b"theremore\n")


def test_before_linux_6_6_the_upper_folders_lie_on_disk(make_rig):
    rig = make_rig()
    script = "echo 1 > ~/a; i=0; while :; do head -c 500000 /dev/zero > ~/f$i; i=$((i+1)); sleep 0.01; done"
    plan = rig.plan("/bin/sh", "-c", script, limits=Limits(disk=4 << 20, wall_s=30))
    box = Namespaces().box(plan)
    told = json.loads(Path(box.argv[-1]).read_text())
    Path(box.argv[-1]).write_text(json.dumps({**told, "in_memory": False}))
    subprocess.run(box.argv, env=dict(box.env), stdin=subprocess.DEVNULL, timeout=60)
    look = box.look()
    assert box.bytes_of(f"{rig.home}/a", look) == b"1\n"
    assert box.close().limit == "disk"
    assert not os.path.exists(os.path.dirname(box.argv[-1]))


def test_what_a_killed_process_left_is_taken_away_by_the_next(mine, monkeypatch, tmp_path):
    from earnest.sandbox import places

    monkeypatch.setattr("tempfile.tempdir", str(mine.folder))
    left = choose(mine.tier).box(mine.plan("/bin/true"))
    subprocess.run(left.argv, env=dict(left.env), timeout=60)
    state = os.path.dirname(left.argv[-1])
    monkeypatch.setattr(places, "_swept", False)
    places.sweep()
    assert os.path.exists(state)  # its process is there
    os.close(left._place._lock)  # as a kill does
    left._place._lock = -1
    monkeypatch.setattr(places, "_swept", False)
    places.sweep()
    assert not os.path.exists(state) and not os.path.exists(mine.home)
    left.close()
