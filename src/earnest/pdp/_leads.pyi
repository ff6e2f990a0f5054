"""The compiled piece of `leads.py`. It may not be there: nothing else imports it."""

MARK: str
"""Which source this was made of."""

def lead_straight(paths: tuple[bytes, ...]) -> bool:
    """Whether each of these is where it says."""
