"""What the suite starts for a scenario of its client side: says so to the test (`client.waiting`), and waits for its end.

python knock.py SOCKET URL        with MCP_CONFORMANCE_SCENARIO, _PROTOCOL_VERSION and perhaps _CONTEXT
"""

import json
import os
import socket
import sys

with socket.socket(socket.AF_UNIX) as test:
    test.connect(sys.argv[1])
    env = {name: value for name, value in os.environ.items() if name.startswith("MCP_CONFORMANCE_")}
    test.sendall(json.dumps({"url": sys.argv[2], "env": env}).encode() + b"\n")
    with test.makefile("rb") as lines:
        said = json.loads(lines.readline())
sys.stderr.write(said["log"])
sys.exit(said["code"])
