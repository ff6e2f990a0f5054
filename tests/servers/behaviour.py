"""What a scripted MCP server does, apart from how its bytes travel. Standard library only; starts fast.

A script is one JSON object; README.md beside this file lists its keys and the verbs of its steps. The
transports (`scripted.py` over stdio, `scripted_http.py` over HTTP) hand each message to `Server.accept`
with a channel to answer on.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
META = "io.modelcontextprotocol/"
Json = dict[str, Any]


class Channel(Protocol):
    """Where the messages that belong to one request go."""

    def write(self, text: str) -> None:
        """Send one message."""

    def raw(self, text: str) -> None:
        """Send exactly this text: on stdio bytes of the pipe, on HTTP bytes of the event stream."""

    def gone(self) -> bool:
        """Whether the other side closed what it would read the answer from."""


def dump(value: Any) -> str:
    """Compact JSON on one line."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


class Call:
    """One request in flight."""

    def __init__(self, message: Json, channel: Channel) -> None:
        self.message = message
        self.channel = channel
        self.id: Any = message.get("id")
        self.method: str = message["method"]
        self.params: Json = message.get("params") or {}
        self.meta: Json = self.params.get("_meta") or {}
        self.modern = META + "protocolVersion" in self.meta
        self.cancelled = threading.Event()
        self.asked: Json = {}

    def fill(self, text: str) -> str:
        """Put this call's id and progress token into a raw text."""
        return text.replace("$ID", dump(self.id)).replace("$TOKEN", dump(self.meta.get("progressToken")))


class Record:
    """A file of what happened, one JSON object a line, each in one write so that a kill loses none."""

    def __init__(self, path: str | None) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600) if path else -1

    def add(self, event: str, **details: Any) -> None:
        """Write one event down."""
        if self._fd >= 0:
            line = dump({"event": event, "at": time.monotonic(), "pid": os.getpid(), **details}) + "\n"
            os.write(self._fd, line.encode("utf-8", "surrogatepass"))


class Server:
    """The state of one scripted server and the meaning of its script."""

    def __init__(self, script: Json) -> None:
        self.script = script
        self.era: str = script.get("era", "dual")
        self.record = Record(script.get("record"))
        self.lists: dict[str, list[Json]] = {
            "tools": list(script.get("tools", [])),
            "resources": list(script.get("resources", [])),
            "resourceTemplates": list(script.get("templates", [])),
            "prompts": list(script.get("prompts", [])),
        }
        self.listed = 0
        self.counts: dict[str, int] = {}
        self.watched: set[str] = set()
        self.flying: dict[str, Call] = {}
        self.waiting: dict[str, tuple[threading.Event, list[Json]]] = {}
        self.legacy_listeners: list[Channel] = []
        self.subscriptions: list[Call] = []
        self.started = False
        self.asked = 0
        self.lock = threading.RLock()
        self.verbs: dict[str, Callable[[Call, Any], None]] = {
            name.removeprefix("do_"): getattr(self, name) for name in dir(self) if name.startswith("do_")
        }
        self._check(script)

    # Reading the script

    def _check(self, script: Json) -> None:
        groups = ("calls", "contents", "messages", "methods", "on")
        plans = [plan for group in groups for plan in script.get(group, {}).values()]
        for plan in [*plans, script.get("start", [])]:
            self._check_plan(plan)

    def _check_plan(self, plan: Any) -> None:
        if isinstance(plan, dict) and "sequence" in plan:
            for part in plan["sequence"]:
                self._check_plan(part)
            return
        for step in plan if isinstance(plan, list) else [plan]:
            for verb, value in step.items():
                if verb not in self.verbs:
                    raise SystemExit(f"scripted server: unknown verb {verb!r}; known: {', '.join(sorted(self.verbs))}")
                if verb == "retry":
                    self._check_plan(value["first"])
                    self._check_plan(value["then"])

    def _plan(self, key: str, plan: Any) -> list[Json]:
        """The steps for this time; a sequence gives each time its own, and the last one from then on."""
        if isinstance(plan, dict) and "sequence" in plan:
            with self.lock:
                nth = self.counts[key] = self.counts.get(key, 0) + 1
            plan = plan["sequence"][min(nth, len(plan["sequence"])) - 1]
        return plan if isinstance(plan, list) else [plan]

    # Messages

    def handle(self, text: str, channel: Channel) -> None:
        """Take one message and do all that follows from it; returns when its answer is out."""
        work = self.accept(text, channel)
        if work:
            work()

    def accept(self, text: str, channel: Channel) -> Callable[[], None] | None:
        """Take one message; a request can be cancelled from here on, its work is what is returned."""
        self.record.add("message", text=text)
        try:
            message = json.loads(text)
        except ValueError:
            channel.write('{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}')
            return None
        if "method" not in message:
            self._answered(message)
            return None
        call = Call(message, channel)
        if "id" not in message:
            self._notified(call)
            return None
        self.flying[dump(call.id)] = call
        return lambda: self._requested(call)

    def _answered(self, message: Json) -> None:
        waiting = self.waiting.pop(dump(message.get("id")), None)
        self.record.add("answer", id=message.get("id"), known=waiting is not None, message=message)
        if waiting:
            waiting[1].append(message)
            waiting[0].set()

    def _notified(self, call: Call) -> None:
        if call.method == "notifications/cancelled":
            flying = self.flying.get(dump(call.params.get("requestId")))
            self.record.add("cancelled", id=call.params.get("requestId"), known=flying is not None)
            if flying:
                flying.cancelled.set()
        if call.method == "notifications/initialized":
            self._start(call)
        if call.method in self.script.get("on", {}):
            self._apart(call, self._plan(call.method, self.script["on"][call.method]))

    def _start(self, call: Call) -> None:
        """Run the opening steps once, when a client is known to listen."""
        with self.lock:
            first, self.started = not self.started, True
        if first and "start" in self.script:
            self._apart(call, self._plan("start", self.script["start"]))

    def _apart(self, call: Call, steps: list[Json]) -> None:
        """Run steps that belong to no request beside all else, so that they may wait for an answer."""
        threading.Thread(target=self.run, args=(call, steps), daemon=True).start()

    def _requested(self, call: Call) -> None:
        key = dump(call.id)
        try:
            if call.method == "tools/call":
                self.record.add("call", name=call.params.get("name"), id=call.id, arguments=call.params.get("arguments"))
            planned = self.script.get("methods", {}).get(call.method)
            if planned is not None:
                self.run(call, self._plan(call.method, planned))
            else:
                self._built_in(call)
        finally:
            if self.flying.get(key) is call:
                del self.flying[key]

    def _built_in(self, call: Call) -> None:
        if refusal := self._wrong_era(call):
            self.do_error(call, refusal)
            return
        if call.modern and call.method != "server/discover":
            self._start(call)
        match call.method:
            case "initialize":
                self._initialize(call)
            case "server/discover":
                versions = [MODERN] if self.era == "modern" else [MODERN, LEGACY]
                self.do_result(call, {"supportedVersions": versions, **self._about(), **self._cache()})
            case "resources/subscribe" | "resources/unsubscribe":
                (self.watched.add if call.method.endswith("/subscribe") else self.watched.discard)(call.params.get("uri"))
                self.do_result(call, {})
            case "ping" | "logging/setLevel":
                self.do_result(call, {})
            case "tools/list":
                tools = self.lists["tools"]
                self._flip()
                self._list(call, "tools", tools)
            case "resources/list":
                self._list(call, "resources")
            case "resources/templates/list":
                self._list(call, "resourceTemplates")
            case "prompts/list":
                self._list(call, "prompts")
            case "tools/call":
                self._named(call, "calls", "name", "tools", [{"echo": True}])
            case "resources/read":
                fallback = [{"result": {"contents": [{"uri": call.params.get("uri"), "text": "text"}]}}]
                self._named(call, "contents", "uri", "resources", fallback)
            case "prompts/get":
                content = {"type": "text", "text": "prompt"}
                fallback = [{"result": {"messages": [{"role": "user", "content": content}]}}]
                self._named(call, "messages", "name", "prompts", fallback)
            case "subscriptions/listen":
                self._listen(call)
            case _:
                self.do_error(call, {"code": -32601, "message": "Method not found"})

    def _wrong_era(self, call: Call) -> Json | None:
        if self.era == "modern" and call.method == "initialize":
            data = {"supported": [MODERN], "requested": call.params.get("protocolVersion")}
            return {"code": -32022, "message": "Unsupported protocol version", "data": data}
        if self.era == "modern" and not call.modern:
            return {"code": -32602, "message": "Missing _meta protocolVersion"}
        if self.era == "legacy" and call.method in ("server/discover", "subscriptions/listen"):
            return {"code": -32601, "message": "Method not found"}
        if call.modern and self.era != "legacy" and call.meta[META + "protocolVersion"] != MODERN:
            data = {"supported": [MODERN], "requested": call.meta[META + "protocolVersion"]}
            return {"code": -32022, "message": "Unsupported protocol version", "data": data}
        return None

    def _about(self) -> Json:
        default = {"tools": {"listChanged": True}}
        if self.lists["resources"] or self.lists["resourceTemplates"]:
            default["resources"] = {"listChanged": True, "subscribe": True}
        if self.lists["prompts"]:
            default["prompts"] = {"listChanged": True}
        about: Json = {"capabilities": self.script.get("capabilities", default)}
        if "instructions" in self.script:
            about["instructions"] = self.script["instructions"]
        return about

    def _cache(self) -> Json:
        return {
            "ttlMs": self.script.get("ttl_ms", 0),
            "cacheScope": self.script.get("cache_scope", "private"),
        }

    def _initialize(self, call: Call) -> None:
        version = self.script.get("version", call.params.get("protocolVersion", LEGACY))
        name = {"name": self.script.get("name", "scripted"), "version": "1"}
        version = LEGACY if version == MODERN else version
        self.do_result(call, {"protocolVersion": version, "serverInfo": name, **self._about()})

    def _list(self, call: Call, what: str, entries: list[Json] | None = None) -> None:
        entries = self.lists[what] if entries is None else entries
        size = self.script.get("page") or max(len(entries), 1)
        cursor = str(call.params.get("cursor") or "at:0")
        if not cursor.removeprefix("at:").isdigit():
            self.do_error(call, {"code": -32602, "message": "Invalid cursor"})
            return
        start = int(cursor.removeprefix("at:"))
        result: Json = {what: entries[start : start + size]}
        if start + size < len(entries):
            result["nextCursor"] = f"at:{start + size}"
        if call.modern and self.era != "legacy":
            result |= self._cache()
        self.do_result(call, result)

    def _flip(self) -> None:
        """Silently swap the tools once they were listed as often as the script says."""
        self.listed += 1
        flip = self.script.get("flip")
        if flip and self.listed == flip["after"]:
            self.lists["tools"] = list(flip["tools"])

    def _named(self, call: Call, group: str, member: str, among: str, fallback: list[Json]) -> None:
        name = call.params.get(member)
        plan = self.script.get(group, {}).get(name)
        if plan is None and not any(entry.get(member) == name for entry in self.lists[among]):
            self.do_error(call, {"code": -32602, "message": f"Unknown {member}: {name}"})
            return
        self.run(call, fallback if plan is None else self._plan(f"{group}:{name}", plan))

    def _listen(self, call: Call) -> None:
        wanted = call.params.get("notifications") or {}
        self.subscriptions.append(call)
        if "resourceSubscriptions" in wanted:
            unknown = set(self.script.get("unwatchable", ()))
            wanted = {**wanted, "resourceSubscriptions": [u for u in wanted["resourceSubscriptions"] if u not in unknown]}
        self._tell(call, "notifications/subscriptions/acknowledged", {"notifications": wanted})
        while not call.cancelled.wait(0.05):
            if call.channel.gone():
                break
        self.subscriptions.remove(call)
        self.record.add("left", id=call.id)

    def _tell(self, subscription: Call, method: str, params: Json) -> None:
        params = {**params, "_meta": {META + "subscriptionId": subscription.id}}
        subscription.channel.write(dump({"jsonrpc": "2.0", "method": method, "params": params}))

    # Steps

    def run(self, call: Call, steps: list[Json]) -> None:
        """Do the steps one after the other; a cancelled call stops before its next step."""
        for step in steps:
            if call.cancelled.is_set() and not self.script.get("ignore_cancel"):
                self.record.add("stopped", id=call.id)
                return
            for verb, value in step.items():
                self.verbs[verb](call, value)

    def do_result(self, call: Call, value: Json) -> None:
        if call.modern and self.era != "legacy":
            value = {"resultType": "complete", **value}
        call.channel.write(dump({"jsonrpc": "2.0", "id": call.id, "result": value}))

    def do_text(self, call: Call, value: str) -> None:
        self.do_result(call, {"content": [{"type": "text", "text": value}]})

    def do_tool_error(self, call: Call, value: str) -> None:
        self.do_result(call, {"content": [{"type": "text", "text": value}], "isError": True})

    def do_echo(self, call: Call, value: bool) -> None:
        self.do_text(call, dump(call.params.get("arguments")))

    def do_error(self, call: Call, value: Json) -> None:
        call.channel.write(dump({"jsonrpc": "2.0", "id": call.id, "error": value}))

    def do_raw(self, call: Call, value: str) -> None:
        call.channel.raw(call.fill(value))

    def do_line(self, call: Call, value: str) -> None:
        call.channel.write(call.fill(value))

    def do_wrong_id(self, call: Call, value: Any) -> None:
        text = {"content": [{"type": "text", "text": "wrong"}]}
        call.channel.write(dump({"jsonrpc": "2.0", "id": value, "result": text}))

    def do_sleep(self, call: Call, value: float) -> None:
        call.cancelled.wait(value) if not self.script.get("ignore_cancel") else time.sleep(value)

    def do_never(self, call: Call, value: bool) -> None:
        """End without an answer."""

    def do_wait_cancel(self, call: Call, value: float) -> None:
        end = time.monotonic() + value
        while time.monotonic() < end and not call.cancelled.wait(0.02):
            if call.modern and call.channel.gone():  # in the legacy era only a word cancels, and it may come after the end
                self.record.add("cancelled", id=call.id, known=True, closed=True)
                call.cancelled.set()

    def do_progress(self, call: Call, value: Json) -> None:
        token = call.meta.get("progressToken")
        if token is not None:
            self.do_notify(call, {"method": "notifications/progress", "params": {"progressToken": token, **value}})

    def do_notify(self, call: Call, value: Json) -> None:
        call.channel.write(dump({"jsonrpc": "2.0", **value}))

    def do_request(self, call: Call, value: Json) -> None:
        with self.lock:
            self.asked += 1
            own = value.get("id", f"s-{self.asked}")
        event, answers = self.waiting[dump(own)] = (threading.Event(), [])
        request = {"jsonrpc": "2.0", "id": own, "method": value["method"], "params": value.get("params", {})}
        call.channel.write(dump(request))
        if event.wait(value.get("wait", 30)):
            call.asked = answers[0]
        else:
            self.record.add("unanswered", id=own)

    def do_answer(self, call: Call, value: bool) -> None:
        self.do_text(call, dump(call.asked.get("result", call.asked.get("error"))))

    def do_retry(self, call: Call, value: Json) -> None:
        again = "inputResponses" in call.params or "requestState" in call.params
        self.run(call, self._plan("", value["then" if again else "first"]))

    def do_tools(self, call: Call, value: list[Json]) -> None:
        self.lists["tools"] = list(value)

    def do_list_changed(self, call: Call, value: str) -> None:
        method = f"notifications/{value}/list_changed"
        for subscription in list(self.subscriptions):
            if (subscription.params.get("notifications") or {}).get(f"{value}ListChanged"):
                self._tell(subscription, method, {})
        for channel in list(self.legacy_listeners):
            channel.write(dump({"jsonrpc": "2.0", "method": method}))

    def do_updated(self, call: Call, value: str) -> None:
        method = "notifications/resources/updated"
        for subscription in list(self.subscriptions):
            if value in ((subscription.params.get("notifications") or {}).get("resourceSubscriptions") or ()):
                self._tell(subscription, method, {"uri": value})
        for channel in list(self.legacy_listeners) if value in self.watched else ():
            channel.write(dump({"jsonrpc": "2.0", "method": method, "params": {"uri": value}}))

    def do_end_subscriptions(self, call: Call, value: bool) -> None:
        for subscription in list(self.subscriptions):
            if (subscription.params.get("notifications") or {}).get("resourceSubscriptions"):
                self.do_result(subscription, {})
                subscription.cancelled.set()

    def do_stderr(self, call: Call, value: int | str) -> None:
        text = value if isinstance(value, str) else ("noise " * 20 + "\n") * (value // 121 + 1)
        sys.stderr.write(text)
        sys.stderr.flush()

    def do_append(self, call: Call, value: Json) -> None:
        with Path(value["path"]).open("a") as file:
            file.write(value["text"])

    def do_exit(self, call: Call, value: int) -> None:
        os._exit(value)

    def do_kill(self, call: Call, value: bool) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


def load(argument: str) -> Json:
    """A script from a path, or from the argument itself if that is a JSON object."""
    text = argument if argument.lstrip().startswith("{") else Path(argument).read_text()
    script: Json = json.loads(text)
    return script
