"""What an audit or a profile is, for `--explain` and for docs/lint.md."""

from __future__ import annotations

from earnest.lint.audit import Audit
from earnest.lint.registry import AUDITS, find
from earnest.lint.stores.profile import Profile
from earnest.lint.stores.registry import PROFILES


def explain(name: str) -> str:
    """The section of one audit or profile as text. Raises E1018 for one that does not exist."""
    bare = name.removeprefix("store:")
    for profile in PROFILES:
        if profile.id == bare:
            return _profile(profile)
    return section(find(name))


def section(audit: Audit) -> str:
    """One audit in Markdown: what it finds, why it matters, how to fix it, an example."""
    persona = "; shown to the pedantic persona only" if audit.persona == "pedantic" else ""
    return (
        f"### {audit.id}\n\nSeverity {audit.severity}, confidence {audit.confidence}{persona}, unless a finding says "
        f"otherwise.\n\n"
        f"**What it finds.** {audit.what}\n\n**Why it matters.** {audit.why}\n\n**How to fix it.** "
        f"{audit.how}\n\n**Example.** {audit.example}\n"
    )


def _profile(profile: Profile) -> str:
    rows = "\n".join(f"- {s.address}{f' ({s.dated})' if s.dated else ''}, read {s.read}" for s in profile.sources)
    return f"### {profile.id}\n\n{profile.name}. {profile.what}\n\nSources:\n\n{rows}\n"


def audits() -> str:
    """All audits."""
    return "\n".join(section(audit) for audit in AUDITS)


def profiles() -> str:
    """All profiles."""
    return "\n".join(_profile(profile) for profile in PROFILES)
