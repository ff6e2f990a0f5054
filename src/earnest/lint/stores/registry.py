"""All profiles."""

from __future__ import annotations

from typing import Final

from earnest.core.errors import EarnestError
from earnest.lint.stores import anthropic_directory, claude_code_plan_mode, codex, m365_copilot, openai_apps, vscode
from earnest.lint.stores.profile import Profile

PROFILES: Final[tuple[Profile, ...]] = (
    openai_apps.PROFILE,
    anthropic_directory.PROFILE,
    m365_copilot.PROFILE,
    codex.PROFILE,
    claude_code_plan_mode.PROFILE,
    vscode.PROFILE,
)
"""The profiles, stores first."""


def find(profile_id: str) -> Profile:
    """The profile of this id. Raises E1018."""
    for profile in PROFILES:
        if profile.id == profile_id:
            return profile
    raise EarnestError("E1018", f"there is no profile {profile_id!r}", f"There are: {', '.join(p.id for p in PROFILES)}.")
