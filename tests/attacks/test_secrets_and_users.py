"""Secrets of a configured server stay between its configuration and itself; other users of the machine get nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from attacks.rig import READ, Rig, refused, tool

SECRET = "s3cr3t-0f-th3-s3rv3r"
SNOOP = """
import encodings.idna, json, os, socket, sys, urllib.request
os.setgroups([]); os.setgid(65534); os.setuid(65534)
instance, address, daemon = sys.argv[1:]
got = []
for name in ("token", "tokens.json", "store.db", "seal.key", "signing.key", "daemon.log", "http", "receipts", "payloads", "."):
    path = os.path.join(instance, name)
    try:
        os.listdir(path) if name in ("receipts", "payloads", ".") else open(path, "rb").read()
        got.append(name)
    except OSError:
        pass
try:
    socket.socket(socket.AF_UNIX).connect(os.path.join(instance, "s"))
    got.append("socket")
except OSError:
    pass
for name in ("environ", "mem", "maps", "fd", "cwd"):
    path = f"/proc/{daemon}/{name}"
    try:
        os.listdir(path) if name == "fd" else os.readlink(path) if name == "cwd" else open(path, "rb").read(1)
        got.append(path)
    except OSError:
        pass
body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
for headers in ({}, {"Authorization": "Bearer x"}):
    request = urllib.request.Request(address + "/mcp", body, {"Content-Type": "application/json", **headers})
    try:
        urllib.request.urlopen(request, timeout=60)
        got.append("http")
    except OSError:
        pass
print(json.dumps(got))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user takes root")
async def test_another_user_of_the_machine_gets_nothing(rig: Rig):
    rig.server("notes", {"tools": [tool("peek", **READ)]}, trust="trusted")
    client = await rig.stdio("notes")
    await client.call("peek")
    address, _ = await rig.person.listening()
    # Nothing but earnest's own modes stands between: the folders above are open.
    os.chmod(rig.home.path, 0o755)
    words = [sys.executable, "-S", "-c", SNOOP, str(rig.instance), address, str(await rig.daemon())]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []


async def test_a_secret_of_a_server_is_nowhere_but_in_the_server(rig: Rig, tmp_path: Path):
    secret_file = tmp_path / "secret.txt"
    secret_file.write_text(SECRET + "-file\n")
    rig.env["TOKEN_OF_NOTES"] = SECRET + "-env"
    told = {"content": [{"type": "text", "text": f"I was given {SECRET}-env and {SECRET}-file"}]}
    calls = {"boom": [{"stderr": "starting\n"}, {"exit": 3}], "tell": [{"result": told}]}
    record = rig.server(
        "notes",
        {"tools": [tool("peek", **READ), tool("tell", **READ), tool("boom", **READ), tool("wipe")], "calls": calls},
        trust="trusted",
        more=f'env = {{ A = "${{env:TOKEN_OF_NOTES}}", B = "${{file:{secret_file}}}", C = "{SECRET}-plain" }}\n',
    )
    client = await rig.stdio("notes")
    assert not refused(await client.call("peek"))
    assert not refused(await client.call("tell"))
    assert refused(await client.call("boom"))
    assert refused(await client.call("wipe"))
    started = record.events("start")[0]["env"]
    assert {started["A"], started["B"].strip(), started["C"]} == {SECRET + "-env", SECRET + "-file", SECRET + "-plain"}
    said = [b"".join(line for line in client.lines if b"I was given" not in line), client.stderr]
    assert any(SECRET.encode() in line for line in client.lines), "the server told its client, which is theirs to settle"
    for op in ("status", "tools", "conversations", "approvals", "labels", "pins"):
        said.append(json.dumps(await rig.person(op)).encode())
    said.append(json.dumps(await rig.person("trust-preview", server="notes")).encode())
    await rig.person("checkpoint")
    assert not [text for text in said if SECRET.encode() in text]
    held = [path for path in rig.instance.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert held == []
    own = os.getpid()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != own:
            try:
                assert SECRET.encode() not in (entry / "cmdline").read_bytes(), entry
            except OSError:
                continue


async def test_a_broken_reference_is_told_without_the_values_of_others(rig: Rig):
    rig.server("notes", {"tools": []}, more=f'env = {{ A = "{SECRET}", B = "${{env:NOT_SET_ANYWHERE}}" }}\n')
    shim = await rig.shim("notes")
    assert await shim.wait() != 0
    assert b"NOT_SET_ANYWHERE" in shim.stderr and SECRET.encode() not in shim.stderr
    assert SECRET not in rig.log()


TELLS = """
import json, os, sys
secret, where = os.environ["GIVEN"], sys.argv[1]
if where == "opening":
    print("boom", secret, file=sys.stderr)
    print("out", secret, flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked and asked["method"] != "ping":
        answer = {"code": -32000, "message": "refused " + secret}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": answer}), flush=True)
    if where == "opening":
        sys.exit(3)
"""


@pytest.mark.parametrize("where", ["opening", "answer"])
async def test_a_server_that_prints_its_secret_is_not_quoted_to_anybody(rig: Rig, run_bounded, earnest_cmd, where: str):
    program = rig.home.path / "tells.py"
    program.write_text(TELLS)
    command = json.dumps([sys.executable, str(program), where])
    rig.add(f'[servers.notes]\ncommand = {command}\nenv = {{ GIVEN = "{SECRET}" }}\n')
    client = await rig.shim("notes")
    answer = await client.request("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}})
    told = answer["error"]["message"]
    assert "server 'notes'" in told and "boom" not in told and "refused" not in told and SECRET not in told
    assert "daemon's log" in told
    shown = {}
    for words in (["probe", "notes"], ["doctor"], ["tools"], ["tools", "notes", "--json"]):
        done = run_bounded([*earnest_cmd, *words], rig.env)
        shown[words[0]] = done.out + done.err
        assert SECRET not in shown[words[0]], words
    assert ("boom [redacted]" if where == "opening" else "refused [redacted]") in shown["probe"]
    held = [path for path in rig.instance.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert held == []
    assert ("boom [redacted]" if where == "opening" else "refused [redacted]") in rig.log()


async def test_a_server_gets_the_environment_of_no_other(rig: Rig):
    rig.env["TOKEN_OF_NOTES"] = SECRET
    rig.server("notes", {"tools": [tool("peek", **READ)]}, trust="trusted", more='env = { A = "${env:TOKEN_OF_NOTES}" }\n')
    other = rig.server("other", {"tools": [tool("peek", **READ)]}, trust="trusted")
    for name in ("notes", "other"):
        client = await rig.stdio(name)
        assert not refused(await client.call("peek"))
    assert SECRET not in json.dumps(other.events("start")[0]["env"])
