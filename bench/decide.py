"""What one call costs to decide and to record: judge, decision record, labels, outcome, outcome record.

    python bench/decide.py [--calls 10000] [--tick 16]

Prints one line of JSON; times are microseconds on the clock that costs least to read, medians, so that moments in which the
thread did not run are left out (the clock of the thread's own time is a system call, a sixth of what is measured here).
`judge`: the verdict alone. `call`: all of it but the write. `flush`: one write of a tick's records to the operating system,
shared by `tick` calls. `first` and `last` are medians of the first and the last tenth of one conversation: a decision must not
grow dearer with what the conversation has seen. `along`: the verdict along a track (`net/tracks.py`), as most calls of a client
over HTTP get it, its request read and its decision record made; nothing where earnest was installed without its compiled piece.
The path is that of a file that is there: the kernel is asked about it each time, and `kernel` is what that costs by itself.
Nothing is checked here; the figure to hold is 6 µs at the median on a machine of our own.
"""

import argparse
import itertools
import json
import logging
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from earnest.config.policy.load import compose  # noqa: E402
from earnest.core.compile import Compiled  # noqa: E402
from earnest.core.profile import Trust  # noqa: E402
from earnest.core.receipt import encode  # noqa: E402
from earnest.gateway.records import Records, decision_of  # noqa: E402
from earnest.net.tracks import AVAILABLE, chain_of, compiled  # noqa: E402
from earnest.pdp.catalog import Server  # noqa: E402
from earnest.pdp.conversations import Conversations  # noqa: E402
from earnest.pdp.engine import Engine  # noqa: E402
from earnest.pdp.facts import Question  # noqa: E402
from earnest.pdp.floor import Floor  # noqa: E402
from earnest.pdp.leads import led, still_lead  # noqa: E402
from earnest.pdp.persist import KeptEndorsements, KeptLabels, KeptPins  # noqa: E402
from earnest.protocol import outcomes  # noqa: E402
from earnest.store.receipts import ReceiptLog  # noqa: E402
from earnest.store.signing import Signer  # noqa: E402
from earnest.store.sqlite import open_store  # noqa: E402

TOOL = {
    "name": "read_file",
    "description": "Reads one file.",
    "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
    "annotations": {"readOnlyHint": True, "openWorldHint": False},
}
ARGUMENTS = {
    "plain": b'{"city":"Graz","days":3,"units":"metric","detail":"the whole week, hour by hour, with wind"}',
    "path": b'{"path":"FOLDER/home/ada/projects/engine/notes/2026/drafts/analytical.md","head":200,"tail":0}',
}
RESULT = b'{"content":[{"type":"text","text":"%b"}],"isError":false}' % (b"x" * 150)


class Rig:
    """An engine with its records, on a real store and a real log below `folder`."""

    def __init__(self, folder: str) -> None:
        store = open_store(f"{folder}/store.db")
        wall = time.time
        signer = Signer(f"{folder}/signing.key")
        self.log = ReceiptLog(f"{folder}/receipts", "bench", signer, wall, chain=chain_of("bench"))
        self.records = Records(self.log, None, wall)
        conversations = Conversations(KeptLabels(store), wall)
        policy = Compiled(compose((), "balanced").policy)
        self.floor = floor = Floor(home=f"{folder}/home/ada", own=[f"{folder}/receipts", f"{folder}/store.db"])
        os.makedirs(f"{folder}/home/ada/projects/engine/notes/2026/drafts")
        Path(folder, "home/ada/projects/engine/notes/2026/drafts/analytical.md").write_text("notes")
        self.engine = Engine(policy, conversations, floor, KeptEndorsements(store, wall), clock=wall)
        self.server = Server("files", "npm:files", credentialed=False)
        self.server.update([json.dumps(TOOL).encode()], "", KeptPins(store), wall())
        self.server.set_trust(Trust.TRUSTED, "bench")
        self.key = ("user:1000", "process:4711.1")
        conversations.open(self.key, minted=True)

    def question(self, arguments: bytes) -> Question:
        """One call in the engine's words, made anew for each call as the gateway does."""
        return Question(
            server=self.server,
            tool=self.server.tools["read_file"],
            method="tools/call",
            subject="read_file",
            arguments=arguments,
            client="bench",
            client_asks=False,
            ask_host=False,
            principal="user:1000",
            key=self.key,
        )


def measured(rig: Rig, arguments: bytes, calls: int, tick: int) -> dict[str, float]:
    """Medians over a conversation of so many calls."""
    clock = time.perf_counter_ns
    engine, records = rig.engine, rig.records
    judged: list[int] = []
    whole: list[int] = []
    flushes: list[int] = []
    for number in range(calls):
        start = clock()
        judgement = engine.judge(rig.question(arguments))
        middle = clock()
        records.decided(judgement, "allow")
        engine.admit(judgement)
        outcome = outcomes.outcome(RESULT)
        engine.observed(judgement, outcome)
        records.finished(judgement, "ok", "", RESULT)
        end = clock()
        judged.append(middle - start)
        whole.append(end - start)
        if number % tick == tick - 1:
            records.flush()
            flushes.append(clock() - end)
    part = max(1, calls // 10)

    def us(values: list[int]) -> float:
        return round(statistics.median(values) / 1000, 2)

    return {
        "judge": us(judged),
        "call": us(whole),
        "flush": us(flushes),
        "first": us(whole[:part]),
        "last": us(whole[-part:]),
    }


def along(rig: Rig, arguments: bytes, calls: int) -> float:
    """The median of a verdict along a track. Raises where it is not taken."""
    judgement = rig.engine.judge(rig.question(arguments))
    said = rig.engine.grounds(judgement)
    assert said is not None
    of_call, of_answer, bits = said
    tracks = compiled.Tracks(
        chain=rig.log.chain, clock=time.time, digest_of=lambda raw: None, flush_soon=lambda: None, flush_later=lambda: None,
        keep=None, kept=set(),
        by_client={}, by_server={}, longest_request=1 << 20, longest_answer=1 << 20,
    )  # fmt: skip
    track = compiled.Track(
        facts=None, tally=compiled.Tally(None), guards=tuple(compiled.Guard(*ground) for ground in of_call),
        of_answer=tuple(compiled.Guard(*ground) for ground in of_answer), lead=b"", said=b"", numbers=itertools.count(),
        idle=[],
        decision=encode(decision_of(judgement, "allow", 0.0, "")), waiting=(), line=None, client="c", server="s",
        floor=lambda raw: rig.floor.check(raw, cwd=None, changes=False) is None, limits=(1 << 30, 1 << 30),
        labels_after=judgement.labels_before | bits,
    )  # fmt: skip
    params = b'{"name":"read_file","arguments":%b,"_meta":{}}' % arguments
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%b}' % params
    head = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % len(body)
    known = {compiled.shape(head): {b'"read_file"{}': track}}
    took = []
    port = compiled.Port()
    for _ in range(calls):
        start = time.perf_counter_ns()
        trip = tracks.begin(known, head + body, port)
        took.append(time.perf_counter_ns() - start)
        assert trip is not None
        trip.leave()
        tracks.recall()
        rig.log.flush()
    return round(statistics.median(took) / 1000, 2)


def asked(path: str, calls: int) -> float:
    """The median of asking whether a path still leads where it led."""
    known = led({path: path})
    took = []
    for _ in range(calls):
        start = time.perf_counter_ns()
        held = still_lead(known)
        took.append(time.perf_counter_ns() - start)
        assert held
    return round(statistics.median(took) / 1000, 2)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--tick", type=int, default=16)
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    found: dict[str, Any] = {"calls": given.calls, "tick": given.tick, "unit": "us"}
    for name, arguments in ARGUMENTS.items():
        with tempfile.TemporaryDirectory() as made:
            folder = os.path.realpath(made)
            rig = Rig(folder)
            arguments = arguments.replace(b"FOLDER", folder.encode())
            found[name] = measured(rig, arguments, given.calls, given.tick)
            if AVAILABLE:
                found[name]["along"] = along(rig, arguments, given.calls)
            if name == "path":
                found[name]["kernel"] = asked(json.loads(arguments)["path"], given.calls)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
