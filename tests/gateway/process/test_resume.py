"""The daemon is killed; the client notices nothing but an error for what was under way."""

import collections
import importlib.util
import json
import pathlib

import pytest


def test_a_call_in_flight_gets_an_error_and_the_next_is_served(rig, talk, ask):
    shim = rig.shim()
    first = talk(shim, 1)["result"]
    shim.stdin.write(ask(2, delay="never", tag="two"))
    shim.stdin.write(ask("three", delay="never"))
    shim.stdin.flush()
    talk(shim, 4)
    rig.kill()
    errors = [json.loads(shim.stdout.readline()) for _ in range(2)]
    assert {e["id"] for e in errors} == {2, "three"}
    assert all(e["error"]["code"] == -31003 and "may or may not" in e["error"]["message"] for e in errors)
    after = talk(shim, 5)["result"]
    assert after["daemon"] != first["daemon"] and after["epoch"] == 2
    assert "did two" not in rig.done()
    assert shim.poll() is None


def _open(shim, talk):
    assert talk(shim, "init", "initialize", protocolVersion="2025-11-25")["id"] == "init"
    shim.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    shim.stdin.flush()


def test_the_opening_is_replayed_and_its_answer_swallowed(rig, talk):
    shim = rig.shim()
    _open(shim, talk)
    assert talk(shim, 1)["id"] == 1
    rig.kill()
    two = talk(shim, 2)  # and nothing in between
    assert two["id"] == 2, two
    assert rig.done() == ["initialize 1", "initialized 1", "initialize 2", "initialized 2"]
    rig.kill()
    assert talk(shim, 3)["result"]["epoch"] == 3
    assert rig.done()[4:] == ["initialize 3", "initialized 3"]


def test_before_initialized_the_client_says_it_itself(rig, talk):
    shim = rig.shim()
    talk(shim, 0, "initialize")
    rig.kill()
    shim.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    assert talk(shim, 1)["id"] == 1
    assert rig.done() == ["initialize 1", "initialize 2", "initialized 2"]


def test_an_opening_in_flight_is_sent_again_under_its_own_id(rig, ask):
    shim = rig.shim()
    shim.stdin.write(ask("init", "initialize", delay=0.5))
    shim.stdin.flush()
    rig.wait(lambda: rig.done() == ["initialize 1"])
    rig.kill()
    answer = json.loads(shim.stdout.readline())
    assert answer["id"] == "init" and "result" in answer and answer["result"]["epoch"] == 2
    assert rig.done() == ["initialize 1", "initialize 2"]


def test_a_line_cut_by_the_kill_is_put_together(rig, talk, ask):
    shim = rig.shim()
    talk(shim, 1)
    line = ask(2, pad="p" * 5000)
    shim.stdin.write(line[:3000])
    shim.stdin.flush()
    rig.kill()
    shim.stdin.write(line[3000:])
    shim.stdin.flush()
    assert json.loads(shim.stdout.readline())["id"] == 2


def test_lines_not_looked_at_when_the_kill_came_are_served(rig, ask):
    """The fifth of ten ends the daemon; those after it were read, and are served by the next."""
    shim = rig.shim()
    lines = [ask(n, tag=f"t{n}", **({"die": True} if n == 5 else {})) for n in range(5, 15)]
    shim.stdin.write(b"".join(lines))
    shim.stdin.flush()
    answers = {}
    while len(answers) < 10:
        one = json.loads(shim.stdout.readline())
        answers[one["id"]] = one
    assert set(answers) == set(range(5, 15)) and "error" in answers[5]
    effects = collections.Counter(line for line in rig.done() if line.startswith("did"))
    assert effects["did t5"] == 1 and max(effects.values()) == 1


def test_a_call_passed_on_but_still_in_the_input_is_not_passed_on_again(rig, ask):
    """The kill falls between passing a call on and taking its line out."""
    shim = rig.shim()
    shim.stdin.write(ask("once", "die-now") + ask(2))
    shim.stdin.flush()
    first, second = (json.loads(shim.stdout.readline()) for _ in range(2))
    assert first["id"] == "once" and first["error"]["code"] == -31003
    assert second["id"] == 2 and second["result"]["epoch"] == 2
    assert rig.done() == ["did die-now"]


def test_a_line_being_looked_at_when_the_kill_came_is_served(rig, ask):
    shim = rig.shim()
    shim.stdin.write(ask(1, "die-before") + ask(2))
    shim.stdin.flush()
    answers = [json.loads(shim.stdout.readline()) for _ in range(2)]
    assert [(a["id"], a["result"]["epoch"]) for a in answers] == [(1, 2), (2, 2)]


def test_half_a_line_is_ended_before_what_follows(rig, talk, ask):
    shim = rig.shim()
    talk(shim, 1)
    shim.stdin.write(ask(2, size=3_000_000))
    shim.stdin.flush()
    first = shim.stdout.read(1)
    rig.kill()  # at rest: the pipe is full of the first part
    broken = first + shim.stdout.readline()
    with pytest.raises(ValueError):
        json.loads(broken)
    assert json.loads(shim.stdout.readline())["error"]["code"] == -31003
    assert talk(shim, 3)["result"]


def test_a_daemon_that_dies_on_this_client_again_and_again_is_given_up(rig, ask):
    rig.changed("shim", "handover.py", "_FRUITLESS_LIMIT = 12", "_FRUITLESS_LIMIT = 4")  # the pauses grow to seconds
    shim = rig.shim()
    shim.stdin.write(ask(0, "initialize", die=True))
    shim.stdin.flush()
    assert shim.wait(60) == 3
    assert b"dies each time" in shim.stderr.read()
    assert 2 < len(rig.done()) <= 5  # a try that met the one that was just dying counts too


def test_the_client_is_told_once_a_crash(rig, talk):
    shim = rig.shim()
    talk(shim, 1)
    rig.kill()
    talk(shim, 2)
    shim.stdin.close()
    shim.wait(60)
    assert shim.stderr.read() == b"earnest: the daemon ended; handing over to a fresh one.\n"


@pytest.mark.slow
@pytest.mark.parametrize("sockets", [False, True])
def test_a_storm_of_kills_leaves_no_call_unanswered_and_none_done_twice(make_rig, sockets):
    path = pathlib.Path(__file__).parents[3] / "bench" / "storm.py"
    spec = importlib.util.spec_from_file_location("storm", path)
    storm = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(storm)
    rig = make_rig()
    found = storm.storm(rig.shim, rig.kill_any, rig.done, kills=10, sockets=sockets, seed=7)
    assert (found.unanswered, found.twice, found.answered_undone, found.second_answers) == (0, 0, 0, 0), found
    assert found.kills == 10 and found.calls > 10


DIES_AFTER_ANSWER = """                self._hand_on(line)
                if b'"id": 5,' in line and not os.path.exists(os.environ["HOME"] + "/died"):
                    open(os.environ["HOME"] + "/died", "x").close()
                    os.kill(os.getpid(), 9)
                if not self._in_hand"""


@pytest.mark.parametrize("method", ["tools/call", "ping"])
def test_what_was_answered_at_once_is_not_answered_again_by_the_next_daemon(rig, ask, talk, method):
    """A refused call and a ping are answered while their line is in hand; a kill falls right after the answer has left."""
    before = "                self._hand_on(line)\n                if not self._in_hand"
    rig.changed("gateway/process", "handover.py", before, DIES_AFTER_ANSWER)
    shim = rig.shim()
    talk(shim, 1)
    answered = talk(shim, 5, method, at_once=True)
    assert answered["id"] == 5
    rig.wait((rig.home / "died").exists)
    assert talk(shim, 6)["id"] == 6, "not 5 once more"
