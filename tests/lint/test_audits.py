"""Each audit on tools of real servers: one on which it speaks, one on which it is silent.

`data/audits/ID.json` holds both, cut from recordings (large schemas to names and types). `altered` says what was changed
where no recorded server had the mistake.
"""

import json
from pathlib import Path

import msgspec
import pytest

from earnest.lint.evidence import gather
from earnest.lint.model import Server, Unread
from earnest.lint.reading import read_bytes
from earnest.lint.registry import AUDITS, find
from earnest.lint.source_python import tools_in

DATA = Path(__file__).parent / "data" / "audits"
IDS = [audit.id for audit in AUDITS]


def server(case, name, earlier=None):
    if "source" in case:
        found = tools_in(case[name], "server.py")
        return Server("x", (), unread=(found,)) if isinstance(found, Unread) else Server("x", tuple(found))
    found = read_bytes(json.dumps(case[name]).encode(), "x")[0]
    if earlier is not None:
        found = msgspec.structs.replace(found, earlier=read_bytes(json.dumps(case[earlier]).encode(), "x")[0].tools)
    return found


def facts(findings):
    names = ("tool", "hint", "severity", "confidence", "message")
    return [{name: getattr(finding, name) for name in names} for finding in findings]


def case(audit_id):
    return json.loads((DATA / f"{audit_id}.json").read_text("utf-8"))


def test_there_is_a_case_for_each_audit_and_no_other():
    assert sorted(path.stem for path in DATA.glob("*.json")) == sorted(IDS)
    assert len(set(IDS)) == len(IDS)


@pytest.mark.parametrize("audit_id", IDS)
def test_an_audit_finds_what_it_is_for(audit_id):
    given = case(audit_id)
    found = facts(find(audit_id).run(gather(server(given, "positive", "earlier" if "earlier" in given else None))))
    assert found and found == given["expect"]


@pytest.mark.parametrize("audit_id", IDS)
def test_an_audit_is_silent_on_another_real_server(audit_id):
    given = case(audit_id)
    earlier = "negative_earlier" if "earlier" in given else None
    assert facts(find(audit_id).run(gather(server(given, "negative", earlier)))) == []


@pytest.mark.parametrize("audit_id", [one for one in IDS if "altered_positive" in case(one)])
def test_an_audit_also_finds_what_no_recorded_server_does(audit_id):
    given = case(audit_id)
    found = facts(find(audit_id).run(gather(server(given, "altered_positive"))))
    assert given["altered"] and found and found == given["altered_expect"]


def test_few_audits_have_no_true_positive_from_a_real_server():
    invented = {one for one in IDS if "altered" in case(one) and "altered_positive" not in case(one)}
    assert invented == {"hidden-characters", "malformed-hint", "remote-reference", "secret-default", "unread-source"}


@pytest.mark.parametrize("audit_id", IDS)
def test_an_audit_is_documented(audit_id):
    audit = find(audit_id)
    assert all(len(text) > 20 for text in (audit.what, audit.why, audit.example)) and audit.how


def test_a_comment_beside_the_source_silences_an_audit():
    given = case("read-only-but-writes")
    found = server(given, "positive")
    quiet = [msgspec.structs.replace(tool, ignored=frozenset(["read-only-but-writes"])) for tool in found.tools[:1]]
    found = msgspec.structs.replace(found, tools=(*quiet, *found.tools[1:]))
    assert [one["tool"] for one in facts(find("read-only-but-writes").run(gather(found)))] == [found.tools[1].name]
