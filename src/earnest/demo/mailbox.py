"""A mailbox with a local outbox: `python -m earnest.demo.mailbox FOLDER`.

The letters come with the package; what is sent lands in `FOLDER/outbox` and goes nowhere else. The reading tools claim
a closed world, and rightly: they touch one mailbox. One of the letters in it was written by a stranger who would like
the reader's assistant to act for him. Closed says where, never by whom.
"""

import sys
from collections.abc import Sequence
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from pathlib import Path

from earnest.demo.kit import Context, Json, Server, Tool, ToolError

LETTERS = Path(__file__).parent / "data" / "mail"
READ = {"readOnlyHint": True, "openWorldHint": False}
SEND = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False, "openWorldHint": True}
TEXT: Json = {"type": "string"}


class Mailbox:
    """An inbox that never changes and an outbox that grows."""

    def __init__(self, root: Path) -> None:
        self._outbox = root / "outbox"
        self._outbox.mkdir(parents=True, exist_ok=True)
        parser = BytesParser(policy=policy.default)
        self._letters: dict[str, EmailMessage] = {}
        for path in sorted(LETTERS.glob("*.eml")):
            letter = parser.parsebytes(path.read_bytes())
            assert isinstance(letter, EmailMessage)
            self._letters[path.stem] = letter

    def _line(self, id: str) -> str:
        letter = self._letters[id]
        return f"{id}  {letter['Date']}  {letter['From']}  {letter['Subject']}"

    def _body(self, id: str) -> str:
        return str(self._letters[id].get_content())

    def overview(self, arguments: Json, context: Context) -> str:
        """One line for each letter."""
        return "\n".join(self._line(id) for id in self._letters)

    def read(self, arguments: Json, context: Context) -> str:
        """One letter."""
        id = arguments["id"]
        if id not in self._letters:
            raise ToolError(f"there is no letter {id!r}; known: {', '.join(self._letters)}")
        letter = self._letters[id]
        return f"From: {letter['From']}\nSubject: {letter['Subject']}\n\n{self._body(id)}"

    def search(self, arguments: Json, context: Context) -> str:
        """The letters in which a text occurs."""
        wanted = arguments["text"].casefold()
        found = []
        for number, id in enumerate(self._letters, 1):
            if wanted in (self._line(id) + self._body(id)).casefold():
                found.append(id)
            context.progress(number, len(self._letters), id)
        return "\n".join(self._line(id) for id in found) or "nothing found"

    def send(self, arguments: Json, context: Context) -> str:
        """Put one letter into the outbox."""
        letter = EmailMessage()
        try:
            letter["From"], letter["To"], letter["Subject"] = "me@home.example", arguments["to"], arguments["subject"]
        except ValueError as error:
            raise ToolError(f"this is no letter: {error}") from error
        letter.set_content(arguments["body"])
        number = len(list(self._outbox.glob("*.eml"))) + 1
        (self._outbox / f"{number:04}.eml").write_bytes(letter.as_bytes())
        return f"sent to {arguments['to']}"

    def tools(self) -> Sequence[Tool]:
        """The four tools."""
        letter = {"to": TEXT, "subject": TEXT, "body": TEXT}
        return (
            Tool("list", "List the letters in the inbox.", self.overview, hints=READ),
            Tool("read", "Read a letter.", self.read, {"id": TEXT}, hints=READ),
            Tool("search", "Find letters that hold a text.", self.search, {"text": TEXT}, hints=READ),
            Tool("send", "Send a letter to anyone.", self.send, letter, hints=SEND),
        )


def main() -> None:
    """Entry point."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m earnest.demo.mailbox FOLDER")
    Server("mailbox", "One person's mail.", Mailbox(Path(sys.argv[1])).tools).serve()


if __name__ == "__main__":
    main()
