"""MCP clients and their configurations: one file a client, one way to read, wrap and unwrap for all of
them."""
