"""The one exception family of earnest.

Every error a person may meet has a code, says what happened and what to do about it. Codes by hundred:
E10xx configuration, E11xx policy, E12xx servers and their processes, E13xx wire and protocol, E14xx store and
receipts, E15xx daemon and shim, E16xx trust, pins and approvals, E17xx limits.
"""


class EarnestError(Exception):
    """What happened (`message`), under which code (`E1203`), and what to do (`remedy`, may be empty).

    `exit_code` is what a command ends with: 1 findings or denied, 2 usage or configuration, 3 the server failed.
    """

    exit_code = 2

    def __init__(self, code: str, message: str, remedy: str = "", *, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.remedy = remedy
        if exit_code is not None:
            self.exit_code = exit_code

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" + (f"\n  {self.remedy}" if self.remedy else "")
