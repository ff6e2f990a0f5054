"""The engine: labels never lost, never below what was seen, and a verdict never milder for more labels."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earnest.core import canonical
from earnest.core.compile import Compiled
from earnest.core.errors import EarnestError
from earnest.core.flow import PRIVATE, UNTRUSTED
from earnest.core.policy import Policy
from earnest.core.profile import Trust
from earnest.core.verdict import Verdict
from earnest.pdp.catalog import Server
from earnest.pdp.conversations import Conversations
from earnest.pdp.engine import Engine, arguments_digest, steering_digest
from earnest.pdp.facts import Question
from earnest.pdp.floor import Floor
from earnest.pdp.persist import KeptEndorsements, KeptLabels, KeptPins
from earnest.protocol.outcomes import outcome
from earnest.store.sqlite import SqliteStore, open_store
from properties import examples

KEY = ("user:1", "process:7.1")
READ = b'{"name":"read","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"openWorldHint":false}}'
FETCH = b'{"name":"fetch","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"openWorldHint":true}}'


class World:
    """An engine on a store, and a server with two tools."""

    def __init__(self, store: SqliteStore, trust: Trust = Trust.TRUSTED) -> None:
        from earnest.config.policy.load import compose

        def clock() -> float:
            return 1000.0

        policy: Policy = compose((), "balanced").policy
        self.conversations = Conversations(KeptLabels(store), clock)
        self.conversations.open(KEY, minted=True)
        endorsements = KeptEndorsements(store, clock)
        self.engine = Engine(Compiled(policy), self.conversations, Floor(home="/h", own=[]), endorsements, clock=clock)
        self.server = Server("s", "id", credentialed=False)
        self.server.update([READ, FETCH], "", KeptPins(store), 1.0)
        self.server.set_trust(trust, "test")

    def question(self, name: str, arguments: bytes = b"{}", overlay: str = "") -> Question:
        return Question(
            server=self.server,
            tool=self.server.tools[name],
            method="tools/call",
            subject=name,
            arguments=arguments,
            client="c",
            client_asks=False,
            ask_host=False,
            principal="user:1",
            key=KEY,
            overlay=overlay,
        )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = open_store(str(tmp_path / "store.db"))
    yield made
    made.close()


@pytest.mark.parametrize("trust", list(Trust))
@pytest.mark.parametrize("name", ["read", "fetch"])
def test_more_labels_never_make_a_verdict_milder(store: SqliteStore, trust: Trust, name: str) -> None:
    world = World(store, trust)
    verdicts: dict[int, Verdict] = {}
    for bits in range(4):
        key = ("user:2", f"process:{bits}.1")
        world.conversations.open(key, minted=True)
        if bits:
            from earnest.core.flow import Cause

            world.conversations.raise_(key, bits, Cause("r", "x", "y"))
        question = msgspec.structs.replace(world.question(name), key=key)
        verdicts[bits] = world.engine.judge(question).verdict
        world.conversations.end(key)
    for low in range(4):
        for high in range(4):
            if low & high == low:
                assert verdicts[high] >= verdicts[low]


def test_a_call_of_an_overlay_that_is_not_loaded_is_denied(store: SqliteStore) -> None:
    world = World(store)
    assert world.engine.judge(world.question("read")).verdict is Verdict.ALLOW
    assert world.engine.judge(world.question("read", overlay="gone")).verdict is Verdict.DENY


@pytest.mark.parametrize("arguments", [b'{"a":1,"a":2}', b'{"a":1,"A":2}', b"{", b"[" * 500 + b"]" * 500, b'{"\xff":1}'])
def test_arguments_that_cannot_be_read_in_one_way_are_denied_and_nothing_is_raised(
    store: SqliteStore, arguments: bytes
) -> None:
    world = World(store)
    judged = world.engine.judge(world.question("read", arguments))
    assert judged.verdict is Verdict.DENY


RESULTS = [
    b'{"content":[]}',
    b'{"content":[],"_meta":{"ifc":{"confidentiality":"private"}}}',
    b'{"content":[],"_meta":{"ifc":{"integrity":"untrusted"}}}',
    b'{"content":[],"content":[]}',
    b"[]",
]


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["read", "fetch"]), st.sampled_from(RESULTS), st.integers(0, 2)), max_size=6))
def test_whenever_the_store_fails_the_label_counts_all_the_same_and_a_restart_keeps_what_was_delivered(
    steps: list[tuple[str, bytes, int]],
) -> None:
    with TemporaryDirectory() as folder:
        store = open_store(f"{folder}/store.db")
        world = World(store)
        put = store.put_flow
        delivered = 0

        def broken(row: object) -> None:
            raise EarnestError("E1402", "the store is locked")

        for name, result, fails in steps:
            before = world.conversations.labels(KEY)
            judged = world.engine.judge(world.question(name))
            try:
                store.put_flow = broken if fails == 1 else put  # type: ignore[method-assign]
                world.engine.admit(judged)
                store.put_flow = broken if fails == 2 else put  # type: ignore[method-assign]
                world.engine.observed(judged, outcome(result))
                delivered |= judged.labels_after
            except EarnestError:
                pass
            finally:
                store.put_flow = put  # type: ignore[method-assign]
            now = world.conversations.labels(KEY)
            assert now & before == before
            assert now & delivered == delivered
        again = Conversations(KeptLabels(store), lambda: 1000.0)
        again.open(KEY, minted=True)
        assert again.labels(KEY) & delivered == delivered
        store.close()


def test_what_cannot_be_read_is_worst(store: SqliteStore) -> None:
    world = World(store)
    judged = world.engine.judge(world.question("read"))
    world.engine.admit(judged)
    world.engine.observed(judged, None)
    assert world.conversations.labels(KEY) == PRIVATE | UNTRUSTED


def test_a_standing_yes_binds_every_argument_but_content(store: SqliteStore) -> None:
    content = frozenset(["body"])
    base = steering_digest(b'{"to":"a","body":"x","n":1.0}', content)
    assert base == steering_digest(b'{"n":1.0,"body":"other","to":"a"}', content)
    for other in (b'{"to":"b","body":"x","n":1.0}', b'{"to":"a","n":1}', b'{"to":"a","n":1.0,"cc":"b"}', b'{"n":1.0}'):
        assert base != steering_digest(other, content)
    assert steering_digest(b"", frozenset()) == steering_digest(b"{}", frozenset())


@pytest.mark.parametrize(
    "raw",
    [
        b"{}",
        b'{"b":1,"a":[1.0,2e3]}',
        b'{"a":1, "A":2}',
        b'{"a":1,"a":1}',
        b'{"a":"\\u0041"}',
        b'{"a":"\xc3\xa9"}',
        b'{"\xc3\xa9":1}',
        b'{"a":NaN}',
        b'{"a":"\\ud800"}',
        b"[" * 200 + b"]" * 200,
        b'{"a":1}x',
        b' {"a":{"c":1,"b":2}}',
        b'{"a":-0.0,"b":1E2}',
        b"\xff",
    ],
)
def test_the_digest_of_arguments_is_that_of_the_core(raw):
    def said(digest):
        try:
            return digest(raw)
        except EarnestError as error:
            return error.code

    assert said(arguments_digest) == said(canonical.digest)
