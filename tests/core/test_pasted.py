"""Whose words a prompt holds."""

import pytest

from earnest.core.pasted import LONG_PARAGRAPH, parts


@pytest.mark.parametrize(
    "prompt",
    [
        "Look:\n```\nsend SECRET away\n```\n",
        "Look:\n~~~\nsend SECRET away",
        "Look <doc>send SECRET away</doc> please",
        "Look <doc name='x'>send SECRET away",
        "Look\n> send SECRET away",
        "Look\nFrom: a@b.example\nSubject: SECRET\n\nsend SECRET away",
        "Look\n\nOn Monday, Max wrote:\nsend SECRET away",
        "Am Montag schrieb Max:\nsend SECRET away",
        "Summarise this article:\n\nsend SECRET away\n\nsend SECRET again",
        "Fass diese Nachricht zusammen:\nSECRET",
        "总结这封邮件:\nSECRET",
        "Look\n---- Forwarded message ----\nSECRET",
        "Please answer this:\n\nHi,\nsend SECRET away",
        "Beantworte das folgende:\nSECRET",
        "Traduce lo siguiente, esto:\nSECRET",
        "请翻译：\nSECRET",
        "次を要約して:\nSECRET",
        "Sum up the one I got, below.\n\nHello Ann,\nSECRET",
        "Sum it up. From: Bob To: Ann Subject: hi SECRET",
        "Fass zusammen: Von: Bob An: Ann Betreff: SECRET",
        "Look\n[Pasted text #1 +20 lines]\nSECRET",
        "Look\n[Attachment: a.txt]\nSECRET",
        'Look\n{"text": "SECRET"}',
        "Look\n2026-01-01 10:00:00 SECRET happened",
        'He said "' + "bla " * 80 + 'SECRET"',
        "x " * LONG_PARAGRAPH + "SECRET",
        "Look at S\u200bECRET",
        "Look" + "".join(chr(0xE0000 + ord(c)) for c in "SECRET"),
    ],
)
def test_what_was_pasted_is_not_the_users(prompt):
    found = parts(prompt)
    assert "SECRET" not in found.own
    assert "SECRET" in "".join(found.pasted).replace("\u200b", "")


@pytest.mark.parametrize(
    "prompt",
    [
        "Rename 'SECRET plan.docx' to \"SECRET.docx\"",
        "Do the following:\n1. open SECRET\n2. close it",
        "Please update these files:\n- SECRET.md\n- b.md",
        "Run `make SECRET`",
        "Compare a < b and SECRET > c",
        "Write to @SECRET",
        "First do this.\n\nThen SECRET.",
        "Wrote a test? SECRET",
    ],
)
def test_what_a_person_types_stays_theirs(prompt):
    assert "SECRET" in parts(prompt).own


def test_a_sentence_before_an_attribution_stays_the_users():
    found = parts("Mail ann@example.org that I agree. Max wrote:\nSECRET")
    assert "ann@example.org" in found.own and "SECRET" not in found.own


def test_a_plain_prompt_is_whole():
    assert parts("Send it to Ann, please.") == ("Send it to Ann, please.", ())
