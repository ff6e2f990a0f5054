"""The words in which a call is put to the engine, and the engine's answer."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from earnest.core.flow import Key
from earnest.core.lanes import Lane
from earnest.core.profile import Labels, Profile
from earnest.core.verdict import Reason, Remedy, Verdict
from earnest.pdp.catalog import Server, Tool


class Question(msgspec.Struct, frozen=True):
    """One call that wants to go out.

    `tool`: the catalog's entry, of a tool or of a method that is judged like one. `subject`: the name or URI as the server
    knows it. `arguments`: raw JSON of what the client chose. `hidden`: why the tool is not in the client's view, or empty;
    `hides` says the same of a dispatcher's target. `folder`: where the person works; a path below it counts as named where the
    rest of it is.
    """

    server: Server
    tool: Tool
    method: str
    subject: str
    arguments: bytes
    client: str
    client_asks: bool
    ask_host: bool
    principal: str
    key: Key
    cwd: str | None = None
    overlay: str = ""
    hidden: str = ""
    hides: Callable[[Tool], str] | None = None
    folder: str = ""
    own: Labels | None = None
    """What the server itself says of this very call (`tools/resolve`), where it was asked."""
    for_real: bool = False
    """It was run over a copy, and what it does there is nothing to let pass because it can be undone."""
    listed: int = 0
    """Labels that the server's lists put on what is asked for."""


class Judgement(msgspec.Struct):
    """What was decided of one call, and all that its receipt needs."""

    question: Question
    time: float
    verdict: Verdict
    reasons: tuple[Reason, ...]
    remedies: tuple[Remedy, ...]
    profile: Profile
    arguments_sha256: str
    labels_before: int
    policy_sha256: str
    id: str = ""
    """The id of its decision record, once that is written."""
    judged_as: str = ""
    """The target of a dispatcher, where the call was judged as that."""
    lane: Lane | None = None
    """Which lane of a contained server it goes to: what was judged is what that lane can do."""
    undoable: bool = False
    """It is allowed because what it changes can be undone: so it has to be run over a copy, and that made real."""
    change: str = ""
    """The digest of what it changes, where it was run over a copy first and a yes makes just that real."""
    host_may_ask: bool = False
    """Only preset and user rules ask, and the operator left those asks to the client."""
    approval: str = ""
    endorsement: str = ""
    source_endorsed: str = ""
    """The receipt of a person's word, in this conversation, for what this very call reads."""
    labels_after: int = 0
    sanitized: str = ""
    """The sanitizer that its result was cut down by."""
    result_labels: int = 0
    """What the answer itself was taken for, once it came."""
