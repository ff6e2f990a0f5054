"""All audits, in the order in which they are shown."""

from __future__ import annotations

import difflib
from typing import Final

from earnest.core.errors import EarnestError
from earnest.lint.audit import Audit
from earnest.lint.audits import (
    closed_world_denied,
    colliding_names,
    destructive_by_default,
    destructive_denied,
    destructive_overstated,
    dispatcher,
    foreign_annotation,
    hidden_characters,
    http_method,
    idempotent_denied,
    local_path,
    long_description,
    malformed_hint,
    missing_hint,
    mixed_tool,
    model_instructions,
    moot_hint,
    name_rule,
    outdated_era,
    permission_denied,
    read_only_and_destructive,
    read_only_but_writes,
    reads_but_not_read_only,
    remote_reference,
    schema_type,
    secret_default,
    title_precedence,
    uniform_hints,
    unread_source,
    unstable_list,
    version_identity,
    zero_value,
)

AUDITS: Final[tuple[Audit, ...]] = (
    read_only_but_writes.AUDIT,
    destructive_denied.AUDIT,
    read_only_and_destructive.AUDIT,
    reads_but_not_read_only.AUDIT,
    destructive_overstated.AUDIT,
    destructive_by_default.AUDIT,
    idempotent_denied.AUDIT,
    closed_world_denied.AUDIT,
    permission_denied.AUDIT,
    http_method.AUDIT,
    malformed_hint.AUDIT,
    foreign_annotation.AUDIT,
    missing_hint.AUDIT,
    uniform_hints.AUDIT,
    zero_value.AUDIT,
    moot_hint.AUDIT,
    mixed_tool.AUDIT,
    dispatcher.AUDIT,
    hidden_characters.AUDIT,
    model_instructions.AUDIT,
    secret_default.AUDIT,
    unstable_list.AUDIT,
    local_path.AUDIT,
    unread_source.AUDIT,
    colliding_names.AUDIT,
    name_rule.AUDIT,
    title_precedence.AUDIT,
    schema_type.AUDIT,
    remote_reference.AUDIT,
    long_description.AUDIT,
    outdated_era.AUDIT,
    version_identity.AUDIT,
)
"""The audits; hints first."""


def find(audit_id: str) -> Audit:
    """The audit of this id. Raises E1018, with the nearest, for one that does not exist."""
    for audit in AUDITS:
        if audit.id == audit_id:
            return audit
    near = difflib.get_close_matches(audit_id, [audit.id for audit in AUDITS], 1)
    raise EarnestError(
        "E1018",
        f"there is no audit {audit_id!r}",
        f"Did you mean {near[0]}?" if near else "`earnest lint --audits` lists them.",
    )
