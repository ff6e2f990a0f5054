"""A fetcher pointed at this machine or its network reads private things."""

import pytest

from earnest.core.profile import Labels
from earnest.refine.address import AddressRule, look

RULE = AddressRule("url", source="pack fetch:3")


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/",
        "http://a.example.org:8080/x?y=z#w",
        "https://1.1.1.1/",
        "https://[2606:4700::1111]/",
        "HTTPS://Example.COM",
    ],
)
def test_a_plain_public_address_says_nothing(url: str) -> None:
    assert look(RULE, {"url": url}) is None


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:3000/",
        "http://localhost./",
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "http://0.0.0.0/",
        "http://224.0.0.1/",
        "http://user:word@example.com/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://10.0.0.8/",
        "http://192.168.1.1/",
        "http://169.254.169.254/latest/meta-data",
        "http://metadata.google.internal/",
        "http://printer.local/",
        "http://intranet/",
        "http://example.com@localhost/",
        "http://example.com\\@localhost/",
        "http://exa%6dple.com/",
        "http://exam\nple.com/",
        "http://ⅼocalhost/",
        "http://１２７.0.0.1/",
        "http://[::1",
        "file:///etc/passwd",
        "ftp://example.com/",
        "//example.com/",
        "example.com",
        "",
        None,
        3,
        ["https://example.com/"],
    ],
)
def test_any_other_address_may_read_private_things(url: object) -> None:
    found = look(RULE, {"url": url})
    assert found is not None and found.labels == Labels(reads_private=True, source="pack fetch:3")


def test_an_absent_address_may_read_private_things() -> None:
    assert look(RULE, {}) is not None
