"""The dataset's schema: three tables, each column with its DuckDB type and its meaning. Rows are made by `rows`.

Absent is NULL, never a default. Every row carries its cohort, and no query of `queries/` adds rows of two cohorts.
"""

from __future__ import annotations

from typing import Final

VERSION: Final = 1

SERVERS: Final = {
    "cohort": ("VARCHAR", "which survey the row belongs to; never mixed with another in one figure"),
    "server": ("VARCHAR", "name in the list, or the one that the recording gives"),
    "recorded": ("VARCHAR", "when, ISO 8601 (UTC); of recordings the date they say"),
    "source": ("VARCHAR", "`npm`, `pypi`, `url`, `command`, `file`"),
    "transport": ("VARCHAR", "`stdio`, `http`, or `recorded`"),
    "package": ("VARCHAR", "`npm:NAME@VERSION`, `pypi:NAME==VERSION`, or what a recording says"),
    "version": ("VARCHAR", "of the installed package, from its metadata"),
    "licence": ("VARCHAR", "of the definitions: as the list says, else as the package says; `unknown` where nobody says"),
    "provenance": ("VARCHAR", "where the definitions come from: package, address, or file with the start of its SHA-256"),
    "containment": ("VARCHAR", "how it was held while it ran"),
    "machine": ("VARCHAR", "system, Python and earnest that asked"),
    "status": ("VARCHAR", "`answered` or `failed`"),
    "failed_at": ("VARCHAR", "`install`, `contain`, `start`, `open`, `list`, `worker`; NULL if it answered"),
    "failure_code": ("VARCHAR", "earnest's error code"),
    "failure": ("VARCHAR", "why, with the last words of installer or server"),
    "protocol": ("VARCHAR", "the version agreed on in the leg that is counted"),
    "legacy": ("BOOLEAN", "it answered `initialize`"),
    "modern": ("BOOLEAN", "it answered `server/discover` (2026-07-28); NULL where nobody asked"),
    "supported": ("VARCHAR[]", "versions it names in `server/discover`"),
    "refused_with": ("BIGINT", "JSON-RPC code with which it refused `server/discover`"),
    "same_both_eras": ("BOOLEAN", "both eras list the same tools, up to order"),
    "stable": ("BOOLEAN", "two starts listed the same tools, up to order; NULL where there was one"),
    "server_name": ("VARCHAR", "`serverInfo.name`"),
    "server_version": ("VARCHAR", "`serverInfo.version`"),
    "sdk": ("VARCHAR[]", "MCP SDKs found in its prefix, with versions"),
    "instructions": ("VARCHAR", "as sent; NULL where none"),
    "capabilities": ("VARCHAR", "JSON"),
    "list_extra": ("VARCHAR", "JSON: what stood beside `tools` in the first page"),
    "pages": ("BIGINT", "of its list"),
    "tools": ("BIGINT", "in its list; NULL if it failed"),
    "open_s": ("DOUBLE", "seconds from the start of the process to the end of the opening"),
    "list_s": ("DOUBLE", "seconds to the end of the list"),
    "install_s": ("DOUBLE", "seconds"),
    "install_bytes": ("BIGINT", "on disk"),
    "grade": ("VARCHAR", "A to E; NULL without tools"),
    "score": ("DOUBLE", "0 to 100: coverage + honesty + care"),
    "coverage": ("DOUBLE", "0 to 40"),
    "honesty": ("DOUBLE", "0 to 40"),
    "care": ("DOUBLE", "0 to 20"),
    "taken_off": ("VARCHAR[]", "what points were taken off for"),
    "note": ("VARCHAR", "of the list or the recording"),
}

TOOLS: Final = {
    "cohort": ("VARCHAR", "as above"),
    "server": ("VARCHAR", "as above"),
    "recorded": ("VARCHAR", "as above"),
    "licence": ("VARCHAR", "as above"),
    "provenance": ("VARCHAR", "as above"),
    "position": ("BIGINT", "in the list, from 1"),
    "name": ("VARCHAR", "as sent"),
    "title": ("VARCHAR", "`title` of the tool"),
    "annotations_title": ("VARCHAR", "`annotations.title`"),
    "description": ("VARCHAR", "as sent"),
    "annotated": ("BOOLEAN", "it has an annotations object with a member that is not null"),
    "read_only": ("BOOLEAN", "`readOnlyHint`, NULL where absent or no boolean"),
    "destructive": ("BOOLEAN", "`destructiveHint`"),
    "idempotent": ("BOOLEAN", "`idempotentHint`"),
    "open_world": ("BOOLEAN", "`openWorldHint`"),
    "malformed": ("VARCHAR[]", "hints whose value is neither boolean nor null"),
    "annotation_keys": ("VARCHAR[]", "members of the annotations object, null ones left out"),
    "input_schema": ("VARCHAR", "JSON"),
    "has_output_schema": ("BOOLEAN", "it has an `outputSchema`"),
    "has_icons": ("BOOLEAN", "it has `icons`"),
    "execution": ("VARCHAR", "JSON"),
    "meta_keys": ("VARCHAR[]", "members of `_meta`"),
    "pin": ("VARCHAR", "SHA-256 over the canonical definition (docs/concepts.md); NULL where it can be read in two ways"),
    "risk_untrusted": ("VARCHAR", "risk class if nothing the server says is believed where it lowers risk"),
    "risk_claimed": ("VARCHAR", "risk class if its claims are believed"),
    "risk_checked": ("VARCHAR", "the same, but without the claims that its own words contradict with high confidence"),
    "definition": ("VARCHAR", "the tool object, raw"),
}

FINDINGS: Final = {
    "cohort": ("VARCHAR", "as above"),
    "server": ("VARCHAR", "as above"),
    "licence": ("VARCHAR", "as above (messages quote definitions)"),
    "provenance": ("VARCHAR", "as above"),
    "tool": ("VARCHAR", "NULL for what the whole server does"),
    "audit": ("VARCHAR", "id, see docs/lint.md"),
    "hint": ("VARCHAR", "`read_only`, `destructive`, `idempotent`, `open_world`, or NULL"),
    "claimed": ("BOOLEAN", "the tool sets that hint"),
    "severity": ("VARCHAR", "`error`, `warning`, `note`"),
    "confidence": ("VARCHAR", "`high`, `medium`, `low`"),
    "persona": ("VARCHAR", "`regular` or `pedantic`"),
    "message": ("VARCHAR", "what is wrong"),
    "fix": ("VARCHAR", "what to do; NULL where that is plain"),
}

TABLES: Final = {"servers": SERVERS, "tools": TOOLS, "findings": FINDINGS}
