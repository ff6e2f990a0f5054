"""`earnest demo`, as a person and as a program sees it."""

import json
import os


def test_the_demo_shows_an_allow_an_ask_a_deny_and_the_trifecta_stopped_and_leaves_nothing(cli, home):
    (home.path / "tmp").mkdir()
    said = cli("demo", "--json", env={"TMPDIR": str(home.path / "tmp")})
    assert (said.code, said.err) == (0, "")
    told = json.loads(said.out)
    assert told["ok"] and told["receipts_intact"]
    steps = told["steps"]
    assert [(step["decision"], step["answer"]) for step in steps] == [
        ("allow", ""), ("ask", "once"), ("deny", ""), ("allow", ""), ("ask", "no"),
    ]  # fmt: skip
    assert all(step["reasons"] for step in steps)
    assert steps[0]["labels"] == ["untrusted"] and steps[3]["labels"] == ["private", "untrusted"]
    assert "private data" in steps[4]["reasons"][0] and "untrusted content" in steps[4]["reasons"][0]
    assert "88-204-117" in steps[3]["result"] and told["site_visits"] == ["/hike.html"]
    assert os.listdir(home.path / "tmp") == []
    assert not home.earnest.exists() and not home.config.exists()


def test_a_person_reads_each_step_with_its_reasons(cli):
    said = cli("demo")
    assert said.code == 0
    for word in ("ALLOW", "ASK", "DENY", "the person answers: once", "the person answers: no", "Asked because:", "5. It obeys"):
        assert word in said.out, word
