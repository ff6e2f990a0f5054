"""The command line of MCP Inspector, one process for each request; see README.md. The second argument is its program."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path


def main(given, program):
    """Entry point."""
    if "stdio" in given:
        command, *args = given["stdio"]["command"]
        server = {"type": "stdio", "command": command, "args": args, "env": given["stdio"]["env"], "cwd": given["stdio"]["cwd"]}
    else:
        headers = {"Authorization": f"Bearer {given['http']['token']}"}
        server = {"type": "streamable-http", "url": given["http"]["url"], "headers": headers}
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.json"
        config.write_text(json.dumps({"mcpServers": {"one": server}}))

        def run(*words):
            whole = [*program, "--cli", "--config", str(config), "--server", "one", *words]
            done = subprocess.run(whole, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
            start = done.stdout.find("{")
            if start < 0:
                raise SystemExit(f"{' '.join(words)}: {done.returncode}: {done.stdout}{done.stderr}")
            return json.loads(done.stdout[start:])

        tools = run("--method", "tools/list")["tools"]
        results = []
        for name, arguments in given["calls"]:
            pairs = [word for key, value in arguments.items() for word in ("--tool-arg", f"{key}={value}")]
            results.append(run("--method", "tools/call", "--tool-name", name, *pairs))
    print(json.dumps({"tools": tools, "results": results}))


main(json.loads(sys.argv[1]), json.loads(sys.argv[2]))
