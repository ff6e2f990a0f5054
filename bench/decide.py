"""What one call costs to decide and to record: judge, decision record, labels, outcome, outcome record.

    python bench/decide.py [--calls 10000] [--tick 16]

Prints one line of JSON; times are microseconds of this thread's CPU. `judge`: the verdict alone. `call`: all of it but the
write. `flush`: one write of a tick's records to the operating system, shared by `tick` calls. `first` and `last` are medians
of the first and the last tenth of one conversation: a decision must not grow dearer with what the conversation has seen.
Nothing is checked here; the figure to hold is `call` <= 6 µs at its median on a machine of our own.
"""

import argparse
import json
import logging
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from earnest.config.policy.load import compose  # noqa: E402
from earnest.core.compile import Compiled  # noqa: E402
from earnest.core.profile import Trust  # noqa: E402
from earnest.gateway.records import Records  # noqa: E402
from earnest.pdp.catalog import Server  # noqa: E402
from earnest.pdp.conversations import Conversations  # noqa: E402
from earnest.pdp.engine import Engine  # noqa: E402
from earnest.pdp.facts import Question  # noqa: E402
from earnest.pdp.floor import Floor  # noqa: E402
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
    "path": b'{"path":"/home/ada/projects/engine/notes/2026/drafts/analytical.md","head":200,"tail":0}',
}
RESULT = b'{"content":[{"type":"text","text":"%b"}],"isError":false}' % (b"x" * 150)


class Rig:
    """An engine with its records, on a real store and a real log below `folder`."""

    def __init__(self, folder: str) -> None:
        store = open_store(f"{folder}/store.db")
        wall = time.time
        self.log = ReceiptLog(f"{folder}/receipts", "bench", Signer(f"{folder}/signing.key"), wall)
        self.records = Records(self.log, None, wall)
        conversations = Conversations(KeptLabels(store), wall)
        policy = Compiled(compose((), "balanced").policy)
        floor = Floor(home="/home/ada", own=[folder])
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
    clock = time.thread_time_ns
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


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--tick", type=int, default=16)
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    found: dict[str, object] = {"calls": given.calls, "tick": given.tick, "unit": "us"}
    for name, arguments in ARGUMENTS.items():
        with tempfile.TemporaryDirectory() as folder:
            found[name] = measured(Rig(folder), arguments, given.calls, given.tick)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
