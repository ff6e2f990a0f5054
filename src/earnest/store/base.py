"""The store as its users see it: rows, and one protocol that SQLite fills and PostgreSQL will.

Methods are synchronous. SQLite answers from its page cache in tens of microseconds, and a call that must
not go out before its label is committed has to wait in any case. A store behind a network plugs in the same
way: it runs its own event loop in its own thread, hands each method over with
`asyncio.run_coroutine_threadsafe` and waits, and the pdp keeps what it reads per call (labels, pins, trust)
in memory, as it does with SQLite, so that the data path waits for writes only.

Rows hold text, numbers and bytes, nothing else; a JSON value is its text. Times are seconds since the
epoch; zero is "never", an empty text "none". Every method may raise `EarnestError` E1400 to E1408 (see
`connection`).
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Literal, Protocol

import msgspec

ApprovalState = Literal["pending", "approved", "denied", "withdrawn", "expired", "used"]


class Server(msgspec.Struct, frozen=True):
    """A server by its identity. `name` is what the configuration calls it now; `artefact` the digest of its
    package; `launch` the JSON of what starts it or where it is, as it was shown to a person."""

    identity: str
    name: str
    trust: str = "untrusted"
    trusted_at: float = 0.0
    artefact: str = ""
    launch: str = "{}"
    seen_at: float = 0.0


class PinRow(msgspec.Struct, frozen=True):
    """What of a tool a person has accepted (`pin`, `definition`), and what the server says now where that
    differs (`pending_*`). `state` is the catalog's word. A tool that nobody has accepted has an empty
    `pin`."""

    identity: str
    authorization: str
    tool: str
    state: str
    pin: str = ""
    definition: bytes = b""
    formula: int = 0
    seen_at: float = 0.0
    pending_pin: str = ""
    pending_definition: bytes = b""
    pending_at: float = 0.0


class InstructionsRow(msgspec.Struct, frozen=True):
    """The same for the instructions of a server."""

    identity: str
    authorization: str
    state: str
    pin: str = ""
    text: str = ""
    seen_at: float = 0.0
    pending_pin: str = ""
    pending_text: str = ""
    pending_at: float = 0.0


class OperatorLabel(msgspec.Struct, frozen=True):
    """What the operator says of a tool, and for which pin it was written. `labels` is the JSON of
    `core.Labels`."""

    identity: str
    tool: str
    pin: str
    labels: str
    source: str
    written_at: float = 0.0


class Evidence(msgspec.Struct, frozen=True):
    """What an assay saw of one hint: `verdict` is `violated`, `supported` or `inconclusive`, `detail`
    JSON."""

    identity: str
    tool: str
    hint: str
    pin: str
    artefact: str
    verdict: str
    detail: str = "{}"
    seen_at: float = 0.0


class FlowRow(msgspec.Struct, frozen=True):
    """The labels of one node of the key tree. `key` and `parent` are JSON lists; `minted` and `announced` 0
    or 1."""

    key: str
    bits: int
    causes: str = "{}"
    minted: int = 0
    announced: int = 0
    touched_at: float = 0.0
    parent: str = ""


class Lock(msgspec.Struct, frozen=True):
    """The one lock an approval fits (law 7)."""

    principal: str
    identity: str
    conversation: tuple[str, ...]
    tool: str
    pin: str
    arguments_sha256: str
    labels: int
    policy_sha256: str
    change: str = ""
    """The digest of the change that a yes makes real, where the call was previewed."""


class Approval(msgspec.Struct, frozen=True):
    """One question to a person and what became of it. `lock` is what `lock_text` makes, `prompt` JSON."""

    id: str
    state: ApprovalState
    lock: str
    prompt: str
    channel: str = ""
    created: float = 0.0
    decided: float = 0.0
    expires: float = 0.0
    by: str = ""


class Endorsement(msgspec.Struct, frozen=True):
    """A standing yes of a person in one conversation. `values` is JSON: roles' values, never a tool's name
    alone. `expires` 0: it lasts as long as the conversation."""

    id: str
    conversation: str
    kind: str
    values: str
    created: float = 0.0
    expires: float = 0.0
    receipt: str = ""


class Alias(msgspec.Struct, frozen=True):
    """The name under which a tool is served within a scope (route or view)."""

    scope: str
    identity: str
    tool: str
    alias: str
    made_at: float = 0.0


class SavedPolicy(msgspec.Struct, frozen=True):
    """A policy saved at run time."""

    name: str
    text: str
    sha256: str
    saved_at: float = 0.0
    saved_by: str = ""


class Head(msgspec.Struct, frozen=True):
    """The last checkpoint of a writer's receipts; `signature` is the JWS."""

    writer: str
    seq: int
    head: str
    time: float
    signature: str = ""


def lock_text(lock: Lock) -> str:
    """A lock as the text that is compared: members in a fixed order."""
    return msgspec.json.encode(lock, order="sorted").decode()


class Store(Protocol):
    """The durable tables. A method that takes one row puts it in place of the one with the same key."""

    epoch: str
    """Made with the store: what was minted in another epoch is not known to be clean."""

    def close(self) -> None: ...
    def transaction(self) -> AbstractContextManager[None]:
        """All or nothing of what is written inside."""
        ...

    def meta(self, key: str) -> str: ...
    def set_meta(self, key: str, value: str) -> None: ...

    def server(self, identity: str) -> Server | None: ...
    def servers(self) -> list[Server]: ...
    def put_server(self, row: Server) -> None: ...

    def pin(self, identity: str, authorization: str, tool: str) -> PinRow | None: ...
    def pins(self, identity: str, authorization: str | None = None) -> list[PinRow]: ...
    def put_pin(self, row: PinRow) -> None: ...
    def drop_pin(self, identity: str, authorization: str, tool: str) -> None: ...

    def instructions(self, identity: str, authorization: str) -> InstructionsRow | None: ...
    def put_instructions(self, row: InstructionsRow) -> None: ...

    def operator_label(self, identity: str, tool: str) -> OperatorLabel | None: ...
    def operator_labels(self, identity: str | None = None) -> list[OperatorLabel]: ...
    def put_operator_label(self, row: OperatorLabel) -> None: ...
    def drop_operator_label(self, identity: str, tool: str) -> bool: ...

    def marks(self, principal: str) -> list[tuple[str, str, str]]:
        """Marked objects of stores: server identity, object, receipt."""

    def add_marks(self, principal: str, marks: Iterable[tuple[str, str, str]]) -> None: ...
    def any_marks(self) -> bool: ...
    def noise(self, identity: str) -> list[str]: ...
    def add_noise(self, identity: str, pattern: str, now: float) -> None: ...
    def drop_noise(self, identity: str, pattern: str) -> bool: ...

    def evidence(self, identity: str, tool: str | None = None) -> list[Evidence]: ...
    def put_evidence(self, row: Evidence) -> None: ...
    def drop_evidence(self, identity: str, tool: str | None = None) -> int: ...

    def flow(self, key: str) -> FlowRow | None: ...
    def flows(self) -> list[FlowRow]: ...
    def put_flow(self, row: FlowRow) -> None:
        """Bits only grow: those of the row are added to those that stand; `minted` and `announced` stay
        once set."""
        ...

    def drop_flow(self, key: str) -> bool:
        """Forget a node: the end of a conversation, or an expiry that the operator named."""
        ...

    def approval(self, id: str) -> Approval | None: ...
    def approvals(self, state: ApprovalState | None = None) -> list[Approval]: ...
    def ask(self, row: Approval) -> None:
        """A new question. Raises E1409 where the id is taken."""
        ...

    def settle(
        self,
        id: str,
        state: Literal["approved", "denied", "withdrawn"],
        now: float,
        *,
        expires: float = 0.0,
        channel: str = "",
        by: str = "",
    ) -> bool:
        """Answer a question that is pending and has not expired; False where it is not. `expires` is until
        when an approved one may be used. A withdrawal also takes back an approval that was not used."""
        ...

    def take(self, id: str, now: float) -> bool:
        """Use an approval: True exactly once, for one that is approved and has not expired."""
        ...

    def take_for(self, lock: Lock, now: float) -> Approval | None:
        """Use an approval that fits `lock`, if there is one: the oldest. The row comes back as it now is,
        used."""
        ...

    def expire_approvals(self, now: float) -> list[str]:
        """Mark what has expired; the ids."""
        ...

    def endorsements(self, conversation: str, now: float) -> list[Endorsement]: ...
    def put_endorsement(self, row: Endorsement) -> None: ...
    def drop_endorsement(self, id: str) -> bool: ...
    def drop_endorsements(self) -> int: ...

    def aliases(self, scope: str) -> list[Alias]: ...
    def add_alias(self, row: Alias) -> None:
        """A name once given stays. Raises E1409 where the name or the tool has another one in this scope."""
        ...

    def approved_config(self, path: str) -> str:
        """The SHA-256 under which a person approved the configuration at `path`."""
        ...

    def approve_config(self, path: str, sha256: str, now: float) -> None: ...

    def policy(self, name: str = "policy") -> SavedPolicy | None: ...
    def put_policy(self, row: SavedPolicy) -> None: ...
    def drop_policy(self, name: str = "policy") -> bool: ...

    def head(self, writer: str) -> Head | None: ...
    def heads(self) -> list[Head]: ...
    def put_head(self, row: Head) -> None: ...
