"""`earnest stop`."""

import json
import socket


def test_stop_waits_for_the_end_and_says_who_was_there(demo, cli):
    said = cli("stop", "--config", demo.ready["config"])
    assert (said.code, said.out) == (0, "The daemon has ended; 0 clients were connected.\n")
    try:
        socket.create_connection(("127.0.0.1", int(demo.ready["address"].rpartition(":")[2])))
    except ConnectionRefusedError:
        pass
    else:
        raise AssertionError("it still listens")
    assert demo.process.wait(60) == 3


def test_where_none_runs_it_says_so_and_is_fine(cli):
    assert json.loads(cli("stop", "--json").out) == {"stopped": False}


def test_a_configuration_that_is_not_there_is_told_by_commands_that_only_look_beside_it(cli, tmp_path):
    for words in (["stop"], ["receipts"], ["receipts", "verify"]):
        said = cli(*words, "--config", str(tmp_path / "earnset.toml"))
        assert said.code == 2 and "E1001" in said.err and "earnset.toml" in said.err, words
