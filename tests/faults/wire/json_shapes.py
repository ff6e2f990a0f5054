"""Bodies and lines that are no call, or that two programs could read in two ways; and odd ones that are right."""

from collections.abc import Callable
from dataclasses import dataclass

from faults.wire.client import Ground

PARSE, INVALID, METHOD, PARAMS, MISMATCH = -32700, -32600, -32601, -32602, -32020
DENIED = 1
"""A tool's result that says the call was not run; it has a receipt of its own."""


@dataclass(frozen=True)
class Text:
    """One row. `code`: the JSON-RPC error it is answered with, `DENIED`, or 0 where it is a call that reaches the server;
    `status`: that of HTTP. `legacy`: both, where they differ in that era."""

    name: str
    body: Callable[[Ground], bytes]
    code: int
    status: int = 400
    legacy: tuple[int, int] | None = None

    def due(self, modern: bool) -> tuple[int, int]:
        """Code and status in an era."""
        return (self.code, self.status) if modern or self.legacy is None else self.legacy


def plain(text: bytes, code: int, name: str = "") -> Text:
    """A body that is these bytes."""
    return Text(name or f"`{text.decode('latin-1')}`", lambda g: text, code)


def args(name: str, raw: bytes, code: int = 0) -> Text:
    """A call with these arguments."""
    return Text(name, lambda g: g.body(raw), code, 400 if code < 0 else 200, (PARAMS, 200) if code == PARAMS else None)


def swap(name: str, old: bytes, new: bytes, code: int, status: int = 400, legacy: tuple[int, int] | None = None) -> Text:
    """An honest call with one part replaced."""

    def body(g: Ground) -> bytes:
        whole = g.body()
        assert whole.count(old) == 1, (old, whole)
        return whole.replace(old, new)

    return Text(name, body, code, status, legacy)


def ident(name: str, id: bytes, code: int = 0) -> Text:
    """A call under this id."""
    return Text(name, lambda g: g.body(id=id), code, 200 if code == 0 else 400)


DEEP = 100_000

TEXTS: list[Text] = [
    # no JSON
    plain(b"", PARSE, "empty"),
    plain(b"{", PARSE),
    plain(b"nonsense", PARSE),
    plain(b"null", INVALID),
    plain(b"1", INVALID),
    plain(b"[]", INVALID),
    plain(b"{}", INVALID),
    Text("byte order mark", lambda g: b"\xef\xbb\xbf" + g.body(), PARSE),
    Text("UTF-16", lambda g: g.body().decode().encode("utf-16-le"), PARSE),
    Text("a batch", lambda g: b"[" + g.body() + b"]", INVALID),
    Text("two calls", lambda g: g.body() + g.body(), PARSE),
    Text("comma at the end", lambda g: g.body()[:-1] + b",}", PARSE),
    Text("comment", lambda g: g.body() + b"/* */", PARSE),
    Text("NUL behind", lambda g: g.body() + b"\0", PARSE),
    args("single quotes", b"{'n':1}", PARSE),
    args("control character in a string", b'{"n":"a\x01"}', PARSE),
    args("tab in a string", b'{"n":"a\tb"}', PARSE),
    args("bytes that are no UTF-8", b'{"n":"\xff"}', PARSE),
    args("overlong UTF-8", b'{"n":"\xc0\xaf"}', PARSE),
    args("a surrogate in UTF-8", b'{"n":"\xed\xa0\x80"}', PARSE),
    args("lone high surrogate", b'{"n":"\\ud800"}', PARSE),
    args("lone low surrogate", b'{"n":"\\udc00x"}', PARSE),
    args("surrogates the wrong way round", b'{"n":"\\udc00\\ud800"}', PARSE),
    args("lone surrogate in a name", b'{"\\ud800":1}', PARSE),
    args("unknown escape", b'{"n":"\\x41"}', PARSE),
    args("NaN", b'{"n":NaN}', PARSE),
    args("Infinity", b'{"n":-Infinity}', PARSE),
    args("number 01", b'{"n":01}', PARSE),
    args("number +1", b'{"n":+1}', PARSE),
    args("number .5", b'{"n":.5}', PARSE),
    args("number 5.", b'{"n":5.}', PARSE),
    args("number 0x10", b'{"n":0x10}', PARSE),
    # envelope
    swap("no version", b'"jsonrpc":"2.0",', b"", INVALID),
    swap("version 1.0", b'"jsonrpc":"2.0"', b'"jsonrpc":"1.0"', INVALID),
    swap("version twice", b'"jsonrpc":"2.0"', b'"jsonrpc":"2.0","jsonrpc":"2.0"', INVALID),
    swap("method twice", b'"method":"tools/call"', b'"method":"ping","method":"tools/call"', INVALID),
    swap("method twice, one escaped", b'"method":"tools/call"', b'"\\u006dethod":"ping","method":"tools/call"', INVALID),
    swap("method in capitals besides", b'"method":', b'"Method":"ping","method":', INVALID),
    swap("method in full width besides", b'"method":', '"ｍethod":"ping","method":'.encode(), INVALID),
    swap("params twice", b'"params":', b'"params":{"name":"bad"},"params":', INVALID),
    swap("params with a long s besides", b'"params":', '"paramſ":{"name":"bad"},"params":'.encode(), INVALID),
    swap("id twice", b'"id":7', b'"id":6,"id":7', INVALID),
    swap("ID besides", b'"id":7', b'"ID":6,"id":7', INVALID),
    swap("a result besides", b'"id":7', b'"id":7,"result":{}', INVALID),
    swap("an unknown member", b'"id":7', b'"id":7,"extra":{"a":1}', 0, 200),
    swap("method empty", b'"tools/call"', b'""', INVALID),
    swap("method no string", b'"tools/call"', b"7", INVALID),
    swap("method in capitals", b'"tools/call"', b'"Tools/Call"', METHOD, 404, (METHOD, 200)),
    ident("id null", b"null", INVALID),
    ident("id a fraction", b"1.5", INVALID),
    ident("id an object", b"{}", INVALID),
    ident("id true", b"true", INVALID),
    ident("id 1e3", b"1e3", INVALID),
    ident("id of 2000 digits", b"9" * 2000, INVALID),
    ident("id empty text", b'""'),
    ident("id of 40 digits", b"9" * 40),
    ident("id negative", b"-7"),
    ident("id with an escape", b'"a\\u0062\\u2028"'),
    # parameters
    Text("params a list", lambda g: b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":[]}', PARAMS),
    swap("name twice", b'"name":"echo"', b'"name":"bad","name":"echo"', PARAMS),
    swap("name twice, one escaped", b'"name":"echo"', b'"n\\u0061me":"bad","name":"echo"', PARAMS),
    swap("Name besides", b'"name":"echo"', b'"Name":"bad","name":"echo"', PARAMS),
    swap("arguments twice", b'"arguments":', b'"arguments":{"n":2},"arguments":', PARAMS),
    swap("Arguments besides", b'"arguments":', b'"Arguments":{"n":2},"arguments":', PARAMS),
    swap("_META besides", b'"arguments":', b'"_META":{},"arguments":', PARAMS),
    Text("_meta with a name twice", lambda g: g.body(meta=b'"a":1,"a":2'), PARAMS, 400, (PARAMS, 200)),
    swap("no name", b'"name":"echo",', b"", PARAMS, 400, (PARAMS, 200)),
    swap("name no string", b'"name":"echo"', b'"name":7', PARAMS, 400, (PARAMS, 200)),
    swap("name in capitals", b'"name":"echo"', b'"name":"Echo"', MISMATCH, 400, (0, 200)),
    swap("name in full width", b'"name":"echo"', '"name":"ｅcho"'.encode(), MISMATCH, 400, (0, 200)),
    args("arguments a list", b"[1]", PARAMS),
    args("arguments text", b'"{}"', PARAMS),
    # arguments
    args("an argument twice", b'{"n":1,"n":2}', DENIED),
    args("an argument twice, the same", b'{"n":1,"n":1}', DENIED),
    args("an argument twice, one escaped", b'{"n":1,"\\u006e":2}', DENIED),
    args("an argument twice but for capitals", b'{"path":"a","Path":"b"}', DENIED),
    args("an argument twice but for ß", '{"straße":1,"STRASSE":2}'.encode(), DENIED),
    args("an argument twice but for width", '{"path":"a","ｐath":"b"}'.encode(), DENIED),
    args("an argument twice but for a ligature", '{"file":"a","ﬁle":"b"}'.encode(), DENIED),
    args("an argument twice but for the Kelvin sign", '{"k":"a","\u212a":"b"}'.encode(), DENIED),
    args("an argument twice, far below", b'{"a":[{"b":{"c":1,"c":2}}]}', DENIED),
    args("nested past the limit", b'{"a":' + b"[" * 130 + b"]" * 130 + b"}", INVALID),
    args("nested 100,000 deep", b'{"a":' + b"[" * DEEP + b"]" * DEEP + b"}", INVALID),
    args("objects nested 100,000 deep", b'{"a":' * DEEP + b"1" + b"}" * DEEP, INVALID),
    args("100,000 brackets and no end", b'{"a":' + b"[" * DEEP, INVALID),
    args("nested within the limit", b'{"a":' + b"[" * 100 + b"]" * 100 + b"}"),
    args("brackets in a string", b'{"a":"' + b"[{" * 1000 + b'"}'),
    # right, if odd
    args("no arguments", b"{}"),
    args("2^53 + 1", b'{"n":9007199254740993}'),
    args("2^64", b'{"n":18446744073709551616}'),
    args("400 digits", b'{"n":' + b"7" * 400 + b"}"),
    args("5,000 digits", b'{"n":' + b"7" * 5000 + b"}"),
    args("1e999", b'{"n":1e999}'),
    args("-0", b'{"n":-0}'),
    args("1.0 and 1.10", b'{"n":[1.0,1.10,1E5,1e-7]}'),
    args("35 digits behind the point", b'{"n":0.12345678901234567890123456789012345}'),
    args("a name that is empty", b'{"":1}'),
    args("spaces and line ends", b'{ "n" : 1 ,\t"m":\r[ 2 , 3 ] }'),
    args("a pair of surrogates", b'{"n":"\\ud83d\\ude00"}'),
    args("escapes that are not needed", b'{"\\u006e":"\\u0041\\/"}'),
    args("U+2028 and DEL", '{"n":"\u2028\u2029\x7f"}'.encode()),
    args("an escaped NUL", b'{"n":"a\\u0000b"}'),
    args("names out of order, beyond the first plane", '{"\ufb33":1,"\U0001f600":2,"b":3,"a":4}'.encode()),
    args("names that need escapes", b'{"a\\"b\\\\":1,"\\n":2}'),
    args("1 MB of text", b'{"n":"' + b"x" * 1_000_000 + b'"}'),
    args("20,000 names", b"{" + b",".join(b'"k%d":%d' % (n, n) for n in range(20_000)) + b"}"),
    args("true, false, null", b'{"a":true,"b":false,"c":null}'),
    args("`__proto__`", b'{"__proto__":{"a":1},"constructor":2}'),
]
