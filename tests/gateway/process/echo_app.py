"""A small application for the tests, put in the place of the real one: echoes calls, notes each effect in a
file.

Its configuration is JSON: `idle_s`, `effects` (a file that gets a line for each call that took effect),
`fail` (raise while building), `slow_start_s`, `child` (a command started once and noted as a child).
"""

import asyncio
import json
import os
import subprocess
import time

from earnest.core.errors import EarnestError


class Echo:
    def __init__(self, context):
        self.context = context
        try:
            with open(context.config, encoding="utf-8") as f:
                self.settings = json.load(f)
        except FileNotFoundError:
            self.settings = {}
        if self.settings.get("fail") == "earnest":
            raise EarnestError("E1001", "the configuration is wrong on purpose.", "Do not.", exit_code=2)
        if self.settings.get("fail") == "crash":
            raise RuntimeError("broken on purpose")
        if self.settings.get("fail") == "exit":
            os._exit(9)
        self.idle_s = self.settings.get("idle_s", 900.0)
        self.tasks = set()
        self.effects = -1
        if "effects" in self.settings:
            self.effects = os.open(self.settings["effects"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.peers = []
        self.events = []

    @property
    def ops(self):
        return {"whoami": self.whoami, "count": self.count, "boom": self.boom, "hang": self.hang, "loop": self.loop}

    async def whoami(self, asked, peer):
        return {"pid": peer.pid, "uid": peer.uid, "by_model": peer.by_model, "chain": [p.pid for p in peer.chain]}

    async def count(self, asked, peer):
        for i in range(asked["to"]):
            await peer.reply(i)
        return "done"

    async def boom(self, asked, peer):
        raise EarnestError("E1601", "no.", "Ask a person.", exit_code=1)

    async def hang(self, asked, peer):
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            self.events.append("cancelled")
            raise

    async def loop(self, asked, peer):
        return {"loop": type(asyncio.get_running_loop()).__module__, "events": self.events, "env": dict(os.environ),
                "cwd": os.getcwd(), "sid": os.getsid(0), "fds": sorted(os.listdir("/proc/self/fd"))}

    async def start(self):
        await asyncio.sleep(self.settings.get("slow_start_s", 0))
        if "child" in self.settings:
            child = subprocess.Popen(self.settings["child"], start_new_session=True)
            self.context.children.add(child.pid)

    def busy(self):
        return False

    async def stop(self):
        for task in self.tasks:
            task.cancel()

    def on_stdio(self, peer):
        if peer.who.name == "unknown":
            raise EarnestError("E1201", "there is no server 'unknown'.", "See `earnest tools`.")
        self.peers.append(peer)
        peer.on_message = lambda line: self.message(peer, line)
        peer.on_closed = lambda why: self.events.append("closed: " + why)
        peer.on_pressure = lambda high: self.events.append(f"pressure {high}")

    def on_hook(self, peer):
        if peer.event == b"die":
            os._exit(9)
        peer.finish(b"out:" + peer.event.upper(), b"err", 7)

    def message(self, peer, line):
        message = json.loads(line)
        method, id = message.get("method"), message.get("id")
        params = message.get("params") or {}
        raw = json.dumps(id).encode()
        if method == "notifications/initialized":
            peer.ready()
            self.note(f"initialized {peer.epoch}")
        if id is None or method is None:
            return
        if method == "die-before" and peer.epoch == 1:
            os._exit(9)
        try:
            peer.begin(raw, line if method == "initialize" else b"")
        except EarnestError as e:
            error = {"code": -32600, "message": str(e)}
            peer.send(json.dumps({"jsonrpc": "2.0", "id": id, "error": error}).encode())
            return
        if method == "initialize":
            self.note(f"initialize {peer.epoch}")
        if method == "die-now":
            self.note("did die-now")
            os._exit(9)
        if method == "broken":
            raise RuntimeError("broken on purpose")
        if params.get("at_once"):
            self.answer(peer, raw, id, method, params)
            return
        delay = params.get("delay", 0)
        if delay == "never":
            return
        asyncio.get_running_loop().call_later(delay, self.answer, peer, raw, id, method, params)

    def note(self, text):
        if self.effects >= 0:
            os.write(self.effects, (text + "\n").encode())

    def answer(self, peer, raw, id, method, params):
        if "tag" in params:
            self.note(f"did {params['tag']}")
        if params.get("die"):
            os._exit(9)
        result = {"method": method, "epoch": peer.epoch, "daemon": os.getpid(), "time": time.time()}
        if method == "who":
            who = peer.who
            result |= {"name": who.name, "client": who.client, "argv": list(who.argv), "cwd": who.cwd, "pid": who.pid,
                       "uid": who.uid, "start": who.start, "host": who.host and who.host.pid,
                       "env": {k: v.encode("utf-8", "surrogateescape").hex() for k, v in who.env.items()}}
        if method == "say":
            os.write(peer.stderr_fd, b"from the server\n")
        result["text"] = "x" * params.get("size", 0)
        peer.send(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode(), raw)


def build(context, hooks=None):
    return Echo(context)
