"""MCP on the wire, as data: raw JSON in and out, both eras. No sockets, no clock, no randomness of its
own."""
