"""Who gets out of a box that may reach a few hosts, and the parts its internet is made of."""

import contextlib
import socket
import ssl
import struct
import subprocess
import sys
import threading

import pytest

from earnest.sandbox.internet import authority, names, outlet
from earnest.sandbox.internet.answers import Answers
from earnest.sandbox.internet.certificates import Certificates
from earnest.sandbox.internet.hosts import Hosts, is_own_network


class Heard:
    """A report that keeps what it is told."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str, str]] = []

    def say(self, doing: str, subject: str, *, detail: str = "", **_: object) -> None:
        self.said.append((doing, subject, detail))


@pytest.fixture
def echo():
    """A server of this machine that sends back what it hears; its port."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                line, _ = server.accept()
            except OSError:
                return
            with line:
                while data := line.recv(4096):
                    line.sendall(data)

    threading.Thread(target=serve, daemon=True).start()
    yield server.getsockname()[1]
    server.close()


def led(hosts: list[str], name: str, port: int, first: bytes, real: int, address: str = "127.0.0.1"):
    """What comes back to who says `first` on a connection that is meant for a name; and what was reported."""
    heard = Heard()
    ours, theirs = socket.socketpair()
    outlet.Outlet(Hosts(hosts), heard, leading(address, real)).take(theirs, name, port)
    ours.settimeout(20)
    back = b""
    with contextlib.suppress(ConnectionResetError, BrokenPipeError):  # closed before it was said, or with it unread
        ours.sendall(first)
        ours.shutdown(socket.SHUT_WR)
        while data := ours.recv(4096):
            back += data
    ours.close()
    return back, heard.said


def leading(address: str, port: int):
    """A resolver for which every name is this machine."""
    return lambda *_, **__: [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]


def greeting(name: str) -> bytes:
    """What a TLS client says first."""
    context = ssl.create_default_context()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


@pytest.mark.parametrize(
    "name, first, out",
    [
        ("localhost", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", True),
        ("localhost", b"GET / HTTP/1.1\r\nHost: other.example\r\n\r\n", False),
        ("localhost", b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: other.example\r\n\r\n", False),
        ("localhost", b"GET / HTTP/1.1\r\n\r\n", False),
        ("localhost", b"GET http://localhost/a?b HTTP/1.1\r\nHost: localhost\r\n\r\n", True),
        ("localhost", b"GET http://other.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n", False),
        ("localhost", b"GET http://other.example?localhost HTTP/1.1\r\nHost: localhost\r\n\r\n", False),
        ("localhost", b"GET http://localhost@other.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n", False),
        ("localhost", b"GET other.example HTTP/1.1\r\nHost: localhost\r\n\r\n", False),
        ("localhost", b"GET / HTTP/1.1\r\nHost : other.example\r\nHost: localhost\r\n\r\n", False),
        ("localhost", b"GET / HTTP/1.1\r\nA: b\r\n Host: other.example\r\nHost: localhost\r\n\r\n", False),
        ("localhost", b"GET / HTTP/1.1\nHost: other.example\r\nHost: localhost\r\n\r\n", False),
        ("localhost", b"OPTIONS * HTTP/1.1\r\nHost: localhost:80\r\n\r\n", True),
        ("localhost", b"SSH-2.0-client\r\n", False),
        ("other.example", b"GET / HTTP/1.1\r\nHost: other.example\r\n\r\n", False),
    ],
)
def test_plain_http_goes_out_to_the_host_it_is_for(name, first, out, echo):
    back, said = led(["localhost"], name, 80, first, echo)
    assert back == (first if out else b"")
    assert [doing for doing, _, _ in said] == ["connect" if out else "refused"]


@pytest.mark.parametrize("named, out", [("localhost", True), ("other.example", False)])
def test_tls_goes_out_to_the_host_it_greets(named, out, echo):
    first = greeting(named)
    assert outlet.server_name(first) == named
    back, said = led(["localhost"], "localhost", 443, first, echo)
    assert back == (first if out else b"")
    assert [doing for doing, _, _ in said] == ["connect" if out else "refused"]


@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.169.254", "0.0.0.0"])
def test_a_name_does_not_lead_to_this_machine_whoever_answers_for_it(address, echo):
    first = b"GET / HTTP/1.1\r\nHost: api.example\r\n\r\n"
    back, said = led(["api.example"], "api.example", 80, first, echo, address)
    assert back == b"" and said[0][0] == "refused" and address in said[0][2]


def test_a_proxy_takes_connect_and_whole_addresses_for_named_hosts_alone(echo):
    found = outlet.Outlet(Hosts(["localhost"]), Heard(), leading("127.0.0.1", echo))
    listener = outlet.listener()
    threading.Thread(target=found.accept, args=(listener,), daemon=True).start()

    def said(first: bytes, then: bytes = b"") -> bytes:
        with socket.create_connection(listener.getsockname(), 10) as line:
            line.sendall(first)
            back = line.recv(4096)
            if then:
                line.sendall(then)
                line.shutdown(socket.SHUT_WR)
                while data := line.recv(4096):
                    back += data
            return back

    request = b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n"
    assert said(b"CONNECT localhost:80 HTTP/1.1\r\n\r\n", request) == b"HTTP/1.1 200 OK\r\n\r\n" + request
    assert said(b"CONNECT other.example:443 HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 403")
    whole = said(b"GET http://localhost/x?y HTTP/1.1\r\nHost: ignored\r\nProxy-Authorization: x\r\nAccept: a\r\n\r\n")
    assert whole == b"GET /x?y HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAccept: a\r\n\r\n"
    for more in (b"Host : other.example", b"A: b\r\n Host: other.example", b"A: b\nHost: other.example"):
        assert said(b"GET http://localhost/ HTTP/1.1\r\n" + more + b"\r\n\r\n") == b""
    listener.close()


def test_hosts_are_names_with_ports_and_wildcards_of_whole_labels():
    hosts = Hosts(["api.example.com", "*.example.org", "db.local:5432", "[::1]:80", "10.0.0.1"])
    assert hosts.allows("API.example.com.", 443) and not hosts.allows("api.example.com", 22)
    assert hosts.allows("a.b.example.org", 80)
    assert not hosts.allows("example.org", 80) and not hosts.allows("badexample.org", 80)
    assert hosts.allows("db.local", 5432) and not hosts.allows("db.local", 443)
    for wrong in ("", "a/b", "*", "a*.example", "a b"):
        with pytest.raises(ValueError):
            Hosts([wrong])
    assert is_own_network("::ffff:127.0.0.1") and is_own_network("fe80::1") and not is_own_network("10.0.0.1")


def question(name: str, kind: int) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack(">6H", 7, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">2H", kind, 1)


def test_a_name_has_one_address_of_each_family_that_looks_public():
    import ipaddress

    found = names.Names()
    four, six = found.addresses("Example.com.")
    assert (four, six) == names.Names().addresses("example.com") and found.name(four) == found.name(six) == "example.com"
    assert ipaddress.ip_address(four).is_global and ipaddress.ip_address(six).is_global
    many = {found.addresses(f"n{number}.example.com") for number in range(3000)}
    assert len(many) == 3000
    asked = names.question(question("example.com", names.A))
    assert asked and found.answer(asked).endswith(socket.inet_aton(four))
    missing = names.Names(lambda name: name == "known.example").answer(asked)
    assert struct.unpack_from(">H", missing, 2)[0] & 15 == 3
    for broken in (b"", b"x" * 11, question("a.b", 1)[:-3], b"\xff" * 40):
        assert names.question(broken) is None


def test_answers_go_by_globs_of_whole_segments_and_in_turn():
    def answer(host, path, body, method=""):
        import base64

        return {"host": host, "path": path, "method": method, "status": 200, "headers": [], "body": base64.b64encode(body)}

    own = [answer("api.*", "/a/*", b"1"), answer("api.*", "/a/*", b"2"), answer("**.example", "/**", b"3", "POST")]
    answers = Answers(own)
    said = [answers.to("api.x", "GET", "/a/b?c=/d", "").body for _ in range(3)]
    assert said == [b"1", b"2", b"2"]
    assert answers.to("api.x.y", "GET", "/a/b", "").body not in (b"1", b"2")
    assert answers.to("api.x", "GET", "/a/b/c", "").body not in (b"1", b"2")
    assert answers.to("p.q.example", "POST", "/any/where", "").body == b"3"
    page = answers.to("x.org", "GET", "/<script>alert(1)</script>", "text/html")
    assert dict(page.headers)["Content-Type"].startswith("text/html") and b"<script>" not in page.body
    assert answers.to("x.org", "GET", "/robots.txt", "").body.startswith(b"User-agent")


def test_certificates_are_made_for_each_name_a_client_greets_with(tmp_path):
    ca = authority.make(str(tmp_path))
    assert (tmp_path / "ca.key").stat().st_mode & 0o777 == 0o600
    command = [sys.executable, "-S", authority.__file__, str(tmp_path), *sys.path]
    held = Certificates(str(tmp_path), command)
    listener = socket.create_server(("127.0.0.1", 0))
    context = ssl.create_default_context(cadata=ca)
    try:
        for name in ("a.example", "b.example", "127.0.0.1"):

            def serve() -> None:
                line = held.context("fallback.example").wrap_socket(listener.accept()[0], True, do_handshake_on_connect=False)
                with contextlib.suppress(OSError), line:  # who does not believe it hangs up
                    line.sendall(b"hi")

            threading.Thread(target=serve, daemon=True).start()
            plain = socket.create_connection(listener.getsockname(), 20)
            if name[0].isdigit():  # an address is greeted with no name
                with pytest.raises(ssl.SSLCertVerificationError):
                    context.wrap_socket(plain, server_hostname=name)
            else:
                with context.wrap_socket(plain, server_hostname=name) as line:
                    assert line.recv(2) == b"hi"
    finally:
        listener.close()
        if held._maker is not None:
            held._maker.kill()
            held._maker.communicate()


def test_what_makes_certificates_says_nothing_for_what_is_no_name(tmp_path):
    authority.make(str(tmp_path))
    command = [sys.executable, "-S", authority.__file__, str(tmp_path), *sys.path]
    done = subprocess.run(command, input="a.example\n\nä\n" + "x" * 300 + "\n", capture_output=True, text=True, timeout=60)
    first, *rest = done.stdout.splitlines()
    assert first == authority.leaf_path(str(tmp_path), "a.example") and len(rest) == 3
