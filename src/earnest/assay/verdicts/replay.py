"""A script for each contradicted claim that anyone can run: it starts the server in a fresh folder with the same fixture, makes
the calls, and prints what is another thing afterwards.

It needs Python alone and no earnest. It runs the server as it is, on the machine of who runs it, without a sandbox, and says
so.
"""

from __future__ import annotations

import base64
import io
import os
import re
import tarfile
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from earnest.assay.fixture import Fixture
from earnest.assay.model import Evidence, Report, Step

_TEMPLATE: Final = '''#!/usr/bin/env python3
"""Shows: {shown}

Claimed: {claimed}. Seen in {runs} of {of} clean sessions: {what} ({when}).
Runs the server on this machine, without a sandbox, in a new folder that is its home. Usage: python3 {name} [--yes]
"""
import base64, hashlib, io, json, os, re, shutil, subprocess, sys, tarfile, tempfile, threading, time

COMMAND = {command}
ENV = {env}
STEPS = json.loads({steps})
HOME = {home!r}
WAIT = {wait!r}
FIXTURE = "{fixture}"


def main():
    print(__doc__.split("\\n\\n")[0])
    shown = " ".join(COMMAND).replace(HOME, "NEW-FOLDER")
    if "--yes" not in sys.argv and input("Run " + shown + " now, without a sandbox? [y/N] ").lower() != "y":
        return 2
    home = tempfile.mkdtemp(prefix="replay-")
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(FIXTURE)), mode="r:xz") as archive:
        archive.extractall(home)
    there = lambda value: json.loads(json.dumps(value).replace(HOME, home))
    env = {{**os.environ, **there(ENV), "HOME": home}}
    command = there(COMMAND)
    if shutil.which("strace") and {network!r}:
        command = ["strace", "-f", "-q", "-e", "trace=connect,sendto", "-o", home + "/.strace", *command]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, cwd=home + "/workspace")
    answers, arrived = {{}}, threading.Condition()

    def listen():
        for line in server.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            with arrived:
                if "method" not in message:
                    answers[message.get("id")] = message
                arrived.notify_all()

    threading.Thread(target=listen, daemon=True).start()

    def send(message):
        server.stdin.write((json.dumps(dict(message, jsonrpc="2.0")) + "\\n").encode())
        server.stdin.flush()

    def wait(number):
        with arrived:
            arrived.wait_for(lambda: number in answers, 60)
        return answers.get(number, {{}})

    hello = {{"protocolVersion": "2025-11-25", "capabilities": {{}}, "clientInfo": {{"name": "replay", "version": "1"}}}}
    send({{"id": 0, "method": "initialize", "params": hello}})
    wait(0)
    send({{"method": "notifications/initialized"}})
    time.sleep(0.5)
    before = seen(home)
    results = []
    for number, step in enumerate(STEPS, 1):
        arguments = there(step["arguments"])
        for path, source, place in step["refs"]:
            put(arguments, path, results[source], place)
        if number == len(STEPS):
            before_last = seen(home)
        for copy in range(step.get("times", 1)):
            params = {{"name": step["tool"], "arguments": arguments}}
            send({{"id": "again" if copy else number, "method": "tools/call", "params": params}})
        answer = wait(number)
        results.append(parsed(answer))
        print("->", step["tool"], json.dumps(arguments)[:300])
        print("<-", json.dumps(answer.get("result", answer.get("error")))[:300])
    time.sleep(WAIT)
    server.stdin.close()
    try:
        server.wait(5)
    except subprocess.TimeoutExpired:
        server.terminate()
    after = seen(home)
    print("\\nWhat is another thing now than before the last call:")
    changed = sorted(path for path in before_last.keys() | after.keys() if before_last.get(path) != after.get(path))
    for path in changed:
        what = "created" if path not in before_last else "deleted" if path not in after else "changed"
        print("  ", what, path)
    trace = home + "/.strace"
    if os.path.exists(trace):
        lines = [line for line in open(trace) if "AF_INET" in line]
        print("Connections:", *lines[:20], sep="\\n   ")
    print("The folder stays for you to look at:", home)
    return 0


def put(arguments, path, result, place):
    value = result
    try:
        if place and place[0] == "~":
            value = re.findall(place[1].replace("_", "[_ ]") + r"\\W{{0,4}}([\\w./-]+)", str(result), re.I)[place[2]]
        else:
            for part in place:
                value = value[part]
        for part in path[:-1]:
            arguments = arguments[part]
        arguments[path[-1]] = value
    except (KeyError, IndexError, TypeError):
        pass


def parsed(answer):
    result = answer.get("result") or {{}}
    if result.get("structuredContent") is not None:
        return result["structuredContent"]
    text = "\\n".join(part.get("text", "") for part in result.get("content") or [])
    try:
        return json.loads(text)
    except ValueError:
        return text


def seen(home):
    found = {{}}
    for folder, folders, files in os.walk(home):
        for name in files:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and name != ".strace":
                mode = oct(os.stat(path).st_mode & 0o7777)
                found[os.path.relpath(path, home)] = mode + hashlib.sha256(open(path, "rb").read()).hexdigest()
    return found


sys.exit(main())
'''


def script(report: Report, tool: str, hint: str, claimed: str, one: Evidence, fixture: Fixture, env: Mapping[str, str]) -> str:
    """The text of one script. `report.command` is the command as it was started inside."""
    steps = [_step(step) for step in one.steps]
    if one.nature and steps and len(one.steps) > 1 and one.steps[-1] == one.steps[-2] and hint == "read_only":
        steps[-1]["times"] = 2
    return _TEMPLATE.format(
        shown=_plain(f"{report.server}/{tool}: {hint} is contradicted"),
        claimed=_plain(claimed),
        runs=one.runs,
        of=one.of,
        what=_plain(one.what),
        when=one.when,
        name=name_of(tool, hint),
        command=msgspec.json.encode(list(report.command)).decode(),
        env=msgspec.json.encode({k: v for k, v in env.items() if k not in ("HOME", "PATH", "TMPDIR")}).decode(),
        steps=repr(msgspec.json.encode(steps).decode()),
        home=fixture.home,
        wait={"call": 0.5, "later": 4.0, "exit": 0.5}[one.when],
        network=one.place == "network",
        fixture=_packed(fixture.source),
    )


def name_of(tool: str, hint: str) -> str:
    """The file's name: nothing of a server's but letters, digits and `-`."""
    return f"{re.sub(r'[^A-Za-z0-9]+', '-', tool)[:60].strip('-') or 'tool'}-{hint.replace('_', '-')}.py"


def write(folder: str, report: Report, fixture: Fixture, env: Mapping[str, str]) -> Report:
    """Write a script for each contradicted claim into a folder, and tell in the report where they are."""
    tools = []
    for tool in report.tools:
        hints = dict(tool.hints)
        for hint, found in hints.items():
            if found.verdict != "CONTRADICTED" or not found.evidence or not found.evidence[0].steps:
                continue
            os.makedirs(folder, exist_ok=True)
            path = os.path.join(folder, name_of(tool.name, hint))
            first, *rest = found.evidence
            with open(path, "w", encoding="utf-8") as file:
                file.write(script(report, tool.name, hint, f"{hint} = {str(found.claimed).lower()}", first, fixture, env))
            os.chmod(path, 0o755)
            hints[hint] = msgspec.structs.replace(found, evidence=(msgspec.structs.replace(first, replay=path), *rest))
        tools.append(msgspec.structs.replace(tool, hints=hints))
    return msgspec.structs.replace(report, tools=tuple(tools))


def _step(step: Step) -> dict[str, Any]:
    refs: Sequence[Any] = [[list(path), ref.step, list(ref.path)] for path, ref in step.refs]
    return {"tool": step.tool, "arguments": dict(step.arguments), "refs": refs}


def _plain(text: str) -> str:
    """Words of a server's, so that they end no string and break no line."""
    return re.sub(r"[^\x20-\x7e]+", " ", text).replace("\\", "/").replace('"', "'")[:300]


def _packed(source: str) -> str:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz") as archive:
        for name in sorted(os.listdir(source)):
            archive.add(os.path.join(source, name), arcname=name)
    return base64.b64encode(buffer.getvalue()).decode()
