"""`earnest run`: the gateway in the foreground, with a word about everything that is there and each call that waits."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections import Counter
from typing import Annotated, Any

import typer

from earnest.cli.daemon import output, running
from earnest.cli.demo_home import data_folder, prepare
from earnest.cli.foreground import Opened, Signals, Told, close_listener, look, open_listener, program, tell_lost
from earnest.cli.options import Config, Json
from earnest.cli.style import Terminal
from earnest.core.errors import EarnestError
from earnest.core.profile import NAMES
from earnest.shim import paths

Host = Annotated[str | None, typer.Option("--host", metavar="ADDRESS", help="Where to listen.", show_default="127.0.0.1")]
Port = Annotated[int | None, typer.Option("--port", min=0, max=65535, help="0 takes a free one.", show_default="7573")]
_Demo = Annotated[bool, typer.Option("--demo", help="The demo servers, whatever is configured.")]


def run(config: Config = "", host: Host = None, port: Port = None, demo: _Demo = False, as_json: Json = False) -> int:
    """Start the gateway, and stay to tell what happens. Ctrl-C ends it.

    Without a configuration, it runs four demo servers, so that there is something to try: files, a mailbox, a fetcher,
    and one whose tools are not what they claim.

    \b
    Examples:
      earnest run                          what ~/.config/earnest/earnest.toml says, at 127.0.0.1:7573
      earnest run --config team.toml       another configuration, with a daemon of its own
      earnest run --demo --port 0          the demo servers, on a free port
    """
    demo = demo or _nothing(config)
    if demo:
        config = prepare(os.path.join(paths.home(os.environ), "demo"), data_folder(os.environ), _in_use)
    terminal = output()
    with Signals() as signals:
        opened = open_listener(config, host, port)
        try:
            servers = signals.during(lambda: look(config, opened.servers))
            if as_json:
                signals.hold(
                    opened, lambda: print_line(ready_facts(opened, servers, demo)), lambda ask: print_line({"ask": ask})
                )
            else:
                signals.hold(opened, lambda: show(terminal, opened, servers, demo), lambda ask: tell(terminal, opened, ask))
        except Told as told:
            ended = str(told)
        return _ended(terminal, as_json, ended, close_listener(config))


def _nothing(config: str) -> bool:
    path, named = paths.config_path(os.environ, config)
    return not named and not os.path.exists(path)


def _in_use(config: str) -> bool:
    control = running(config)
    if control is not None:
        control.close()
    return control is not None


def _ended(terminal: Terminal, as_json: bool, signal: str, text: str) -> int:
    if as_json:
        print_line({"ended": {"signal": signal, "text": text}})
    else:
        terminal.line()
        terminal.line(text)
    return 0


def print_line(value: Any) -> None:
    """One line of JSON, at once."""
    print(json.dumps(value, ensure_ascii=False), flush=True)


def routes(opened: Opened) -> list[tuple[str, str]]:
    """Addresses, each with what is behind it."""
    found = [(f"{opened.address}/mcp", "all servers, names prefixed")]
    return found + [(f"{opened.address}/s/{name}/mcp", f"{name} alone, names untouched") for name in opened.servers]


def http_client(opened: Opened, token: str) -> dict[str, Any]:
    """What a client's configuration says for the whole gateway over HTTP."""
    headers = {"Authorization": f"Bearer {token}"}
    return {"mcpServers": {"earnest": {"type": "http", "url": f"{opened.address}/mcp", "headers": headers}}}


def stdio_client(opened: Opened) -> dict[str, Any]:
    """The same for each server on pipes."""
    flag = ["--config", opened.config] if opened.named else []
    return {"mcpServers": {name: {"command": program(), "args": ["stdio", name, *flag]} for name in opened.servers}}


def ready_facts(opened: Opened, servers: dict[str, dict[str, Any]], demo: bool) -> dict[str, Any]:
    """The first line of `run --json`."""
    return {
        "ready": {
            "address": opened.address,
            "routes": [{"url": url, "what": what} for url, what in routes(opened)],
            "config": opened.config,
            "instance": opened.instance,
            "token_file": opened.token_file,
            "demo": demo,
            "servers": [server_facts(name, found) for name, found in servers.items()],
            "clients": {"stdio": stdio_client(opened)},
        }
    }


def server_facts(name: str, found: dict[str, Any]) -> dict[str, Any]:
    """Name, trust, tools, and on what basis their hints are known; or the error."""
    error = found.get("error")
    if isinstance(error, EarnestError):
        return {"name": name, "error": {"code": error.code, "message": error.message, "remedy": error.remedy}}
    line = found["server"]
    bases = Counter(tool["profile"][hint]["basis"] for tool in found["tools"] for hint in NAMES[:4])
    return {
        "name": name,
        "trust": line["trust"],
        "trust_source": line["trust_source"],
        "display": line["display"],
        "contained": line.get("contained", ""),
        "tools": len(found["tools"]),
        "waiting_pins": sum(tool["pin_state"] != "holds" for tool in found["tools"]),
        "hints_by_basis": dict(bases.most_common()),
        "assayed": sum(bool(tool.get("assayed")) for tool in found["tools"]),
        "violated": sum("violated" in tool.get("assayed", {}).values() for tool in found["tools"]),
    }


def known(facts: dict[str, Any]) -> str:
    """How well a server is known, in words."""
    if "error" in facts:
        return f"{facts['error']['code']}: {facts['error']['message']}"
    words = {
        "default": "assumed at their worst",
        "claimed": "on its own word",
        "pack": "from earnest's pack",
        "observed": "observed",
        "enforced": "enforced",
        "operator": "by your word",
    }
    total = sum(facts["hints_by_basis"].values())
    said = [f"{words.get(basis, basis)} {round(100 * n / total)}%" for basis, n in facts["hints_by_basis"].items()]
    if facts["assayed"]:
        broken = f", {facts['violated']} of them against their word" if facts["violated"] else ""
        said.append(f"{facts['assayed']} of {facts['tools']} tools assayed{broken}")
    if facts["waiting_pins"]:
        said.append(f"{facts['waiting_pins']} changed or new, see `earnest pins`")
    inside = f"; {facts['contained']}" if facts.get("contained") else ""
    return ("hints " + ", ".join(said) if said else "no tools") + inside


def show(terminal: Terminal, opened: Opened, servers: dict[str, dict[str, Any]], demo: bool) -> None:
    """Everything a person needs to point a client here, and the line that says it is ready."""
    tell_lost(terminal, opened)
    if demo:
        terminal.line("These are demo servers. `earnest init` puts earnest before your own.")
        terminal.line()
    facts = [server_facts(name, found) for name, found in servers.items()]
    if facts:
        rows = [(f["name"], f.get("trust", "-"), str(f.get("tools", "-")), known(f)) for f in facts]
        terminal.table(("server", "trust", "tools", "known"), rows)
        for f in facts:
            if f.get("trust_source", "").startswith("the file's trust was given to another"):
                terminal.line(f"{f['name']}: {f['trust_source']}", "warn")
                terminal.line(f"  `earnest trust {f['name']} --trusted{opened.flag}` gives it to this one.")
    else:
        terminal.line(f"No servers in {opened.config}.")
        terminal.line("Those of your clients come through `earnest stdio` (see `earnest init`).")
        terminal.line("`earnest run --demo` has some to try.")
    terminal.line()
    for url, what in routes(opened):
        terminal.line(f"  {url}  {what}")
    terminal.line()
    terminal.line("A client over HTTP:", "strong")
    # A token belongs on a screen, where somebody asked for it, and in no log.
    token = _token(opened) if sys.stdout.isatty() else f"(the line in {opened.token_file})"
    terminal.lines(json.dumps(http_client(opened, token), indent=2))
    if opened.servers:
        terminal.line("A client that starts its servers:", "strong")
        terminal.lines(json.dumps(stdio_client(opened), indent=2))
    terminal.line()
    if setup := elsewhere(opened):
        terminal.line("In another terminal, so that every command means this gateway:", "strong")
        for line in setup:
            terminal.line(f"  {line}")
        terminal.line()
    terminal.line(f"Receipts: `earnest receipts{opened.flag}`. Calls that wait for you are told here. Ctrl-C ends.")
    terminal.line(f"ready: {opened.address}/mcp", "good")


def elsewhere(opened: Opened) -> list[str]:
    """What to type in another shell before commands without a path or `--config` mean this gateway; nothing if they do."""
    lines = []
    found = shutil.which("earnest")
    if found is None or os.path.realpath(found) != os.path.realpath(program()):
        lines.append(f'export PATH={shlex.quote(os.path.dirname(program()))}:"$PATH"')
    if opened.named:
        lines.append(f"export EARNEST_CONFIG={shlex.quote(opened.config)}")
    return lines


def _token(opened: Opened) -> str:
    with open(opened.token_file, encoding="ascii") as file:
        return file.read().strip()


def tell(terminal: Terminal, opened: Opened, ask: dict[str, Any]) -> None:
    """One call that waits, and how to answer it."""
    what = ask["tool"] if ask["method"] == "tools/call" else f"{ask['method']} {ask['tool']}"
    terminal.line()
    terminal.line(f"{ask['server']}/{what} waits for you (client {ask['client']}):", "warn")
    for _, text, verdict in ask["reasons"]:
        if verdict != "allow":
            terminal.prose(f"  {text}", under="    ")
    terminal.line(f"  see it all and answer:  earnest approvals{opened.flag}")
    terminal.line(f"  or at once:             earnest approvals answer {ask['id']} once{opened.flag}   (or: no)")
