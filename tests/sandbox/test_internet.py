"""The internet that a box has: made up and recorded, or the hosts that its plan names."""

import contextlib
import http.server
import json
import shutil
import socket
import threading

import pytest

from earnest.sandbox.box import Answer, Folder

ASK = """
import json, ssl, socket, smtplib, urllib.request
def get(url, data=None, headers={}):
    with urllib.request.urlopen(urllib.request.Request(url, data=data, headers=headers), timeout=20) as answer:
        return answer.read().decode()
"""


def test_every_name_port_and_protocol_of_the_web_is_answered_and_recorded(rig):
    script = ASK + """
print(json.dumps([
    get("https://api.example.dev/v1/things?x=1", b'{"a": 1}', {"Content-Type": "application/json"}),
    get("https://api.example.dev/v1/things"), get("https://api.example.dev/v1/things"),
    get("http://www.example.dev:8081/list.csv"), get("http://[2606:4700::1111]/notes.txt"), get("https://9.9.9.9/x.json"),
    sorted({entry[4][0] for entry in socket.getaddrinfo("www.example.dev", 80)}),
]))
"""
    answers = (
        Answer("*.example.dev", "/v1/*", method="GET", body=b"first"),
        Answer("*.example.dev", "/v1/*", method="GET", body=b"then", headers=(("X-More", "1"),)),
    )
    done = rig.python(script, reach="pretend", answers=answers)
    assert done.status == 0, done.err
    posted, first, then, table, notes, data, addresses = json.loads(done.out)
    assert json.loads(posted)["ok"] and (first, then) == ("first", "then")
    assert table.startswith("id,name") and notes.startswith("First line") and json.loads(data)["ok"]
    assert len(addresses) == 2
    requests = [(e.subject, e.port, e.method, e.target) for e in done.did("request")]
    assert requests == [
        ("api.example.dev", 443, "POST", "/v1/things?x=1"), ("api.example.dev", 443, "GET", "/v1/things"),
        ("api.example.dev", 443, "GET", "/v1/things"), ("www.example.dev", 8081, "GET", "/list.csv"),
        ("2606:4700::1111", 80, "GET", "/notes.txt"), ("9.9.9.9", 443, "GET", "/x.json"),
    ]  # fmt: skip
    assert done.did("request")[0].body == b'{"a": 1}'
    assert {"api.example.dev", "www.example.dev"} == {e.subject for e in done.did("name")}
    assert {("api.example.dev", 443), ("www.example.dev", 8081)} <= {(e.subject, e.port) for e in done.did("connect")}


def test_mail_and_other_protocols_are_heard(mine):
    script = ASK + """
mail = smtplib.SMTP("mail.example.org", 25, timeout=20)
mail.sendmail("a@example.org", ["b@example.net"], "Subject: hello\\n\\nwords\\n")
mail.quit()
with socket.create_connection(("db.example.org", 5432)) as line:
    line.sendall(b"startup packet")
"""
    done = mine.python(script, reach="pretend")
    assert done.status == 0, done.err
    mail, other = done.did("request")
    assert (mail.subject, mail.method, mail.target) == ("mail.example.org", "MAIL", "<b@example.net>")
    assert b"words" in mail.body
    assert (other.subject, other.port, other.method, other.body) == ("db.example.org", 5432, "", b"startup packet")


def test_datagrams_to_anywhere_are_recorded_where_namespaces_are(make_rig):
    script = """
import socket
for family, address in ((socket.AF_INET, "8.8.4.4"), (socket.AF_INET6, "2606::9")):
    socket.socket(family, socket.SOCK_DGRAM).sendto(b"tick", (address, 123))
import time; time.sleep(0.3)
"""
    done = make_rig("namespaces").python(script, reach="pretend")
    assert [(e.subject, e.port, e.body) for e in done.did("datagram")] == [("8.8.4.4", 123, b"tick"), ("2606::9", 123, b"tick")]


def test_node_believes_the_certificates_too(mine):
    node = shutil.which("node")
    assert node, "Node is one of this project's requirements"
    script = "fetch('https://a.example.com/x.json').then(r => r.json()).then(j => console.log(j.ok, j.id))"
    done = mine.run(node, "-e", script, reach="pretend")
    assert done.out == "true 1\n", done.err


@pytest.mark.parametrize(
    "reach, address", [("none", "127.0.0.1"), ("pretend", "127.0.0.1"), ("none", "0.0.0.0"), ("none", "::")]
)
def test_a_server_inside_is_reached_on_its_own_loopback(mine, reach, address):
    script = f"""
import http.server, socket, threading, urllib.request
http.server.ThreadingHTTPServer.address_family = socket.AF_INET6 if ":" in "{address}" else socket.AF_INET
server = http.server.ThreadingHTTPServer(("{address}", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(urllib.request.urlopen(f"http://127.0.0.1:{{server.server_port}}/").status)
"""
    done = mine.python(script, reach=reach)
    assert done.out == "200\n", done.err
    assert [event for event in done.did("refused") if event.port != 53] == []  # it may ask for its own name


@pytest.mark.parametrize("granted", [False, True], ids=["alone", "beside a granted folder"])
def test_unix_sockets_of_the_box_itself_work(mine, granted):
    script = """
import os, socket, threading
os.chdir(os.environ["HOME"])
server = socket.socket(socket.AF_UNIX)
server.bind("a-socket-with-a-name")
server.listen()
threading.Thread(target=lambda: server.accept()[0].sendall(b"hello"), daemon=True).start()
client = socket.socket(socket.AF_UNIX)
client.connect(server.getsockname())
print(client.recv(10).decode())
"""
    (mine.folder / "granted").mkdir()
    path = str(mine.folder / "granted")
    done = mine.python(script, folders=(Folder(path, path, "read"),) if granted else ())
    assert done.out == "hello\n", done.err
    assert f"{mine.home}/a-socket-with-a-name" in {e.subject for e in done.did("socket")}


def test_without_network_what_was_tried_is_told(mine):
    script = """
import socket
for host in ("example.com", "192.0.2.7"):
    try:
        socket.create_connection((host, 80), timeout=5)
    except OSError as error:
        print(type(error).__name__)
"""
    done = mine.python(script, reach="none")
    assert done.out.split() == ["gaierror", "OSError"]
    assert ("192.0.2.7", 80) in {(e.subject, e.port) for e in done.did("refused")}
    assert 53 in {e.port for e in done.did("refused")}


@contextlib.contextmanager
def web():
    """A server of this machine."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = f"real {self.headers['Host']}".encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def test_named_hosts_are_reached_and_nothing_else(rig):
    with web() as port, socket.create_server(("127.0.0.1", 0)) as other:
        script = ASK + f"""
def tried(act):
    try:
        return act()
    except OSError as error:
        return "no"
print(json.dumps([
    tried(lambda: get("http://localhost:{port}/")),
    tried(lambda: get("http://127.0.0.1:{other.getsockname()[1]}/")),
    tried(lambda: get("http://example.com/")),
    tried(lambda: get("http://169.254.169.254/latest")),
]))
"""
        done = rig.python(script, reach="hosts", hosts=(f"localhost:{port}", "api.example.org"))
    assert json.loads(done.out) == [f"real localhost:{port}", "no", "no", "no"], done.err
    assert {"example.com", "169.254.169.254"} <= done.refused()
    assert ("localhost", port, "outside") in {(e.subject, e.port, e.detail) for e in done.did("connect")}
