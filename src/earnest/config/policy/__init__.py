"""Policy files: reading, checking, testing, explaining, replaying. What a policy means is in
`core.policy`."""

from earnest.config.policy.findings import Finding, PolicyError, Severity
from earnest.config.policy.load import NO_PRESET, PRESETS, Document, compose, load, parse, preset, preset_text

__all__ = [
    "NO_PRESET",
    "PRESETS",
    "Document",
    "Finding",
    "PolicyError",
    "Severity",
    "compose",
    "load",
    "parse",
    "preset",
    "preset_text",
]
