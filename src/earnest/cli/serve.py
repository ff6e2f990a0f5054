"""`earnest serve`: the gateway for service managers: no demo, no prompts, plain lines."""

from __future__ import annotations

from typing import Any

from earnest.cli.daemon import output
from earnest.cli.foreground import Signals, Told, close_listener, open_listener, tell_lost
from earnest.cli.options import Config, Json
from earnest.cli.run import Host, Port, print_line
from earnest.cli.style import several


def serve(config: Config = "", host: Host = None, port: Port = None, as_json: Json = False) -> int:
    """Serve HTTP until SIGTERM: `run` for service managers. Servers start with their first call; nothing is asked here.

    The token of the client `local` is in the file that is printed; every request needs one. Asks wait in the queue
    for `earnest approvals`.

    \b
    Examples:
      earnest serve                                       at the address of [listen], else 127.0.0.1:7573
      earnest serve --config /etc/earnest.toml --port 8080
      earnest serve --host 0.0.0.0                        for other machines; put TLS in front
    """
    terminal = output()
    with Signals() as signals:
        opened = open_listener(config, host, port)

        def ready() -> None:
            if as_json:
                facts: dict[str, Any] = {"address": opened.address, "token_file": opened.token_file}
                facts["servers"] = list(opened.servers)
                facts |= {"broken": opened.broken} if opened.broken else {}
                facts |= {"store_lost": opened.lost} if opened.lost else {}
                print_line({"ready": facts})
            else:
                tell_lost(terminal, opened)
                terminal.line(f"{several(len(opened.servers), 'server')}: {', '.join(opened.servers) or 'none'}")
                for name, why in sorted(opened.broken.items()):
                    terminal.line(f"{name} cannot be started: {why}", "bad")
                terminal.line(f"the token is in {opened.token_file}")
                terminal.line(f"ready: {opened.address}/mcp")

        def asked(ask: dict[str, Any]) -> None:
            if as_json:
                print_line({"ask": ask})
            else:
                terminal.line(f"asked: {ask['id']} {ask['server']}/{ask['tool']}")

        try:
            signals.hold(opened, ready, asked)
        except Told as told:
            ended = str(told)
        return _end(as_json, ended, close_listener(config))


def _end(as_json: bool, signal: str, text: str) -> int:
    if as_json:
        print_line({"ended": {"signal": signal, "text": text}})
    else:
        output().line(text)
    return 0
