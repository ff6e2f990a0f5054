"""`earnest doctor`: each check sees what it is for."""

import json
import os
import shutil
import socket
from pathlib import Path

import pytest

from earnest.cli import doctor_checks as checks
from earnest.cli.doctor_hooks import hooks
from earnest.cli.hook_hosts import HOSTS, command
from earnest.cli.init_plan import program_path
from earnest.config.clients import hook_edit
from earnest.config.settings import parse


def found(said):
    """Area to its lines, as (state, text, remedy)."""
    told = json.loads(said.out)
    by_area = {}
    for line in told["checks"]:
        by_area.setdefault(line["area"], []).append((line["state"], line["text"], line["remedy"]))
    assert said.code == (1 if told["problems"] else 0)
    assert all(remedy for lines in by_area.values() for state, _, remedy in lines if state == "problem")
    return by_area


def problems(said):
    return [(area, text) for area, lines in found(said).items() for state, text, _ in lines if state == "problem"]


@pytest.fixture
def free_port(home):
    """The configuration listens where nobody does, so that other tests do not disturb."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    home.config.write_text(f"[listen]\nport = {port}\n")
    return port


def test_a_healthy_installation_has_no_problem_and_nothing_is_started_for_good(free_port, cli, home, scripted):
    command, _ = scripted({"tools": [{"name": "one", "inputSchema": {"type": "object"}}]})
    with home.config.open("a") as file:
        file.write(f"[servers.good]\ncommand = {json.dumps(command)}\n")
    said = cli("doctor", "--json")
    assert problems(said) == []
    lines = found(said)
    assert lines["server good"][0][1].startswith("starts, 1 tool: ")
    assert lines["listener"] == [("ok", f"not open; 127.0.0.1:{free_port} is free for `earnest run`", "")]
    assert "none runs" in lines["daemon"][0][1] and not (home.earnest / "default" / "s").exists()
    assert cli("doctor").out.endswith("No problems.\n")


def test_what_keeps_servers_from_starting_is_told_for_each(free_port, cli, home):
    with home.config.open("a") as file:
        file.write(
            '[servers.node]\ncommand = ["npx", "-y", "some-server"]\n[servers.secret]\ncommand = ["true"]\n'
            'env = { TOKEN = "${env:NOT_SET_ANYWHERE}" }\n[servers.ends]\ncommand = ["false"]\n'
        )
    tools = home.path / "bin"
    tools.mkdir()
    for program in ("true", "false"):
        (tools / program).symlink_to(shutil.which(program))
    told = dict(problems(cli("doctor", "--json", env={"PATH": str(tools)})))
    assert told["server node"] == "there is no npx on the PATH"
    assert "NOT_SET_ANYWHERE" in told["server secret"]
    assert "E1205" in told["server ends"] and "status 1" in told["server ends"]
    quiet = cli("doctor", "--json", "--no-start", env={"PATH": str(tools)})
    assert "server ends" not in dict(problems(quiet))
    assert "Install Node.js" in found(quiet)["server node"][0][2]


def test_configuration_and_policy_are_read_as_the_daemon_reads_them(cli, home):
    home.config.write_text("presett = 1\n")
    [(area, text)] = problems(cli("doctor", "--json"))
    assert area == "configuration" and "E1003" in text and "1:1" in text
    home.config.write_text("[listen]\nport = 0\n[[policy.rule]]\nwhen = 'tool.nope'\nthen = 'ask'\n")
    told = json.loads(cli("doctor", "--json").out)
    [line] = [line for line in told["checks"] if line["state"] == "problem"]
    assert "E1104" in line["text"] and "did you mean" in line["text"]


def test_the_daemon_its_address_and_its_receipts_are_looked_at(demo, cli, home):
    demo.client().call("file-ops", "read", {"file": "recipe.txt"})
    lines = found(cli("doctor", "--json", "--config", demo.ready["config"]))
    assert "earnest 0.1.0, 0 clients" in lines["daemon"][0][1]
    assert demo.ready["address"] in lines["listener"][0][1]
    assert lines["receipts"][0][0] == "ok" and "whole" in lines["receipts"][0][1] and lines["clock"][0][0] == "ok"
    demo.end()
    [file] = home.earnest.glob("c-*/receipts/*.jsonl")
    file.write_bytes(file.read_bytes().replace(b"recipe", b"recipf").replace(b"file-ops", b"file-opz"))
    assert ("receipts" in dict(problems(cli("doctor", "--json", "--no-start", "--config", demo.ready["config"])))) is True


def test_open_folders_and_a_taken_port_are_problems(free_port, cli, home):
    (home.earnest / "default").mkdir(parents=True, mode=0o700)
    os.chmod(home.earnest, 0o700)
    token = home.earnest / "default" / "token"
    token.write_text("x" * 40)
    token.chmod(0o644)
    with socket.create_server(("127.0.0.1", free_port)):
        told = problems(cli("doctor", "--json"))
    assert [area for area, _ in told] == ["folders", "listener"]
    assert str(token) in told[0][1] and str(free_port) in told[1][1]
    os.chmod(home.earnest / "default", 0o755)
    assert any("open to others" in text for _, text in problems(cli("doctor", "--json")))


def test_clients_are_found_with_what_goes_through_earnest_and_what_does_not(free_port, cli, home):
    earnest = home.path / "bin" / "earnest"
    earnest.parent.mkdir()
    earnest.write_text("#!/bin/sh\n")
    earnest.chmod(0o755)
    wrapped = {"command": str(earnest), "args": ["stdio", "files", "--client", "cursor", "--", "no-such-npx", "-y", "x"]}
    (home.path / ".cursor").mkdir()
    (home.path / ".cursor" / "mcp.json").write_text(
        json.dumps({"mcpServers": {"files": wrapped, "plain": {"command": "true"}, "lost": {"command": "/no/such/program"}}})
    )
    (home.path / ".gemini").mkdir()
    (home.path / ".gemini" / "settings.json").write_text("{ not json")
    lines = found(cli("doctor", "--json"))
    assert ("ok", "through earnest: files", "") in lines["cursor"]
    said = {text: (state, remedy) for state, text, remedy in lines["cursor"]}
    assert any("files: there is no no-such-npx" in text and state == "problem" for text, (state, _) in said.items())
    assert ["then `earnest init`" in said[text][1] for text in said if "lost" in text] == [True], "told once"
    assert any(text.startswith("plain does not go through earnest") and "earnest init" in said[text][1] for text in said)
    assert lines["gemini-cli"][0][0] == "problem" and "E1010" in lines["gemini-cli"][0][1]


def test_more_tools_than_a_client_offers_is_a_problem(free_port, cli, home, scripted):
    tools = [{"name": f"t{number}", "inputSchema": {"type": "object"}} for number in range(41)]
    command, _ = scripted({"tools": tools})
    with home.config.open("a") as file:
        file.write(f"[servers.many]\ncommand = {json.dumps(command)}\n")
    (home.path / ".cursor").mkdir()
    entry = {"command": shutil.which("true"), "args": ["stdio", "many", "--client", "cursor", "--", *command]}
    (home.path / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": {"many": entry}}))
    entry["command"] = str(home.path / "earnest")
    Path(entry["command"]).symlink_to(shutil.which("true"))
    (home.path / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": {"many": entry}}))
    assert any("at most 40 tools" in text for _, text in problems(cli("doctor", "--json")))


def test_a_full_disk_and_a_clock_behind_the_receipts_are_problems(monkeypatch, tmp_path):
    at = checks.place({"HOME": str(tmp_path)}, "")
    assert [line.state for line in checks.folders(at)] == ["ok", "ok"]
    usage = shutil.disk_usage(tmp_path)._replace(free=5 << 20)
    monkeypatch.setattr(checks.shutil, "disk_usage", lambda path: usage)
    assert [line.state for line in checks.folders(at)] == ["ok", "problem"]
    assert [line.state for line in checks._clock("9999-01-01T00:00:00.000Z")] == ["problem"]


def test_a_home_that_cannot_be_written_is_a_problem_before_anything_was_made(monkeypatch, tmp_path):
    place = checks.Place({}, "", str(tmp_path / "e.toml"), False, str(tmp_path / "not" / "yet" / "default"), str(tmp_path))
    assert next(iter(checks.folders(place))).state == "ok"
    monkeypatch.setattr(checks.os, "access", lambda path, mode: False)
    told = next(iter(checks.folders(place)))
    assert told.state == "problem" and str(tmp_path) in told.text and "EARNEST_HOME" in told.remedy


def test_a_listener_for_other_machines_is_worth_a_note():
    settings = parse("/x/earnest.toml", b'[listen]\nhost = "0.0.0.0"\nport = 0\n', {})
    [line] = checks.listener(settings, None)
    assert line.state == "note" and "without TLS" in line.text


def hooked(tmp_path, host, *, program="", events=None, config="", flag="", path=None):
    """What is said where `host` has such hooks of earnest's, as (state, text, remedy) without the host's own notes."""
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    known, folder = HOSTS[host], tmp_path / "project"
    folder.mkdir(exist_ok=True)
    file = Path(path or known.settings(env, str(tmp_path)))
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = {event: command(program or program_path(env), host, event, config) for event in known.wire.events}
    items = {event: known.item(line, event) for event, line in lines.items() if event not in (events or ())}
    file.write_bytes(hook_edit.install(str(file), b"", host, items, known.version))
    told = [line for line in hooks(checks.place(env, flag), str(folder)) if line.text not in known.notes]
    assert all(line.area == f"hooks of {host}" for line in told)
    return [(line.state, line.text, line.remedy) for line in told]


@pytest.mark.parametrize("host", HOSTS)
def test_hooks_that_start_this_earnest_are_well(host, tmp_path):
    [(state, text, _)] = hooked(tmp_path, host)
    assert state == "ok" and text.startswith(f"{len(HOSTS[host].wire.events)} events go to this earnest (")
    [(state, _, _)] = hooked(tmp_path, host, config="/srv/my team/e.toml", flag="/srv/my team/e.toml")
    assert state == "ok"


@pytest.mark.parametrize("host", HOSTS)
def test_hooks_that_lack_an_event_or_start_nothing_are_problems(host, tmp_path):
    first = HOSTS[host].wire.events[0]
    [(state, text, remedy)] = hooked(tmp_path, host, events=(first,))
    assert state == "problem" and text.endswith(f"no hook for {first}") and f"`earnest hook install {host}`" in remedy
    [(state, text, remedy)] = hooked(tmp_path, host, program="/gone/bin/earnest")
    assert state == "problem" and "there is no /gone/bin/earnest" in text and f"`earnest hook install {host}`" in remedy


def test_hooks_of_another_earnest_another_configuration_and_a_project_are_told(tmp_path):
    other = tmp_path / "earnest"
    other.symlink_to(shutil.which("true"))
    [(state, text, _)] = hooked(tmp_path, "codex", program=str(other))
    assert state == "note" and f"starts {other}, and this is " in text
    [(state, text, remedy)] = hooked(tmp_path, "codex", config="/srv/e.toml")
    assert state == "note" and "is for /srv/e.toml" in text and "--config /srv/e.toml" in remedy
    project = tmp_path / "project" / ".codex" / "hooks.json"
    told = hooked(tmp_path, "codex", program="/gone/earnest", path=project)
    assert [state for state, _, _ in told] == ["note", "problem"], (
        "your own are for another configuration, the project's start nothing"
    )
    assert told[1][2].startswith(f"`earnest hook install codex --project {tmp_path}/project`")


def test_a_host_without_hooks_is_told_once_it_is_there_and_settings_that_cannot_be_read_are_a_problem(tmp_path):
    place = checks.place({"HOME": str(tmp_path), "PATH": ""}, "")
    assert list(hooks(place, str(tmp_path / "p"))) == []
    (tmp_path / ".claude").mkdir()
    [line] = hooks(place, str(tmp_path / "p"))
    assert line.state == "note" and "not judged" in line.text and "`earnest hook install claude-code`" in line.remedy
    (tmp_path / ".claude" / "settings.json").write_text("{ not json")
    [line] = hooks(place, str(tmp_path / "p"))
    assert line.state == "problem" and "E1010" in line.text and line.remedy


def test_the_command_tells_of_hooks(cli, home, free_port):
    (home.path / ".gemini").mkdir()
    assert found(cli("doctor", "--json", "--no-start"))["hooks of gemini-cli"][0][0] == "note"
