"""Verbs in their place: what a description says a tool does, and what it does not say."""

import pytest

from earnest.lint.evidence import look
from earnest.lint.language import read, words_of
from earnest.lint.model import tool_of


def kinds(text, least=("high",)):
    return {act.kind for act in read(text).acts if act.sure in least}


@pytest.mark.parametrize(
    "text, kind",
    [
        ("Send emails to one or multiple recipients", "send"),
        ("Deletes a file.", "delete"),
        ("This tool will delete the message permanently.", "delete"),
        ("Use this API to create a new mail folder in the root folder", "create"),
        ("Create, patch, or delete Istio config", "delete"),
        ("Downloads a Drive file and saves it to local disk.", "save"),
        ("Capture packets on a node. Creates a specialized debug pod for node-level captures.", "create"),
        ("Execute commands on remote hosts", "run"),
        ("Notion | Create a page\nError Responses:\n400: Bad request", "create"),
        ("Update the labels of an issue. This replaces the current labels with the provided list.", "overwrite"),
        ("Tool for sending mail to a person", "send"),
        ("Allows deleting rows from a table", "delete"),
        ("Provides the ability to delete a row", "delete"),
        ("⚠️ DESTRUCTIVE: Deletes a row", "delete"),
        ("You can use this tool to send mail to a person", "send"),
        ("[beta] Delete a chat message", "delete"),
        ("Create/provision a new blob container in a storage account", "create"),
        ("Manage tasks: create, update, delete, or move tasks within task lists.", "delete"),
    ],
)
def test_a_verb_at_the_head_of_a_clause_says_what_the_tool_does(text, kind):
    assert kind in kinds(text)


@pytest.mark.parametrize(
    "text",
    [
        "Get a commit and its deploy plan",
        "Creates a deployment plan for an application",
        "Generate a chart to show how deletes develop",
        "Retrieves rules for creating Bicep files",
        "Lists notifications, including unread ones, mentions, and updates on issues",
        "List merge requests. Use this when the user wants to delete a branch.",
        "Reads the file. It does not modify or delete anything.",
        "Returns the page as text. It does not save the page as a file, and never overwrites existing notes.",
        "Replies for a specified message.",
        "Executes a log query against a datasource and returns matching entries",
        "Get page content. To remove a page use delete_page instead.",
        "Retrieves a link. Accepts user notebooks and group notebooks.",
    ],
)
def test_a_verb_elsewhere_says_nothing(text):
    assert not kinds(text, ("high", "medium")) - {"read", "compute"}


@pytest.mark.parametrize(
    "text",
    [
        "Select a page as a context for future tool calls.",
        "Load an archive. Must be called before any other mustgather_* tools.",
    ],
)
def test_what_later_calls_build_on_is_a_change_of_medium_sureness(text):
    assert "update" in kinds(text, ("medium",))


def test_what_may_happen_is_less_sure_than_what_does():
    sure = {act.sure for act in read("Download an attachment (use local_path to save to disk).").acts if act.kind == "save"}
    assert sure == {"medium"}


@pytest.mark.parametrize(
    "name, words",
    [
        ("getMailTips", ["get", "mail", "tips"]),
        ("API-post-search", ["api", "post", "search"]),
        ("HTTPServer_start", ["http", "server", "start"]),
    ],
)
def test_a_name_falls_into_words(name, words):
    assert words_of(name) == words


@pytest.mark.parametrize(
    "text",
    [
        "Trigger a monitor check immediately",
        "Create a new list in a site",
        "Format an Excel range",
        "Show a notification to the user",
    ],
)
def test_what_starts_makes_or_shows_something_is_no_reading(text):
    assert reads(name="x", description=text) is None


def reads(**definition):
    return look(tool_of(definition)).reads


def test_reading_alone_is_sure_only_if_nothing_speaks_against_it():
    assert reads(name="list_issues", description="List issues of a repository") == "high"
    assert reads(name="issues_close", description="List issues of a repository") == "low"
    assert reads(name="list_issues", description="List issues of a repository and delete the closed ones") is None
    output = {"type": "object", "properties": {"output_path": {"type": "string"}}}
    assert reads(name="list_issues", description="List issues of a repository", inputSchema=output) == "low"
    actions = {"type": "object", "properties": {"action": {"enum": ["list", "delete"]}}}
    assert reads(name="list_issues", description="List issues of a repository", inputSchema=actions) is None


def test_another_language_says_nothing():
    assert read("删除文件").acts == () and reads(name="get_file", description="获取文件") is None
