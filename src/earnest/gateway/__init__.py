"""The gateway: what stands between MCP clients and MCP servers."""
