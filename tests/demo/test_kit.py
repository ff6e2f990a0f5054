"""The server kit of the demos: pages, cancellation, and an end when its input ends."""

import io
import json
import threading
from typing import Any

from earnest.demo.kit import Context, Server, Tool


class Pipe:
    """Lines that a test hands over one by one."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._more = threading.Condition()

    def put(self, message: dict[str, Any] | bytes) -> None:
        with self._more:
            self._lines.append(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
            self._more.notify()

    def __iter__(self) -> "Pipe":
        return self

    def __next__(self) -> bytes:
        with self._more:
            self._more.wait_for(lambda: bool(self._lines), timeout=60)
            line = self._lines.pop(0)
        if not line:
            raise StopIteration
        return line


def request(id: int, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def answers(server: Server, *messages: dict[str, Any] | bytes) -> list[dict[str, Any]]:
    source, target = Pipe(), io.BytesIO()
    for message in (*messages, b""):
        source.put(message)
    server.serve(source, target)  # type: ignore[arg-type]
    return [json.loads(line) for line in target.getvalue().splitlines()]


def make(run: Any = lambda arguments, context: "done", count: int = 1, page: int = 50) -> Server:
    tools = [Tool(f"tool{n}", "", run) for n in range(count)]
    return Server("test", "", lambda: tools, page=page)


def test_lists_come_in_pages():
    server = make(count=5, page=2)
    names, cursor = [], {}
    for _ in range(3):
        (answer,) = answers(server, request(1, "tools/list", **cursor))
        names += [tool["name"] for tool in answer["result"]["tools"]]
        cursor = {"cursor": answer["result"].get("nextCursor")}
    assert names == [f"tool{n}" for n in range(5)] and cursor == {"cursor": None}


def test_a_cancelled_call_is_told_and_not_answered():
    told = threading.Event()
    begun = threading.Event()

    def run(arguments: Any, context: Context) -> str:
        begun.set()
        if context.cancelled.wait(60):
            told.set()
        return "late"

    source, target = Pipe(), io.BytesIO()
    server = threading.Thread(target=make(run).serve, args=(source, target))
    server.start()
    source.put(request(1, "tools/call", name="tool0"))
    assert begun.wait(60)
    source.put({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    assert told.wait(60)
    source.put(b"")
    server.join(60)
    assert target.getvalue() == b""


def test_progress_stops_a_call_that_nobody_waits_for():
    def run(arguments: Any, context: Context) -> str:
        context.cancelled.set()
        context.progress(1, 2)
        raise AssertionError("not reached")

    assert answers(make(run), request(1, "tools/call", name="tool0")) == []


def test_what_is_no_message_gets_a_parse_error_and_answers_get_none():
    sent = answers(make(), b"{oops\n", b"[]\n", b"\n", b'{"jsonrpc":"2.0","id":3,"result":{}}\n', request(2, "ping"))
    assert [message.get("error", {}).get("code") for message in sent] == [-32700, -32700, None]


def test_slow_calls_do_not_hold_up_others():
    first = threading.Event()

    def run(arguments: Any, context: Context) -> str:
        if arguments.get("wait"):
            assert first.wait(60)
            return "second"
        first.set()
        return "first"

    flag = {"wait": {"type": "boolean"}}
    tool = Tool("tool", "", run, flag, optional=("wait",))
    slow = request(1, "tools/call", name="tool", arguments={"wait": True})
    sent = answers(Server("test", "", lambda: [tool]), slow, request(2, "tools/call", name="tool"))
    assert [message["id"] for message in sent] == [2, 1]
