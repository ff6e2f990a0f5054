"""The page, the hook and the action."""

from pathlib import Path

import pytest

from earnest.lint.page import render
from earnest.lint.registry import AUDITS
from earnest.lint.stores.registry import PROFILES

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_page_holds_the_sections_of_today():
    page = (ROOT / "docs" / "lint.md").read_text("utf-8")
    assert render(page) == page, "python -m earnest.lint.page docs/lint.md"
    for one in (*AUDITS, *PROFILES):
        assert f"\n### {one.id}\n" in page


def test_a_page_without_marks_is_refused():
    with pytest.raises(ValueError, match="audits"):
        render("# Lint\n")


def test_no_input_of_the_action_is_pasted_into_its_script():
    text = (ROOT / "action.yml").read_text("utf-8")
    scripts = text.split("run: |")[1:]
    assert scripts and all("${{" not in script for script in scripts)


def test_the_hook_calls_the_command():
    text = (ROOT / ".pre-commit-hooks.yaml").read_text("utf-8")
    assert "id: earnest-lint" in text and "entry: earnest lint\n" in text
