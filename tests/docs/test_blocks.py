"""What README and docs show can be typed: commands and options exist, make targets exist, TOML is read by the real loaders."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from earnest.assay import settings as assays
from earnest.cli.main import GROUPS
from earnest.cli.reference import all_commands, commands_page, options
from earnest.config import packs, settings
from earnest.config.policy.load import PRESETS, parse

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES += [ROOT / "examples" / "servers" / "README.md"]
ANYWHERE = {"--config", "--json", "--no-color", "--help"}
STDIO = {"--client", "--config", "--help"}
OTHERS = {"make", "git", "export", "systemctl", "cd", "python", "journalctl", "pip", "cp", "npm", "docker"}
"""What else a page may tell people to type."""


class Block(NamedTuple):
    page: Path
    line: int
    language: str
    text: str


def blocks(language: str) -> list[Block]:
    found = []
    for page in PAGES:
        text = page.read_text()
        for match in re.finditer(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            if match[1] == language:
                found.append(Block(page, text.count("\n", 0, match.start()) + 1, match[1], match[2]))
    return found


def place(block: Block) -> str:
    return f"{block.page.relative_to(ROOT)}:{block.line}"


@cache
def known() -> dict[str, set[str] | None]:
    """Each command with its options; None: the shim."""
    return {name: None if command is None else options(command) for name, command in all_commands()}


def wrong(words: list[str]) -> str:
    """What is wrong with the words of one `earnest …`; empty if nothing is."""
    if "--" in words:
        words = words[: words.index("--")]
    while words and words[0] in ("--config", "--json", "--no-color"):
        words = words[2:] if words[0] == "--config" else words[1:]
    if not words or words[0] in ("--version", "--help"):
        return ""
    name = words[0]
    if name not in known():
        return f"no command {name}"
    groups = {command.split()[0] for command in known() if " " in command}
    if name in groups and len(words) > 1 and re.fullmatch(r"[a-z-]+", words[1]) and words[1][0] != "-":
        name = f"{name} {words[1]}"
        if name not in known():
            return f"no command {name}"
    taken = STDIO if known()[name] is None else known()[name] or set()
    given = {word.split("=")[0] for word in words if word.startswith("--")}
    unknown = given - taken - ANYWHERE
    return f"{name} takes no {sorted(unknown)}" if unknown else ""


def typed(text: str) -> Iterator[list[str]]:
    """The command lines of a console block, as words; `$ a | b` are two."""
    for line in re.findall(r"^\$ (.*)$", text, re.MULTILINE):
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|;&")
        lexer.whitespace_split = True
        words: list[str] = []
        for word in lexer:
            if set(word) <= set("|;&"):
                yield words
                words = []
            else:
                words.append(word)
        yield words


@pytest.mark.parametrize("block", blocks("console"), ids=place)
def test_a_console_block_can_be_typed(block: Block) -> None:
    lines = [words for words in typed(block.text) if words]
    assert lines, "a console block shows a command, after `$ `"
    for words in lines:
        program = words[0].rpartition("/")[2]
        if program == "earnest":
            assert not wrong(words[1:]), " ".join(words)
            continue
        assert program in OTHERS, words
        if program == "make":
            targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
            assert {word for word in words[1:] if "=" not in word} <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_in_the_text_exist(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for span in re.findall(r"`([^`]+)`", text):
        words = span.replace("…", "").split()
        if words and words[0].rpartition("/")[2] == "earnest" and len(words) > 1 and words[1] != "COMMAND":
            assert not wrong([word.strip("[]") for word in words[1:]]), span


def preset_texts() -> set[str]:
    return {(ROOT / "src" / "earnest" / "presets" / f"{name}.toml").read_text().strip() for name in PRESETS}


@pytest.mark.parametrize("block", blocks("toml"), ids=place)
def test_toml_is_read_by_the_loader_it_is_for(block: Block) -> None:
    text = block.text
    if block.page.name == "assay.md":
        assert assays.read(text, place(block)).tools
    elif re.search(r"^\[(server|tools\..+)\]", text, re.MULTILINE):
        whole = text if "[server]" in text else f'[server]\npackages = ["npm:a"]\nevidence = "seen"\n{text}'
        assert packs.read("pack", str(block.page), whole.encode()).tools
    elif re.search(r"^\[\[?(rule|floor|test)|^(allow|ask|deny) +=", text, re.MULTILINE):
        if text.strip() not in preset_texts():
            assert parse(text, place(block)).policy
    elif text.strip() not in preset_texts():
        assert settings.parse(place(block), text.encode(), {"HOME": "/home/me"})


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)}: {target}"


def test_files_that_the_text_names_exist() -> None:
    for page in PAGES:
        for named in re.findall(r"`(?:python )?((?:tests|src|docs|examples|bench|scripts)/[a-z0-9_./-]+)`", page.read_text()):
            assert (ROOT / named).exists(), f"{page.relative_to(ROOT)}: {named}"


def test_the_page_of_commands_is_current_and_has_examples_for_the_main_ones() -> None:
    page = (ROOT / "docs" / "commands.md").read_text()
    assert page == commands_page(page), "run: python -m earnest.cli.reference"
    for name in (name for group in GROUPS.values() for name in group):
        assert f"\n### earnest {name}\n" in page
    shown = set(re.findall(r"^\$ earnest ([a-z]+)", page, re.MULTILINE))
    assert {"run", "init", "demo", "doctor", "probe", "tools", "explain", "trust", "labels", "pins", "policy"} <= shown
    assert {"approvals", "conversation", "receipts", "serve", "stop", "config"} <= shown
