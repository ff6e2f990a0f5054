"""Rows, dataset, figures, grades, risk classes, differences: from records of known tools to known numbers."""

import msgspec
import pytest

from census_kit import leg, made, tool
from earnest.census.dataset import about, connect, opened, write
from earnest.census.diff import compare
from earnest.census.figures import figures, queries, query
from earnest.census.grade import grade
from earnest.census.record import Failure
from earnest.census.risk import classes
from earnest.census.rows import rows, subject
from earnest.census.schema import TABLES
from earnest.core.errors import EarnestError
from earnest.core.hints import RawHints
from earnest.lint.model import tool_of
from earnest.lint.run import Selection, lint

READ = tool("get_note", description="Returns a note", annotations={"readOnlyHint": True, "openWorldHint": False})
SEND = tool("send_mail", description="Send emails to one or more recipients", annotations={"readOnlyHint": True})
BARE = tool("search_web", description="Search the web for pages")


def test_a_tool_row_keeps_what_was_said_and_what_was_not():
    hints = b'{"readOnlyHint":null,"destructiveHint":"no","title":"T"}'
    raw = b'{"tools":[{"name":"t","description":"x","annotations":%b,"n":1.50}]}' % hints
    (row,) = rows(made(legs=(leg(raw),))).tools
    assert row["read_only"] is None and row["destructive"] is None and row["malformed"] == ["destructiveHint"]
    assert row["annotated"] and row["annotation_keys"] == ["destructiveHint", "title"] and '"n":1.50' in row["definition"]
    assert set(row) == set(TABLES["tools"]) and row["licence"] == "MIT" and row["pin"].startswith("v1:")


def test_a_server_that_failed_is_a_row_with_its_reason():
    failed = made("f", legs=(), failure=Failure("install", "E1911", "no such package"))
    found = rows(failed)
    assert (found.server["status"], found.server["failed_at"], found.server["failure_code"]) == ("failed", "install", "E1911")
    assert found.server["tools"] is None and found.tools == found.findings == [] and set(found.server) == set(TABLES["servers"])


def test_two_eras_and_two_starts_are_compared():
    both = rows(made(legs=(leg([READ, BARE]), leg([BARE, READ], modern=True, asked="modern")))).server
    assert (both["legacy"], both["modern"], both["same_both_eras"], both["stable"]) == (True, True, True, None)
    moved = [dict(READ, description="Returns a note from /tmp/x1"), BARE]
    twice = made(legs=(leg([READ, BARE]), leg(moved, asked="modern")))
    assert (rows(twice).server["modern"], rows(twice).server["stable"]) == (False, False)
    assert subject(twice).earlier is not None
    assert "unstable-list" in {row["audit"] for row in rows(twice).findings}


def test_the_figures_are_those_of_the_tools_and_cohorts_stay_apart(tmp_path):
    write([made("one", [READ, SEND]), made("two", [BARE]), made("other", [BARE], cohort="b")], tmp_path)
    with opened(tmp_path) as connection:
        found = {name: figures(connection, one).dicts() for name, one in queries().items() if not one.needs_earlier}
    a, b = found["totals"]
    assert (a["cohort"], a["servers"], a["tools"], a["annotated"], a["readonly_true"], a["openworld_false"]) == (
        "a",
        2,
        3,
        2,
        2,
        1,
    )
    assert (b["cohort"], b["servers"], b["tools"], b["hinted"]) == ("b", 1, 1, 0)
    assert a["names_on_several_servers"] == 0, "a name in two cohorts is on one server of each"
    hints = {(row["cohort"], row["hint"], row["state"]): row["tools"] for row in found["hints"]}
    assert hints[("a", "read_only", "true")] == 2 and hints[("a", "read_only", "absent")] == 1
    assert [row["combination"] for row in found["combinations"] if row["cohort"] == "b"] == ["----"]
    (lie,) = [row for row in found["contradictions"] if row["audit"] == "read-only-but-writes"]
    assert (lie["cohort"], lie["side"], lie["high"], lie["example"]) == ("a", "understates", 1, "one / send_mail")
    assert all(one.sql.split("FROM")[0] and figures for one in queries().values())
    assert all(rows and "cohort" in rows[0] for name, rows in found.items() if rows)


def test_json_lines_and_parquet_say_the_same(tmp_path):
    write([made("one", [READ, SEND])], tmp_path)
    answers = []
    for suffix in ("parquet", "jsonl"):
        with opened(tmp_path) as connection:
            answers.append(connection.execute("SELECT * FROM tools ORDER BY position").fetchall())
        for path in tmp_path.glob(f"*.{suffix}"):
            path.unlink()
    assert answers[0] == answers[1] and len(answers[0]) == 2


def test_a_folder_that_is_no_dataset_is_told(tmp_path):
    for act in (lambda: about(tmp_path), lambda: write([], tmp_path / "x")):
        with pytest.raises(EarnestError) as caught:
            act()
        assert caught.value.code == "E1904"
    with pytest.raises(EarnestError, match="totals"):
        query("total")


def spoil_version(folder):
    path = folder / "dataset.json"
    path.write_text(path.read_text().replace('"schema": 1', '"schema": 99'))


def spoil_parquet(folder):
    path = folder / "tools.parquet"
    path.write_bytes(path.read_bytes()[:200])


def spoil_column(folder):
    connection = connect()
    connection.execute(f"CREATE TABLE t AS SELECT * EXCLUDE (definition) FROM '{folder}/tools.parquet'")
    connection.execute(f"COPY t TO '{folder}/tools.parquet' (FORMAT parquet)")


@pytest.mark.parametrize(
    "spoil, words", [(spoil_version, "schema 99"), (spoil_parquet, "cannot be read"), (spoil_column, "definition")]
)
def test_a_dataset_that_is_broken_or_of_another_schema_is_told(tmp_path, spoil, words):
    write([made("one", [READ])], tmp_path)
    spoil(tmp_path)
    with pytest.raises(EarnestError, match=words) as caught, opened(tmp_path) as connection:
        connection.execute("SELECT * FROM tools").fetchall()
    assert caught.value.code == "E1904" and "census dataset" in caught.value.remedy


def test_a_dataset_stays_whole_until_the_next_one_is(tmp_path):
    write([made("one", [READ])], tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def breaking():
        yield made("two", [READ])
        raise EarnestError("E1902", "a record is broken")

    with pytest.raises(EarnestError):
        write(breaking(), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def graded(*tools):
    found = subject(made(tools=tools))
    return grade([tool_of(one) for one in tools], lint([found], Selection(persona="pedantic")))


def test_a_grade_is_the_published_sum():
    full = graded(
        READ,
        tool(
            "delete_note",
            description="Delete a note",
            annotations={"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True, "openWorldHint": False},
        ),
    )
    assert (full.letter, full.coverage, full.honesty) == ("A", 40.0, 40.0) and full.score >= 98
    silent = graded(BARE)
    assert (silent.coverage, silent.honesty, silent.letter) == (0.0, 0.0, "E"), "silence is not honesty"
    assert grade([], []) is None


def test_a_tool_that_writes_under_read_only_caps_the_letter():
    lying = tool(
        "send_mail",
        description="Send emails to one or more recipients",
        annotations={"readOnlyHint": True, "openWorldHint": True},
    )
    many = [dict(READ, name=f"get_note_{n}") for n in range(40)]
    found = graded(lying, *many)
    assert found.score >= 90 and found.letter == "C" and any("C at best" in reason for reason in found.reasons)
    assert graded(*many).letter == "A"


def test_risk_classes_are_those_of_the_resolved_profile():
    reads = RawHints(read_only=True, open_world=False)
    assert classes(reads, [])[:2] == ("destroys_open", "reads_closed"), "who trusts nobody takes the worst"
    assert classes(RawHints(), []) == ("destroys_open",) * 3
    caught = lint([subject(made(tools=[SEND]))], Selection())
    assert classes(RawHints(read_only=True), caught)[1:] == ("reads_open", "destroys_open"), "its own words undo the claim"


def two(tmp_path, before, after, **more):
    write(before, tmp_path / "a")
    write(after, tmp_path / "b")
    return compare(tmp_path / "a", tmp_path / "b")


def test_a_difference_says_what_came_what_went_and_how_bad_each_change_is(tmp_path):
    stricter = tool("t1", annotations={"readOnlyHint": True})
    old = [stricter, tool("t2"), tool("t3", annotations={"readOnlyHint": False}), tool("gone"), tool("text")]
    new = [
        tool("t1"),
        tool("t2", annotations={"readOnlyHint": True}),
        tool("t3"),
        tool("come"),
        tool("text", description="Now other words"),
    ]
    (found,) = two(tmp_path, [made("s", old), made("left", [BARE])], [made("s", new), made("fresh", [BARE])])
    kinds = {change.tool: change.kind for change in found.changes}
    assert kinds == {
        "t1": "tightening",
        "t2": "loosening",
        "t3": "neutral",
        "gone": "removed",
        "come": "added",
        "text": "loosening",
    }
    assert (found.servers, found.appeared, found.gone, found.worst) == (1, ("fresh",), ("left",), True)
    (change,) = [one for one in found.changes if one.tool == "t2"]
    assert change.hints == ("readOnlyHint: absent -> true (loosening)",)


def test_nothing_but_neutral_changes_is_no_alarm_and_a_silent_server_is_not_gone(tmp_path):
    old = [made("s", [tool("t", annotations={"readOnlyHint": False})]), made("f", [BARE])]
    new = [made("s", [tool("t")]), made("f", legs=(), failure=Failure("open", "E1206", "silent"))]
    (found,) = two(tmp_path, old, new)
    assert not found.worst and found.silent == ("f",) and found.counts() == {"neutral": 1}


def test_cohorts_are_compared_by_name_unless_there_is_only_one(tmp_path):
    (single,) = two(tmp_path / "1", [made("s", [BARE], cohort="may")], [made("s", [BARE], cohort="july")])
    assert (single.earlier, single.later, single.unchanged) == ("may", "july", 1)
    with pytest.raises(EarnestError) as caught:
        two(tmp_path / "2", [made("s", [BARE], cohort="x"), made("s", [BARE], cohort="y")], [made("s", [BARE], cohort="z")])
    assert caught.value.code == "E1905"


def test_drift_is_a_query_too(tmp_path):
    two(tmp_path, [made("s", [READ, tool("gone")])], [made("s", [READ, BARE])])
    with opened(tmp_path / "b", tmp_path / "a") as connection:
        (row,) = figures(connection, query("drift")).dicts()
    assert (row["added"], row["removed"], row["changed"], row["unchanged"]) == (1, 1, 0, 1)


def test_what_is_no_text_or_no_tool_breaks_nothing():
    odd = leg(b'{"tools":[{"name":3},{"name":"a","description":"\\u0000\\u202e"},7,{"name":"a","inputSchema":{"x":1,"x":2}}]}')
    found = rows(made(legs=(odd,)))
    assert [row["name"] for row in found.tools] == ["", "a", "a"] and found.tools[2]["pin"] is None
    assert msgspec.json.encode(found.tools)
