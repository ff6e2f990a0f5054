"""What people ask for, against what a tool does."""

import pytest

from earnest.config.lexicon import shipped
from earnest.core.intent import Reader, asked

READER = Reader(shipped())

ASKED = [
    ("send_email", "Please email Ann the numbers"),
    ("send_email", "Can you write to ann@example.org?"),
    ("sendMessage", "Tell Bob that I'm late"),
    ("delete_file", "Get rid of the file old.txt"),
    ("delete_file", "old.txt should be deleted"),
    ("create-calendar-event", "Schedule a meeting with Ann"),
    ("send_money", "Pay the bill"),
    ("merge_pull_request", "Merge the PR once it is green"),
    ("delete_file", "Lösche die Datei alt.txt"),
    ("send_email", "Schick Anna eine Mail"),
    ("delete_file", "Borra el archivo viejo"),
    ("send_email", "Envía un correo a Ana"),
    ("delete_file", "删除这个文件"),
    ("send_email", "给李雷发送邮件"),
    ("delete_file", "ファイルを削除してください"),
    ("send_email", "健さんにメールを送ってください"),
    ("frobnicate_widget", "Frobnicate the widget"),
]
NOT_ASKED = [
    ("send_email", "Summarise the email from Ann"),
    ("send_email", "Read my mail"),
    ("delete_file", "Do not delete the file"),
    ("delete_file", "Which files were deleted?"),
    ("delete_file", "Bitte nicht die Datei löschen"),
    ("delete_file", "No borres el archivo"),
    ("delete_file", "不要删除这个文件"),
    ("delete_file", "ファイルを削除しないでください"),
    ("send_money", "Send Ann the report"),
    ("merge_pull_request", "Review the pull request"),
    ("frobnicate_widget", "Read the page"),
    ("delete_file", ""),
]


@pytest.mark.parametrize("tool, prompt", ASKED)
def test_the_user_asked_for_it(tool, prompt):
    assert asked(READER.tool(tool), READER.wishes(prompt))


@pytest.mark.parametrize("tool, prompt", NOT_ASKED)
def test_the_user_did_not_ask_for_it(tool, prompt):
    assert not asked(READER.tool(tool), READER.wishes(prompt))


def test_what_only_reads_and_what_binds_is_known_by_its_verb():
    assert READER.tool("get_unread_emails").reading
    assert not READER.tool("get_and_delete").reading
    assert READER.tool("reserve_hotel").binding and READER.tool("send_money").binding
    assert not READER.tool("send_email").binding


@pytest.mark.parametrize(
    "path",
    [
        ".git/hooks/pre-commit",
        "/home/u/.bashrc",
        "x/.github/workflows/a.yml",
        "package.json",
        "CLAUDE.md",
        ".mcp.json",
        "~/.ssh/authorized_keys",
        "C:\\Users\\u\\.vscode\\tasks.json",
        "/etc/cron.d/x",
    ],
)
def test_what_something_obeys_later_is_known(path):
    assert READER.loaded(path)


@pytest.mark.parametrize("path", ["notes.txt", "docs/setup.md", "src/app.py", "git/hooks.md"])
def test_ordinary_files_are_no_such_thing(path):
    assert not READER.loaded(path)
