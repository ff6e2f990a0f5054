"""HTTP/1.1 on both sides, server-sent events, and the rules for dialling addresses that others name."""
