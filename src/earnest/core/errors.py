"""The one exception family of earnest.

Every error a person may meet has a code, says what happened and what to do about it. Codes by hundred:
E10xx configuration, E11xx policy, E12xx servers and their processes, E13xx wire and protocol, E14xx store and
receipts, E15xx daemon and shim, E16xx trust, pins and approvals, E17xx limits, E18xx sandbox and assay, E19xx census.
"""


class EarnestError(Exception):
    """What happened (`message`), under which code (`E1203`), and what to do (`remedy`, may be empty).

    `said`: what a server said about it, in its own words. They are nobody's business but a person's: no client and no model
    is told, `str` leaves them out, and a command line shows them without secrets.

    `exit_code` is what a command ends with: 1 findings or denied, 2 usage or configuration, 3 the server failed.
    """

    exit_code = 2

    def __init__(
        self, code: str, message: str, remedy: str = "", *, exit_code: int | None = None, said: str = ""
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.remedy = remedy
        self.said = said
        if exit_code is not None:
            self.exit_code = exit_code

    @property
    def told(self) -> str:
        """The message for a person, with what the server said."""
        return f"{self.message}; it said: {self.said}" if self.said else self.message

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" + (f"\n  {self.remedy}" if self.remedy else "")
