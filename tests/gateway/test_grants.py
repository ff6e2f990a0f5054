"""From a server's table to the boxes of its lanes: folders, hosts, environment, command."""

import json
from pathlib import Path
from typing import Any

import pytest

from earnest.config import settings as reading
from earnest.core.errors import EarnestError
from earnest.core.lanes import Lane
from earnest.gateway import lanes
from earnest.gateway.launch import launch_of
from earnest.gateway.served import Launch
from earnest.sandbox.box import Folder


class Machine:
    """A home with a configuration; `launch(text)` is the contained launch of the server `s`."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        for name in ("notes/drafts", "project", ".config/earnest", ".local/state/earnest"):
            (self.home / name).mkdir(parents=True)
        self.env = {"HOME": str(self.home), "PATH": "/usr/bin:/bin", "LANG": "C", "SECRET_TOKEN": "s3cret-a1b2c3d4"}
        self.unnamed: tuple[str, ...] = ()

    def launch(self, contain: str, command: str = '["/bin/cat"]', more: str = "") -> Launch:
        text = f"[servers.s]\ncommand = {command}\ncontain = {contain}\n{more}"
        settings = reading.parse(str(self.home / ".config/earnest/earnest.toml"), text.encode(), self.env)
        server = settings.servers["s"]
        found = launch_of(server, folder=settings.folder, env=self.env, secrets=self.env)
        launch, self.unnamed = lanes.contained(settings, server, found, self.env)
        return launch


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_each_lane_gets_its_folders_and_hosts(machine: Machine) -> None:
    launch = machine.launch('{ read = ["~/notes"], write = ["${env:HOME}/notes/drafts"], hosts = ["a.example"] }')
    notes, drafts = str(machine.home / "notes"), str(machine.home / "notes/drafts")
    plans = {lane: lanes.plan_for(launch, lane) for lane in Lane}
    assert plans[Lane.OBSERVE].folders == plans[Lane.NET].folders == (
        Folder(notes, notes, "read"), Folder(drafts, drafts, "read")
    )  # fmt: skip
    assert plans[Lane.ACT].folders == (Folder(notes, notes, "read"), Folder(drafts, drafts, "write"))
    assert plans[Lane.PREVIEW].folders[1].access == "copy"
    assert {lane: plan.reach for lane, plan in plans.items()} == {
        Lane.OBSERVE: "none", Lane.NET: "hosts", Lane.ACT: "hosts", Lane.PREVIEW: "none",
    }  # fmt: skip
    assert plans[Lane.NET].hosts == ("a.example",) and plans[Lane.OBSERVE].hosts == ()
    assert len({plan.home for plan in plans.values()}) == len(plans), "a home is shared with nobody"
    assert all(plan.strict and plan.cwd == plan.home and "HOME" not in plan.env for plan in plans.values())


def test_a_folder_within_a_granted_one_is_laid_over_it(machine: Machine) -> None:
    launch = machine.launch('{ read = ["~/notes/drafts"], write = ["~/notes"] }')
    assert [folder.access for folder in lanes.plan_for(launch, Lane.ACT).folders] == ["write", "read"]


def test_secrets_and_settings(machine: Machine) -> None:
    env = 'env = { TOKEN = "${env:SECRET_TOKEN}", KEY = "k3y-99aa88bb77cc", LEVEL = "warn", WHERE = "${env:HOME}/notes" }'
    launch = machine.launch('{ secrets = { act = ["TOKEN"], preview = ["KEY"] } }', more=env)
    given = {lane: lanes.environment(launch, lane) for lane in Lane}
    assert [lane for lane in Lane if "TOKEN" in given[lane]] == [Lane.ACT]
    assert [lane for lane in Lane if "KEY" in given[lane]] == [Lane.PREVIEW] and machine.unnamed == ()
    for one in given.values():
        assert (one["LEVEL"], one["WHERE"], one["PATH"]) == ("warn", f"{machine.home}/notes", "/usr/bin:/bin")
        assert "SECRET_TOKEN" not in one
    machine.launch("true", more=env)
    assert machine.unnamed == ("KEY", "TOKEN")
    # An operator who says that all lanes get it is heard.
    assert "KEY" in lanes.environment(machine.launch('{ env = ["KEY"] }', more=env), Lane.OBSERVE)


@pytest.mark.parametrize(
    "path", ["~", "/", "~/.config", "~/.config/earnest/earnest.toml", "~/.local/state/earnest/x", ".", ".."]
)
@pytest.mark.parametrize("kind", ["read", "write"])
def test_no_grant_shows_files_of_earnests_own(machine: Machine, path: str, kind: str) -> None:
    with pytest.raises(EarnestError) as caught:
        machine.launch(f'{{ {kind} = ["{path}"] }}')
    assert caught.value.code == "E1251" and caught.value.remedy


def test_a_link_to_them_is_no_way_either(machine: Machine) -> None:
    (machine.home / "innocent").symlink_to(machine.home / ".config")
    with pytest.raises(EarnestError, match="earnest's own"):
        machine.launch('{ read = ["~/innocent"] }')


def test_what_is_not_there_is_said_when_it_is_wanted(machine: Machine) -> None:
    launch = machine.launch('{ read = ["~/missing"] }')
    with pytest.raises(EarnestError, match="was granted and is not there"):
        lanes.plan_for(launch, Lane.OBSERVE)


@pytest.mark.parametrize(
    "command, names",
    [
        ('["python3", "server.py"]', "server.py"),
        ('["./run"]', "./run"),
        ('["/bin/cat", "."]', "."),
        ('["npx", "-y", "@scope/files"]', "npm's cache"),
        ('["uvx", "mcp-server-x"]', "uv tool install"),
        ('["docker", "run", "x"]', "path of its own program"),
        ('["uv", "run", "server.py"]', "path of its own program"),
    ],
)
def test_a_command_that_cannot_be_run_from_within_says_why(machine: Machine, command: str, names: str) -> None:
    for name in ("server.py", "run"):
        (machine.home / "project" / name).write_text("")
    launch = machine.launch("true", command, f'cwd = "{machine.home}/project"')
    with pytest.raises(EarnestError) as caught:
        lanes.plan_for(launch, Lane.OBSERVE)
    assert caught.value.code == "E1252" and names in str(caught.value)
    if names == "server.py":
        granted = machine.launch('{ read = ["~/project"] }', command, f'cwd = "{machine.home}/project"')
        assert lanes.plan_for(granted, Lane.OBSERVE).cwd == f"{machine.home}/project"


def test_a_runner_is_left_out_where_what_it_starts_lies_here(machine: Machine) -> None:
    root = machine.home / ".npm/_npx/1/node_modules/files"
    root.mkdir(parents=True)
    (root / "index.js").write_text("#!/usr/bin/env node\n")
    (root / "index.js").chmod(0o755)
    (root / "package.json").write_text(json.dumps({"name": "files", "version": "1.0.0", "bin": "index.js"}))
    (root.parents[1] / "package.json").write_text(json.dumps({"_npx": {"packages": ["files"]}}))
    launch = machine.launch("true", '["npx", "-y", "files", "/data"]')
    assert lanes.plan_for(launch, Lane.ACT).argv == (str(root / "index.js"), "/data")
    assert launch.argv[0] == "npx", "who it is does not change by it"


@pytest.mark.parametrize(
    "text, words",
    [
        ('{ hosts = ["http://x"] }', "is no host"),
        ('{ hosts = ["*"] }', "is no host"),
        ('{ secrets = { looking = ["X"] } }', "unknown key"),
        ('{ secrets = { net = ["X Y"] } }', "cannot name a variable"),
        ('{ list_lane = "preview" }', "is not one of"),
        ('{ one_lane = true, list_lane = "observe" }', "means nothing"),
        ("{ one_lane = true, preview = true }", "means nothing"),
        ('{ tier = "D" }', "is not one of"),
        ('{ reed = ["x"] }', "read"),
        ('"yes"', "true or false"),
    ],
)
def test_a_mistake_is_told_with_its_place(machine: Machine, text: str, words: str) -> None:
    with pytest.raises(EarnestError) as caught:
        machine.launch(text)
    assert words in str(caught.value) and "earnest.toml:3" in str(caught.value)


@pytest.mark.parametrize(
    "top, said, contained", [("true", None, True), ("true", "false", False), ("false", None, False), ("false", "true", True)]
)
def test_a_default_holds_for_servers_of_which_nothing_is_said(machine: Machine, top: str, said: Any, contained: bool) -> None:
    text = f'contain = {top}\n[servers.s]\ncommand = ["x"]\n' + (f"contain = {said}\n" if said else "")
    found = reading.parse("earnest.toml", text.encode(), machine.env)
    assert (found.containment(found.servers["s"]) is not None) is contained
    web = reading.parse("earnest.toml", b'contain = true\n[servers.s]\nurl = "https://x.example"', machine.env)
    assert web.containment(web.servers["s"]) is None
    with pytest.raises(EarnestError, match="belongs to a command"):
        reading.parse("earnest.toml", b'[servers.s]\nurl = "https://x.example"\ncontain = true', machine.env)
