"""One code, one meaning: codes that once had two are each raised for one of them."""

import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "earnest"

SAID = {
    "E1013": r"cannot be|no backup",
    "E1029": r"changed while|another token",
    "E1211": r"there is no server|no server",
    "E1212": r"there is no view",
    "E1213": r"brings",
    "E1701": r"calls of one client are in flight",
    "E1703": r"too many calls in flight",
    "E1706": r"message of",
    "E1707": r"subscription may name",
}


@pytest.mark.parametrize("code", SAID)
def test_a_code_is_raised_for_one_thing(code: str) -> None:
    raised = re.compile(rf'(?:EarnestError|ShimError)\(\s*"{code}",\s*(f?"[^"]*"(?:\s*f?"[^"]*")*|f?\'[^\']*\')')
    found = [text for file in SOURCE.rglob("*.py") for text in raised.findall(file.read_text())]
    assert found or code in ("E1706", "E1707"), f"{code} is raised nowhere"
    for text in found:
        assert re.search(SAID[code], text), f"{code} says {text}"
