"""The user's own words, told apart from what only passed through the user's hands.

Theory. A prompt holds what a person typed, and often more: a mail they pasted, a page the host put in place of `@file`, a
log, a
quotation. A stranger wrote those, so they steer nothing. A mark of such text ends the person's words for as long as the mark
says:

    a fenced block, a `<…>` block        to its end, or to the end of the prompt where it has none
    lines that start with `>`            those lines
    heads of a mail, `… wrote:`, `---- Forwarded`, `BEGIN …`, "here is the mail:" or "answer this:" at the end of a line
                                         to the end of the prompt: a blank line inside what was pasted looks like any other
    a long quotation, a long paragraph   that quotation, that paragraph
    lines of JSON, of a log, of a trace  those lines
    what no screen shows                 those characters; a word that holds one is not the user's

When in doubt it was pasted: that costs a question, the other mistake costs the rule. Short quotations (titles, file names, a
line to send) are
the user's: people quote what they mean.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final, NamedTuple

from earnest.core.disguise import invisible, tagged

LONG_QUOTATION: Final = 240
LONG_PARAGRAPH: Final = 1500
_FENCE: Final = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n]*\n?(.*?)(?:^[ \t]*\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
_TAG: Final = re.compile(r"<([A-Za-z][\w:.-]*)(\s[^<>]*)?>")
_VOID: Final = re.compile(r"<[A-Za-z!/?][^<>]*>|<!--.*?(?:-->|\Z)", re.DOTALL)
_QUOTED_LINE: Final = re.compile(r"^[ \t]*(?:>|\|).*$", re.MULTILINE)
_HEAD: Final = re.compile(
    r"^[ \t]*(?:from|to|cc|bcc|subject|date|sent|reply-to|von|an|betreff|gesendet|de|para|asunto|fecha|enviado|"
    r"发件人|收件人|主题|日期|差出人|宛先|件名|日時)[ \t]*[:：]",
    re.MULTILINE | re.IGNORECASE,
)
_WROTE: Final = re.compile(
    r"(?:^|(?<=[.!?][ \t]))[^\n.!?]{0,120}(?:\bwrote|\bschrieb|\bescribi[óo]|写道|のメッセージ|さんは書きました)"
    r"[^\n]{0,80}[:：][ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)
_RULE: Final = re.compile(
    r"^[ \t]*(?:[-=_*#]{3,}[ \t]*\S.*|\[(?:attachment|pasted|file|document|image|anhang|adjunto|附件|添付)[^\]\n]*\].*"
    r"|.{0,3}begin [a-z0-9 ]+[-=]*[ \t]*)$",
    re.MULTILINE | re.IGNORECASE,
)
_INTRODUCED: Final = re.compile(
    r"^[^\n]*(?<!\w)(?:e-?mails?|mails?|messages?|letter|text|pages?|articles?|posts?|logs?|outputs?|errors?|trace(?:back)?|"
    r"tickets?|issues?|documents?|files?|"
    r"transcripts?|contents?|readme|reviews?|comments?|threads?|chats?|conversations?|invoices?|attachments?|pasted?|below|"
    r"nachricht|seite|artikel|datei|ausgabe|fehler|dokument|inhalt|unten|correo|mensaje|página|artículo|archivo|salida|documento|contenido)(?!\w)"
    r"[^\n]{0,60}[:：][ \t]*\n"
    r"|^[^\n]*(?:邮件|消息|页面|文章|文件|日志|输出|内容|メール|メッセージ|"
    r"ページ|記事|ファイル|ログ|出力|内容|本文)[^\n]{0,60}[:：][ \t]*\n",
    re.MULTILINE | re.IGNORECASE,
)
_ASKED_OF: Final = re.compile(
    r"^[^\n]*(?<!\w)(?:answer|reply|respond|summari[sz]e|translate|explain|review|proofread|check|read|forwarded|"
    r"antworte|beantworte|übersetze?|prüfe?|lies|erkläre?|responde|contesta|traduce|explica|revisa|lee)(?!\w)"
    r"[^\n]{0,40}(?<!\w)(?:this|these|following|it|dies|diese[nsmr]?|folgende[nsmr]?|das|esto|este|esta|siguiente)(?!\w)"
    r"[^\n.]{0,20}[:：][ \t]*\n"
    r"|^[^\n]*(?:回复|回答|总结|翻译|解释|返信|要約|翻訳|説明)[^\n]{0,20}[:：][ \t]*\n"
    r"|^[^\n]*(?:(?<!\w)(?:below|unten|abajo|a continuación)(?!\w)|下面|以下|下記)[^\n]{0,40}[.。][ \t]*\n",
    re.MULTILINE | re.IGNORECASE,
)
"""What is to be done with a text that follows, where it is not called by a name."""
_HEADS_IN_LINE: Final = re.compile(
    r"(?<!\w)(?:from|von|de|发件人|差出人)[ \t]*[:：][^\n]{1,120}?"
    r"(?<!\w)(?:to|subject|date|sent|an|betreff|gesendet|para|asunto|fecha|收件人|主题|日期|宛先|件名|日時)[ \t]*[:：]",
    re.IGNORECASE,
)
"""The heads of a mail whose lines were joined on the way."""
_MACHINE: Final = re.compile(
    r"^[ \t]*(?:[\[{].*[\]},]|[\]}],?|\"[^\"\n]*\"[ \t]*:.*|\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*|"
    r"\[?(?:ERROR|WARN(?:ING)?|INFO|DEBUG|TRACE)\]?[ :].*|"
    r"Traceback \(most recent call last\):|File \"[^\n]*|at [\w.$]+\([^\n]*\)|[+-]{3} [^\n]*|@@ [^\n]*@@.*)$",
    re.MULTILINE,
)
_QUOTATION: Final = re.compile(r"\"([^\"]*)\"|“([^”]*)”|«([^»]*)»|„([^“”]*)[“”]|「([^」]*)」|『([^』]*)』")


class Parts(NamedTuple):
    """A prompt taken apart: the person's `own` words, and what was `pasted`."""

    own: str
    pasted: tuple[str, ...]


def parts(prompt: str) -> Parts:
    """Take a prompt apart. Characters of `own` are in their order; a gap stands where something was taken out."""
    found: list[str] = []
    hidden = tagged(prompt)
    if hidden:
        found.append(hidden)
    text = prompt if prompt.isascii() else _shown(prompt, found)
    text = _take(_FENCE, text, found)
    text = _blocks(text, found)
    text = _from_the_first(text, found)
    for pattern in (_QUOTED_LINE, _MACHINE):
        text = _take(pattern, text, found)
    text = _QUOTATION.sub(lambda match: _quotation(match, found), text)
    kept: list[str] = []
    for paragraph in re.split(r"\n[ \t]*\n", text):
        (found if len(paragraph) > LONG_PARAGRAPH else kept).append(paragraph)
    return Parts("\n\n".join(kept), tuple(piece for piece in found if piece.strip()))


def _shown(text: str, found: list[str]) -> str:
    """Without what does not show, and without words it is inside of (joiners between emoji and in scripts that need them
    stay)."""
    if not any(invisible(character) for character in text):
        return text
    kept: list[str] = []
    for word in re.split(r"(\s+)", text):
        odd = [c for c in word if invisible(c) and c not in "\u200d\ufe0f\ufe0e"]
        if odd and any(c.isalnum() for c in word):
            found.append(word)
            kept.append(" \n ")
        else:
            kept.append(word if not odd else "".join(c for c in word if c not in odd))
    return "".join(kept)


def _take(pattern: re.Pattern[str], text: str, found: list[str]) -> str:
    def gone(match: re.Match[str]) -> str:
        found.append(match.group())
        return "\n"

    return pattern.sub(gone, text)


def _blocks(text: str, found: list[str]) -> str:
    """`<name …> … </name>` with all inside; an opening without its end takes what is left; a single tag takes itself."""
    kept: list[str] = []
    at = 0
    while (match := _TAG.search(text, at)) is not None:
        if match.group().endswith("/>"):
            kept.append(text[at : match.start()] + "\n")
            found.append(match.group())
            at = match.end()
            continue
        kept.append(text[at : match.start()] + "\n")
        end = text.rfind(f"</{match.group(1)}>", match.end())
        stop = end + len(match.group(1)) + 3 if end >= 0 else len(text)
        found.append(text[match.start() : stop])
        at = stop
    return _take(_VOID, "".join(kept) + text[at:], found)


def _from_the_first(text: str, found: list[str]) -> str:
    """Cut at the first mark after which nothing is the person's."""
    cuts = [match.start() for match in (_WROTE.search(text), _RULE.search(text), _HEADS_IN_LINE.search(text)) if match]
    heads = list(_HEAD.finditer(text))
    for first, second in pairwise(heads):
        if text.count("\n", first.start(), second.start()) <= 2:
            cuts.append(first.start())
            break
    for mark in (_INTRODUCED, _ASKED_OF):
        introduced = next((m for m in mark.finditer(text) if not _listing(text[m.end() :])), None)
        if introduced:
            cuts.append(introduced.end())
    if not cuts:
        return text
    cut = min(cuts)
    found.append(text[cut:])
    return text[:cut]


def _listing(rest: str) -> bool:
    """Whether what follows a colon is a short list, such as of steps or names: the person's own."""
    lines = [line for line in rest.split("\n") if line.strip()]
    marked = [line for line in lines if re.match(r"[ \t]*(?:[-*•]|\d{1,2}[.)、])[ \t]*\S", line)]
    return bool(lines) and len(marked) == len(lines) and len(rest) < LONG_PARAGRAPH


def _quotation(match: re.Match[str], found: list[str]) -> str:
    inside = next((group for group in match.groups() if group is not None), "")
    if len(inside) <= LONG_QUOTATION and inside.count("\n") < 2:
        return match.group()
    found.append(inside)
    return "\n"
