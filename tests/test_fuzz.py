"""The targets of `scripts/fuzz`, without a fuzzer: seeds, inputs that once broke something, and simple mutations of both."""

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fuzz.seeds import seeds
from fuzz.targets import TARGETS

MUTATIONS = 300


def mutated(r: random.Random, data: bytes, other: bytes) -> bytes:
    """A small change of an input."""
    at = r.randrange(len(data) + 1)
    match r.randrange(5):
        case 0:
            return data[:at] + bytes([r.randrange(256)]) + data[at + 1 :]
        case 1:
            return data[:at] + data[at + r.randrange(1, 9) :]
        case 2:
            return data[:at] + r.choice([b"\r\n", b'"', b"\\", b"{", b"[", b",", b"\0", b" ", b"-1", b"0", b"\xff"]) + data[at:]
        case 3:
            return data[:at] + other[r.randrange(len(other) + 1) :]
        case _:
            end = r.randrange(at, len(data) + 1)
            return data[:end] + data[at:]


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_keeps_its_promises_on_seeds_and_mutations(target: str) -> None:
    check, known, r = TARGETS[target], seeds(target), random.Random(target)
    for data in known:
        check(data)
    for _ in range(MUTATIONS):
        check(mutated(r, r.choice(known), r.choice(known))[:20_000])
