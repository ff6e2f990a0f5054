"""From claim to profile: what a tool is taken to do, and on what basis.

Theory. A profile has seven values: the four hints and three flow facets. Each value has a basis. A value is settled
by the first row that applies (the riskier side first), rows in this order:

    1 operator override        raises always; lowers while the pin and identity it was written for hold
    2 containment in force     never raises; lowers always
    3 observed violation       raises always; survives new pins until assayed again
    4 pack                     raises always; lowers for a verified or trusted server, identity and pin pattern matching
    5 claim                    raises always; lowers for a trusted server while the pin holds
    6 observed support         never raises; lowers a hint the server claims, for a verified or trusted server,
                               same pin, same artefact
    7 default of the spec      raises always

Facets are true unless something says no; who may say no is in `resolve_facet`. Everything here is finite, so the
tests enumerate it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from earnest.core.hints import HINTS, RawHints

FACETS: Final = ("reads_private", "sees_untrusted", "can_exfiltrate")
NAMES: Final = HINTS + FACETS
"""The seven names of a profile, hints first. `tool.NAME` in the policy language."""


class Basis(StrEnum):
    """How a resolved value is known."""

    DEFAULT = "default"
    CLAIMED = "claimed"
    PACK = "pack"
    OBSERVED = "observed"
    ENFORCED = "enforced"
    OPERATOR = "operator"


class Trust(StrEnum):
    """How far the operator trusts a server. Never set by the server."""

    UNTRUSTED = "untrusted"
    VERIFIED = "verified"
    TRUSTED = "trusted"


class Value(msgspec.Struct, frozen=True):
    """One resolved value. `source` names who supplied it (a pack and line, an operator label, a receipt), or is empty."""

    value: bool
    basis: Basis
    source: str = ""


class Profile(msgspec.Struct, frozen=True):
    """What a tool is taken to do."""

    read_only: Value
    destructive: Value
    idempotent: Value
    open_world: Value
    reads_private: Value
    sees_untrusted: Value
    can_exfiltrate: Value

    def get(self, name: str) -> Value:
        """The value for one of `NAMES`."""
        value: Value = getattr(self, name)
        return value


class Labels(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A partial statement about a tool, by an operator, a pack, a server's label or a refiner. `None` says nothing."""

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None
    reads_private: bool | None = None
    sees_untrusted: bool | None = None
    can_exfiltrate: bool | None = None
    source: str = ""

    def get(self, name: str) -> bool | None:
        """The statement for one of `NAMES`."""
        value: bool | None = getattr(self, name)
        return value


NOTHING: Final = Labels()


class Standing(msgspec.Struct, frozen=True):
    """All that is known of a tool when it is resolved. Conditions are already settled by the caller (catalog).

    `pin_holds`: the definition is the one a person was shown, or neutral to it. `operator_holds`: the override was
    written for this identity and pin. `pack_holds`: the pack's identity and pin pattern match. `violated`,
    `supported`: hints contradicted or supported by an assay; `support_holds`: same pin and same artefact.
    `server_labels`: facet statements the server itself put on the tool (trust-annotations and kin).
    `credentialed`: the upstream is configured with environment secrets, headers or OAuth.
    """

    trust: Trust = Trust.UNTRUSTED
    claims: RawHints = RawHints()
    pin_holds: bool = True
    operator: Labels = NOTHING
    operator_holds: bool = True
    contained: Labels = NOTHING
    pack: Labels = NOTHING
    pack_holds: bool = True
    violated: frozenset[str] = frozenset()
    supported: frozenset[str] = frozenset()
    support_holds: bool = True
    server_labels: Labels = NOTHING
    credentialed: bool = True
    safe_output: bool = False
    """The pinned output schema is made only of numbers, dates, enums and UUIDs."""
