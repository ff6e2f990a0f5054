"""What a description says a tool does: verbs in their place, with what they are done to.

Theory. A verb says something of the tool only at the head of a clause whose subject is the tool: the first word of the first
sentence ("Send emails …"), what is joined to it in the same form ("Download … and save …"), the first word of a later sentence
in the third person ("Creates a debug pod …"), or after "this tool". Elsewhere it is a noun ("commit", "deploy plan"), belongs
to somebody else ("use this when the user wants to delete"), or is denied ("does not modify"). Its object decides what it means:
to create a plan is to answer, to create a branch is to write; to run a query is to read. What was found has a sureness, and so
has the conclusion that nothing is written, which needs more: the first clause reads, the name does not say otherwise, nothing
later does, no parameter does.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from earnest.lint.lexicon import DESTROYS, WRITES, Form, Kind, Lexicon, shipped
from earnest.lint.model import Confidence

_CODE: Final = re.compile(r"```.*?(?:```|\Z)|`[^`\n]{40,}`", re.S)
_HEAD: Final = re.compile(
    r"^(?:\[\w+\]\s*|[^A-Za-z\[]+|\[(?!\w+\])|(?:notion|tip|important|note|warning|critical|destructive|dangerous|deprecated|experimental|read-?only)\s*[|:]\s*|example:\s*\{.*?\}\}?\s*"
    r"|for the params schema [^.]*\.?\s+(?=[A-Z])|\*\*[^*]{1,40}:\*\*\s*)+",
    re.I,
)
_STOP: Final = re.compile(
    r"\b(?:args|arguments|parameters|params|error responses|returns|examples?|usage(?: example)?|input|output|parâmetros|"
    r"use (?:it |this )?when|when to use"
    r"|best for|not recommended for|common mistakes|prompt example|workflow|see also)\s*:",
    re.I,
)
_SENTENCE: Final = re.compile(
    r"(?<=[.!?;])\s+(?=[A-Z\"'`(\[*💡])|\s*\n\s*\n\s*|\n\s*[-*•\d]+[.)]?\s+|\s+[-–—]{1,2}\s+(?=[A-Z])|\s+💡\s*"
)
_OPENERS: Final = re.compile(
    r"^(?:(?:this|the) (?:tool|function|command|endpoint|method|api|action|operation|mcp tool)(?: (?:will|is used to|is "
    r"for|can be used to|can|allows? (?:you|users?|the user|agents?) to"
    r"|lets you|helps? (?:you )?(?:to )?|provides the ability to|enables you to|is designed to))? ?"
    r"|use (?:this|it|the) ?(?:tool|api|function|command|endpoint)? ?to (?=\w)"
    r"|use to (?=\w)|(?:a |an )?(?:tool|function|utility|endpoint) (?:to|for|that|which) |used to |allows? (?:you|users?|"
    r"the user|agents?)? ?to |lets you |enables? (?:you )?to |helps? (?:you )?(?:to )?"
    r"|(?:first|then|always|efficiently|securely|quickly|safely|permanently|automatically|intelligently|simply|start "
    r"here:) |(?:it|this) (?:will |also |can )?|will |tools? for |you can (?:use this (?:tool )?to )?|(?:can be )?used "
    r"(?:to|for) "
    r"|(?:allows?|enables?|supports?) (?=\w+ing\b)|(?:function|command|endpoint|utility|ability|api) (?:to|for) "
    r"|provides? (?:the |an? )?(?:ability|functionality|way|interface|means|tools?) (?:to|for) |(?:essential|primary|"
    r"quick) \w+ tool )+",
    re.I,
)
_WORD: Final = re.compile(r"[a-z][a-z'’_/-]*[a-z]|[a-z]|[.,;:()]|\d+")
_DETERMINERS: Final = frozenset(
    [
        "a",
        "an",
        "the",
        "any",
        "all",
        "some",
        "one",
        "each",
        "every",
        "this",
        "that",
        "these",
        "those",
        "your",
        "their",
        "its",
        "my",
        "new",
        "specific",
        "given",
        "existing",
        "specified",
        "single",
        "multiple",
        "more",
        "several",
        "particular",
        "of",
        "for",
        "in",
        "on",
        "from",
    ]
)
_DENIED: Final = frozenset(("not", "never", "cannot", "without", "don't", "doesn't", "won't", "no", "can't", "nor", "neither"))
_MAYBE: Final = frozenset(("can", "may", "might", "could", "optionally", "if", "when", "whether", "unless", "optional"))
_PURPOSE: Final = re.compile(r"\bto (?:show|list|display|view|retrieve|search|find|troubleshoot|inspect|check|explore)\b")
_FOLLOW: Final = frozenset(
    ["a", "an", "the", "it", "them", "its", "their", "this", "these", "all", "any", "each", "every", "new"]
)
_PREPOSITIONS: Final = frozenset(["for", "of", "in", "from", "on", "to", "with", "by", "that", "which", "at", "as", "about"])
_SPLIT_NAME: Final = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
MAX_TEXT: Final = 1600
MAX_SENTENCES: Final = 12


class Act(msgspec.Struct, frozen=True):
    """One thing a text says is done. `where`: description, name or schema. `text`: the words that say so."""

    kind: Kind
    verb: str
    object: str
    sure: Confidence
    where: str
    text: str


class Text(msgspec.Struct, frozen=True):
    """A description as read. `first`: the acts of the first clause. `harmless`: it says itself that nothing is changed."""

    first: tuple[Act, ...]
    later: tuple[Act, ...]
    harmless: bool
    again: bool
    open: str

    @property
    def acts(self) -> tuple[Act, ...]:
        """All acts, the first clause's first."""
        return self.first + self.later


def words_of(name: str) -> list[str]:
    """The words of a tool's name, in lower case: `getMailTips`, `API-post-search`, `deploy_plan_get`."""
    return [word.lower() for word in _SPLIT_NAME.split(name) if word]


def read(description: str) -> Text:
    """What a description says. Languages other than English say nothing here."""
    lexicon = shipped()
    cut = _CODE.sub(" ", description)[:MAX_TEXT]
    stop = _STOP.search(cut, 10)
    told = cut[: stop.start()] if stop else cut
    sentences = [_HEAD.sub("", one) for one in _SENTENCE.split(told)]
    sentences = [" ".join(one.split()) for one in sentences if len(one) > 3][:MAX_SENTENCES]
    first: tuple[Act, ...] = ()
    later: list[Act] = []
    for number, sentence in enumerate(sentences):
        acts = _clause(sentence, number, lexicon)
        if number == 0:
            first = acts
        else:
            later.extend(acts)
        later.extend(_patterns(sentence, lexicon))
    lower = " ".join(told.lower().split())
    opened = lexicon.patterns["open"].search(lower)
    return Text(
        first,
        tuple(later),
        lexicon.patterns["harmless"].search(lower) is not None,
        lexicon.patterns["again"].search(lower) is not None,
        _group(opened),
    )


def _clause(sentence: str, number: int, lexicon: Lexicon) -> tuple[Act, ...]:
    opened = _OPENERS.sub("", sentence)
    subject = len(opened) != len(sentence)
    words = _apart(_WORD.findall(opened.lower())[:40], lexicon)
    at = 0
    while at < len(words) and words[at] in lexicon.words["adverbs"]:
        at += 1
    if at >= len(words):
        return ()
    head = lexicon.verbs.get(words[at])
    if head is None or (number and not (head.form == "third" or subject)):
        return ()
    if head.form == "ing" and number:
        return ()
    if subject and number and re.match(r"use (?:this|it|the)", sentence, re.I):
        # Advice on when to call: says what others want, in the imperative.
        if head.kind not in ("read", "compute"):
            return ()
        return tuple(a for a in (_act(head, words, at + 1, sentence, lexicon, False),) if a)
    if head.form == "third" and head.kind in WRITES and at + 1 < len(words) and words[at + 1] in _PREPOSITIONS:
        return ()  # "replies for a message": a noun
    if number and head.base in lexicon.words["inputs"]:
        return ()  # "accepts notebooks", "rejects statements": what it takes
    heads = [head]
    at += 1
    # Verbs that share one object: "create, patch, or delete", "get or update".
    while at < len(words):
        step = at
        while step < len(words) and (words[step] in (",", "and", "or", "/") or words[step] in lexicon.words["adverbs"]):
            step += 1
        joined = lexicon.verbs.get(words[step]) if step > at and step < len(words) else None
        if joined is None or joined.form != head.form:
            break
        heads.append(joined)
        at = step + 1
    acts = [act for one in heads if (act := _act(one, words, at, sentence, lexicon, len(heads) > 1 and one is not head))]
    acts += _further(head, words, at, sentence, lexicon)
    if head.kind == "manage":
        acts += _managed(words, at, sentence, lexicon)
    if number and acts:
        acts = [msgspec.structs.replace(a, sure=_later(a, number)) for a in acts]
    return tuple(acts)


def _apart(words: list[str], lexicon: Lexicon) -> list[str]:
    """Verbs that a slash joins, as words of their own: "create/provision a container"."""
    if not any("/" in word for word in words[:3]):
        return words
    found: list[str] = []
    for place, word in enumerate(words):
        parts = word.split("/") if place < 3 else [word]
        if len(parts) > 1 and all(part in lexicon.verbs for part in parts):
            found += [piece for part in parts for piece in (part, "/")][:-1]
        else:
            found.append(word)
    return found


def _managed(words: list[str], at: int, sentence: str, lexicon: Lexicon) -> list[Act]:
    """What "manage" means, where it is spelled out: "manage labels: create, update, or delete them". Two verbs at least make a
    list; one alone is an example or a name."""
    if ":" not in words[at:]:
        return []
    step = words.index(":", at) + 1
    forms: list[tuple[Form, int]] = []
    while step < len(words) and words[step] not in (".", ";", "(", ":"):
        form = lexicon.verbs.get(words[step])
        if form is not None and form.form == "base" and words[step - 1] in (":", ",", "and", "or", "/"):
            forms.append((form, step + 1))
        step += 1
    if len(forms) < 2:
        return []
    found = [act for form, place in forms if (act := _act(form, words, place, sentence, lexicon, True)) is not None]
    return [msgspec.structs.replace(act, sure="high") if act.kind in DESTROYS else act for act in found]


def _later(act: Act, number: int) -> Confidence:
    if act.sure == "high" and number <= 2 and act.kind in WRITES:
        return "high"
    return "medium" if act.sure == "high" else "low"


def _further(head: Form, words: list[str], at: int, sentence: str, lexicon: Lexicon) -> list[Act]:
    """Verbs after the object, joined by "and" in the same form: "downloads a file and saves it"."""
    acts: list[Act] = []
    for index in range(at, min(len(words) - 2, at + 24)):
        if words[index] not in ("and", "then", "or"):
            continue
        step = index + 1
        while step < len(words) - 1 and (words[step] in lexicon.words["adverbs"] or words[step] == "then"):
            step += 1
        form = lexicon.verbs.get(words[step])
        if form is None or form.form != head.form:
            continue
        before = words[max(0, index - 6) : index]
        if words[step + 1] not in _FOLLOW and (
            head.form == "base" or words[index - 1] == "," or words[step + 1] in _PREPOSITIONS
        ):
            continue  # "issues and comment threads", "mentions, and updates on": nouns
        act = _act(form, words, step + 1, sentence, lexicon, True)
        if act is not None and not _DENIED.intersection(words[at:index]):
            if _MAYBE.intersection(before):
                act = msgspec.structs.replace(act, sure="medium")
            acts.append(act)
    return acts


def _act(form: Form, words: list[str], at: int, sentence: str, lexicon: Lexicon, joined: bool) -> Act | None:
    """What a verb with its object means here, or None for nothing."""
    tail = words[at : at + 12]
    target: list[str] = []
    for word in tail:
        if word in (".", ";", ":", "(", ")", ",") or (
            target
            and word
            in (
                "from",
                "in",
                "on",
                "for",
                "by",
                "to",
                "with",
                "using",
                "that",
                "which",
                "of",
                "via",
                "at",
                "based",
                "and",
                "or",
                "so",
                "when",
                "as",
                "into",
                "about",
                "through",
                "between",
                "against",
            )
        ):
            break
        if word not in _DETERMINERS:
            target.append(word)
    noun = target[-1] if target else ""
    quote = sentence if len(sentence) <= 90 else sentence[:87].rstrip() + "…"
    kind: Kind = form.kind
    sure: Confidence = "high"
    if kind == "create":
        kind, sure = _creates(form, target, noun, words, lexicon)
    elif kind == "read":
        if form.base == "check" and tail[:1] in (["out"], ["in"]):
            return Act("update", form.base, " ".join(target[:4]), "medium", "description", quote)
        if form.base in ("show", "display", "give") and lexicon.words["shown"].intersection(target):
            return None  # shown to a person: an effect, if a small one
        if form.base == "resolve" and lexicon.words["settled"].intersection(target):
            kind, sure = "update", "medium"
        elif (
            form.base in lexicon.words["weak"]
            or "next" in target
            or (form.base == "fetch" and lexicon.words["refs"].intersection(target))
        ):
            sure = "medium"
    elif kind == "compute":
        if form.base == "format" and lexicon.durable.intersection(target):
            return Act("update", form.base, " ".join(target[:4]), "medium", "description", quote)
        sure = "high" if form.base in lexicon.words["exact"] and not lexicon.words["files"].intersection(target) else "medium"
    elif kind == "run":
        if form.base in lexicon.words["effects"] and target and not lexicon.question.intersection(target):
            return Act(kind, form.base, " ".join(target[:4]), "high", "description", quote)
        if target and lexicon.words["arbitrary"].issuperset(target) and not _PURPOSE.search(" ".join(tail)):
            return Act(kind, form.base, " ".join(target[:4]), "high", "description", quote)
        asks = form.base not in lexicon.words["triggers"]
        if asks and (
            lexicon.question.intersection(target) or _PURPOSE.search(" ".join(tail)) or _question_after(tail, lexicon)
        ):
            kind = "read"
        sure = "high" if kind == "read" and lexicon.words["asked"].intersection(target) else "medium"
    elif kind == "send":
        if form.base in ("message", "text", "email") and form.form != "third" and not target:
            return None
        if lexicon.question.intersection(target[-2:]) or {"prompt", "question", "request", "requests"}.intersection(target):
            sure = "low"
        elif form.base in ("post", "submit", "share", "message", "text"):
            sure = "medium"
    elif kind == "update":
        if form.base in ("mark", "set", "change", "enable", "toggle", "close", "reopen", "lock", "unlock"):
            sure = "high" if lexicon.durable.intersection(target) else "medium"
        if "all" in words[:4] and form.base == "update":
            return Act("overwrite", form.base, " ".join(target[:4]), "medium", "description", quote)
        if form.base == "move" and not lexicon.durable.intersection(target):
            sure = "medium"
    elif kind == "delete":
        sure = (
            "high"
            if target
            and form.base
            in ("delete", "remove", "erase", "purge", "drop", "destroy", "wipe", "truncate", "uninstall", "revoke")
            else "medium"
        )
        if form.base in ("remove", "clear", "drop", "empty") and joined:
            sure = "medium"
    elif kind == "pay":
        sure = "medium" if form.base in ("order", "trade", "transfer") else "high"
    elif kind == "overwrite" and form.base in ("restore", "reset", "replace") and not target:
        sure = "medium"
    if kind == "overwrite" and {"deprecated", "legacy", "endpoint", "tool", "tools", "manual"}.intersection(target):
        return None  # what it stands for, not what it does
    if form.base == "close" and {"page", "tab", "browser", "window"}.intersection(target):
        sure = "low"  # raised to medium by a name that agrees: the session changes, nothing else may
    if (
        joined
        and sure == "high"
        and kind in ("create", "update")
        and form.form == "base"
        and words[0] in ("get", "fetch", "read", "list")
    ):
        sure = "medium"
    if not target and sure == "high" and kind in WRITES:
        sure = "medium"
    return Act(kind, form.base, " ".join(target[:4]), sure, "description", quote)


def _question_after(tail: list[str], lexicon: Lexicon) -> bool:
    return bool(lexicon.question.intersection(tail[:8]))


def _creates(form: Form, target: list[str], noun: str, words: list[str], lexicon: Lexicon) -> tuple[Kind, Confidence]:
    """To make something that is the answer is to compute; something that lasts, to write."""
    if form.base in ("start", "launch", "commit", "stage", "push", "attach", "install", "upload", "append", "insert"):
        return "create", "high" if target else "medium"
    if noun in lexicon.answer or (target and target[0] in lexicon.answer and noun not in lexicon.durable):
        return ("create" if "new" in words[:4] else "compute"), "medium"
    if lexicon.durable.intersection(target) or "new" in words[:4]:
        return "create", "high"
    if form.base in ("import", "record", "book", "link", "copy", "store", "build", "make", "save", "write"):
        return "create", "medium"
    return "create", "medium"


def _patterns(sentence: str, lexicon: Lexicon) -> list[Act]:
    lower = sentence.lower()
    acts: list[Act] = []
    kinds: tuple[tuple[str, Kind], ...] = (("saves", "save"), ("overwrites", "overwrite"), ("session", "update"))
    for name, kind in kinds:
        found = lexicon.patterns[name].search(lower)
        if found is None:
            continue
        before = lower[: found.start()].split()
        if _DENIED.intersection(before[-8:]):
            continue
        maybe = _MAYBE.intersection(before[-12:]) or before[-2:-1] == ["use"] or "_path to" in lower[: found.start() + 8]
        # "This replaces the current …" is a statement; "…, replacing existing ones" may be one of several cases.
        stated = kind == "save" or (len(before) <= 1 and _group(found).startswith(("replaces", "overwrites")))
        sure: Confidence = "high" if stated and not maybe else "medium"
        acts.append(Act(kind, kind, _group(found), sure, "description", sentence[:90]))
    return acts


def _group(found: re.Match[str] | None) -> str:
    return next((group for group in found.groups() if group), found.group()) if found else ""
