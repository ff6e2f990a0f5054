"""`earnest run` and `earnest serve`: the gateway in the foreground."""

import json
import signal
import socket
import subprocess
import time

import pytest

from servers.client import StdioClient


def test_with_nothing_configured_the_demo_servers_run_and_answer(demo, home):
    ready = demo.ready
    assert ready["demo"] and ready["address"].startswith("http://127.0.0.1:")
    found = {server["name"]: server for server in ready["servers"]}
    assert {name: server["trust"] for name, server in found.items()} == {
        "fetcher": "trusted", "file-ops": "trusted", "liar": "untrusted", "mailbox": "trusted",
    }  # fmt: skip
    assert found["file-ops"]["tools"] == 5 and found["file-ops"]["hints_by_basis"] == {"claimed": 20}
    assert found["liar"]["hints_by_basis"]["default"] > 0
    answer = demo.client().call("file-ops", "read", {"file": "recipe.txt"})
    assert not answer.is_error and "flour" in answer.text
    assert demo.client().call("liar", "lookup", {"text": "x"}).is_error
    assert not (home.path / ".local/share/earnest-demo/liar/questions.txt").exists()


def test_every_run_of_the_demo_starts_from_fresh_files_and_leaves_the_usual_instance_alone(foreground, demo, home):
    kept = home.path / ".local/share/earnest-demo/file-ops/draft.txt"
    kept.write_text("changed")
    beside = foreground("run", "--demo", "--port", "0")  # the same daemon: what runs is not swept away
    assert beside.ready["address"] == demo.ready["address"] and kept.read_text() == "changed"
    beside.end()
    demo.end()
    foreground("run", "--demo", "--port", "0")
    assert kept.read_text() != "changed"
    assert not (home.earnest / "default").exists()


def test_each_call_that_waits_is_told_as_it_comes_and_an_answer_lets_it_run(demo, calling):
    call = calling(demo.client(), "file-ops", "delete", {"file": "draft.txt"})
    ask = demo.line()["ask"]
    assert (ask["server"], ask["tool"], ask["client"]) == ("file-ops", "delete", "local")
    assert "draft.txt" in ask["text"] and not call.done()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_and_the_daemon_nobody_else_uses(demo, cli, number):
    code, said = demo.end(number)
    assert (code, said["text"]) == (0, "The daemon has ended.")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(demo.ready["address"].rpartition(":")[2])))
    assert "No daemon runs" in cli("stop", "--config", demo.ready["config"]).out


async def test_the_daemon_goes_on_for_clients_on_pipes_without_its_address(demo, home, earnest_cmd):
    client = await StdioClient.start(
        [*earnest_cmd, "stdio", "file-ops", "--config", demo.ready["config"]], env=home.env, cwd=str(home.path)
    )
    await client.open("legacy")
    code, said = demo.end()
    assert code == 0 and "goes on for 1 client on pipes" in said["text"]
    assert "flour" in json.dumps(await client.call("read", {"file": "recipe.txt"}))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(demo.ready["address"].rpartition(":")[2])))
    await client.close()


def test_another_foreground_keeps_the_address(demo, foreground):
    other = foreground("run", "--config", demo.ready["config"], "--port", "0")
    assert other.ready["address"] == demo.ready["address"]
    assert "keeps the daemon" in demo.end()[1]["text"]
    assert not other.client().call("file-ops", "list", {}).is_error
    assert other.end()[1]["text"] == "The daemon has ended."


def test_a_port_in_use_is_one_message_and_nothing_is_left(cli, home):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for words in (("run", "--demo"), ("serve",)):
            said = cli(*words, "--port", str(port))
            assert (said.code, said.out) == (2, ""), said.err
            assert said.err.startswith(f"earnest: E1540: cannot listen on 127.0.0.1:{port}: the port is in use\n")
            assert len(said.err.splitlines()) == 2
    assert "No daemon runs" in cli("stop").out
    [demo] = (home.earnest / "demo").iterdir()
    assert "No daemon runs" in cli("stop", "--config", str(demo)).out


def test_a_running_daemon_with_another_address_is_told_not_replaced(demo, cli):
    said = cli("run", "--config", demo.ready["config"], "--port", "1")
    assert said.code == 2 and "E1541" in said.err and demo.ready["address"] in said.err
    assert not demo.client().call("file-ops", "list", {}).is_error


def test_a_configuration_that_changed_is_read_again(foreground, home, scripted):
    command, _ = scripted({"tools": [{"name": "one", "inputSchema": {"type": "object"}}]}, "first")
    line = f"command = {json.dumps(command)}\n"
    home.config.write_text(f"[servers.first]\n{line}")
    first = foreground("serve", "--port", "0")
    assert first.ready["servers"] == ["first"]
    home.config.write_text(f"[servers.first]\n{line}[servers.second]\n{line}")
    second = foreground("run", "--port", "0")
    assert [server["name"] for server in second.ready["servers"]] == ["first", "second"]
    assert second.ready["address"] == first.ready["address"] and not second.ready["demo"]


def test_trust_that_was_given_to_another_command_is_told_and_not_taken_over(home, scripted, at_terminal, cli):
    tools = {"tools": [{"name": "one", "inputSchema": {"type": "object"}}]}
    for name in ("first", "second"):
        command, _ = scripted(tools, name)
        home.config.write_text(f'[servers.it]\ncommand = {json.dumps(command)}\ntrust = "trusted"\n')
        run = at_terminal("run", "--port", "0")
        said = run.expect("ready: ")
        assert ("it      trusted " in said) is (name == "first")
        assert ("it: the file's trust was given to another command" in said) is (name == "second")
    told = json.loads(cli("doctor", "--json").out)["checks"]
    assert any(line["state"] == "problem" and "given to another command" in line["text"] for line in told)


def test_a_server_that_cannot_start_is_named_and_the_others_serve(foreground, home, scripted):
    command, _ = scripted({"tools": [{"name": "one", "inputSchema": {"type": "object"}}]}, "good")
    home.config.write_text(
        f'[servers.good]\ncommand = {json.dumps(command)}\n[servers.gone]\ncommand = ["no-such-program-anywhere"]\n'
    )
    ready = foreground("run", "--port", "0").ready
    good, gone = sorted(ready["servers"], key=lambda server: "error" in server)
    assert good["tools"] == 1 and gone["error"]["code"] == "E1201" and "no-such-program-anywhere" in gone["error"]["message"]


def test_what_a_person_reads_has_the_address_and_how_to_point_a_client_at_it(home, earnest_cmd, at_terminal):
    run = at_terminal("run", "--port", "0")
    said = run.expect(r"ready: http://127\.0\.0\.1:\d+/mcp\n")
    assert "file-ops  trusted    5      hints on its own word 100%" in said
    assert "  export PATH=" in said and f"  export EARNEST_CONFIG={home.earnest}/demo/demo-" in said
    token = next((home.earnest / "demo").parent.glob("c-*/token")).read_text().strip()
    http, stdio = [json.loads(text) for text in _objects(said)]
    assert http["mcpServers"]["earnest"]["headers"] == {"Authorization": f"Bearer {token}"}
    assert http["mcpServers"]["earnest"]["url"] in said
    assert stdio["mcpServers"]["mailbox"]["args"][:2] == ["stdio", "mailbox"]
    run.process.send_signal(signal.SIGINT)
    run.expect("The daemon has ended.")
    assert run.end() == 0


def _objects(text):
    found, lines = [], []
    for line in text.split("\n"):
        if line == "{" or lines:
            lines.append(line)
        if line == "}":
            found.append("\n".join(lines))
            lines = []
    return found


def test_a_signal_while_it_starts_leaves_no_daemon(home, earnest_cmd, cli):
    process = subprocess.Popen(
        [*earnest_cmd, "serve", "--port", "0"], env=home.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    lock = home.earnest / "default" / "lock"
    while not lock.exists() and process.poll() is None:
        time.sleep(0.001)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert "No daemon runs" in cli("stop").out


def test_serve_prints_plain_lines_for_a_log(home, earnest_cmd):
    process = subprocess.Popen([*earnest_cmd, "serve", "--port", "0"], env=home.env, stdout=subprocess.PIPE, text=True)
    lines = [process.stdout.readline() for _ in range(3)]
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=60)
    token = (home.earnest / "default" / "token").read_text().strip()
    assert lines[0] == "0 servers: none\n" and lines[2].startswith("ready: http://127.0.0.1:")
    assert token not in "".join([*lines, rest]) and rest == "The daemon has ended.\n" and process.returncode == 0


def test_serve_tells_which_servers_cannot_be_started(home, earnest_cmd):
    home.config.write_text('[servers.x]\ncommand = ["true"]\nenv = { A = "${env:NOBODY_SETS_THIS}" }\n')
    process = subprocess.Popen([*earnest_cmd, "serve", "--port", "0"], env=home.env, stdout=subprocess.PIPE, text=True)
    lines: list[str] = []
    while not lines or not lines[-1].startswith("ready: "):
        lines.append(process.stdout.readline())
        assert lines[-1], lines
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert any(line.startswith("x cannot be started: E1007") and "NOBODY_SETS_THIS" in line for line in lines), lines
