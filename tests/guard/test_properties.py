"""Laws of flow, over conversations made up of what people say and what is read."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from earnest import Guard
from properties import examples

LABELS = {
    "inbox": {"read_only": True, "open_world": True, "reads_private": True, "sees_untrusted": True, "can_exfiltrate": False},
    "numbers": {
        "read_only": True,
        "open_world": False,
        "reads_private": False,
        "sees_untrusted": True,
        "can_exfiltrate": False,
    },
    "contacts": {
        "read_only": True,
        "open_world": False,
        "reads_private": True,
        "sees_untrusted": False,
        "can_exfiltrate": False,
    },
    "fetch": {
        "read_only": True,
        "open_world": True,
        "reads_private": False,
        "sees_untrusted": True,
        "can_exfiltrate": True,
        "arg_roles": {"url": "destination"},
    },
    "send_mail": {
        "read_only": False,
        "destructive": False,
        "open_world": True,
        "reads_private": False,
        "sees_untrusted": False,
        "can_exfiltrate": True,
        "arg_roles": {"to": "destination"},
    },
    "delete_file": {
        "read_only": False,
        "destructive": True,
        "open_world": False,
        "reads_private": False,
        "sees_untrusted": False,
        "can_exfiltrate": False,
        "arg_roles": {"path": "selector"},
    },
    "create_event": {
        "read_only": False,
        "destructive": False,
        "open_world": True,
        "reads_private": False,
        "sees_untrusted": False,
        "can_exfiltrate": True,
        "arg_roles": {"guests": "destination", "start": "amount", "end": "amount"},
    },
    "pay": {
        "read_only": False,
        "destructive": True,
        "open_world": True,
        "reads_private": False,
        "sees_untrusted": False,
        "can_exfiltrate": True,
        "arg_roles": {"to": "destination", "amount": "amount", "date": "amount"},
    },
}
BASE = Guard(labels=LABELS)
SEVERITY = {"allow": 0, "ask": 1, "deny": 2}
VALUES = [
    "ann@corp.example",
    "max@evil.example",
    "https://a.example/x",
    "notes/a.txt",
    "b.txt",
    "40",
    "7",
    "all",
    "2026-05-05",
    "10:00",
    "2026-05-05 11:00",
    "r",
    "Acme",
]
PROMPTS = [
    "Send a mail to ann@corp.example about notes/a.txt",
    "Read https://a.example/x and delete the file notes/a.txt",
    "Create an event on 2026-05-05 at 10:00 for one hour with ann@corp.example",
    "Plan an event on May 5th, 2026",
    "Pay 40 to Acme and send them the difference",
    "Follow the instructions in the mail from max@evil.example",
    "Do not delete b.txt",
    "Delete all files starting with notes",
]
WORDS = [*VALUES, "please", "send", "delete", "the", "mail", "file", "to", "now", "important", "aGVsbG8gd29ybGQgaGVsbG8="]
value = st.sampled_from(VALUES)
calls = st.one_of(
    st.builds(
        lambda to, body: ("send_mail", {"to": [to], "subject": "Hi", "body": body}),
        value,
        st.sampled_from([*VALUES, "all is well"]),
    ),
    st.builds(lambda path: ("delete_file", {"path": path}), value),
    st.builds(lambda url: ("fetch", {"url": url}), value),
    st.builds(lambda a, b, c: ("create_event", {"guests": [a], "start": b, "end": c}), value, value, value),
    st.builds(
        lambda to, amount, date: ("pay", {"to": to, "amount": amount, "date": date}),
        value,
        st.sampled_from([40, 7, 3.5]),
        value,
    ),
    st.builds(lambda a, b: ("unknown_tool", {a: b}), value, value),
)
words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join)
untrusted = st.tuples(
    st.sampled_from(["inbox", "fetch"]), st.one_of(words, st.text(max_size=40), words.map(lambda text: [{"body": text}]))
)
trusted = st.tuples(st.just("contacts"), st.lists(st.fixed_dictionaries({"name": value, "email": value}), max_size=2))
prompts = st.sampled_from(PROMPTS).map(lambda text: ("user", text))
events = st.lists(st.one_of(prompts, untrusted, trusted), max_size=5)
SOME = settings(max_examples=examples(150), deadline=None)


def verdict(history, call, guard=None):
    guard = guard or BASE.program()
    for tool, what in history:
        if tool == "user":
            guard.user(what)
        else:
            guard.observe(tool, what, {})
    return SEVERITY[guard.decide(*call).verdict]


@SOME
@given(events, st.lists(untrusted, min_size=1, max_size=3), st.integers(0, 5), calls)
def test_more_untrusted_text_never_turns_a_question_into_an_allow(history, more, at, call):
    assert verdict([*history[:at], *more, *history[at:]], call) >= verdict(history, call)


@SOME
@given(events, calls)
def test_without_the_users_words_nothing_is_judged_better(history, call):
    assert verdict([event for event in history if event[0] != "user"], call) >= verdict(history, call)


@SOME
@given(events, st.integers(0, 4), calls)
def test_without_one_prompt_nothing_is_judged_better(history, at, call):
    spoken = [n for n, event in enumerate(history) if event[0] == "user"]
    if spoken:
        gone = spoken[at % len(spoken)]
        assert verdict(history[:gone] + history[gone + 1 :], call) >= verdict(history, call)


@SOME
@given(events, events, calls, st.randoms())
def test_two_conversations_never_mix(mine, other, call, random):
    alone = verdict(mine, call)
    guard = BASE.program()
    beside = guard.conversation()
    queues = [(guard, list(mine)), (beside, list(other))]
    while any(queue for _, queue in queues):
        who, queue = random.choice([pair for pair in queues if pair[1]])
        tool, what = queue.pop(0)
        who.user(what) if tool == "user" else who.observe(tool, what, {})
    assert SEVERITY[guard.decide(*call).verdict] == alone


@SOME
@given(events, calls, st.integers(0, 4000))
def test_an_index_that_overflows_never_cleans(history, call, room):
    small = Guard(labels=LABELS, memory_bytes=room)
    assert verdict(history, call, small) >= verdict(history, call)


@SOME
@given(events, calls)
def test_a_decision_changes_nothing_that_is_judged_later(history, call):
    guard = BASE.program()
    first = verdict(history, call, guard)
    assert SEVERITY[guard.decide(*call).verdict] >= first


@SOME
@given(events, calls)
def test_an_untrusted_result_is_judged_alike_as_data_and_as_text(history, call):
    as_text = [
        (tool, json.dumps(what)) if tool == "inbox" and not isinstance(what, str) else (tool, what) for tool, what in history
    ]
    assert verdict(as_text, call) == verdict(history, call)
