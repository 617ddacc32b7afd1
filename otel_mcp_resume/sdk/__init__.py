"""The hooks. The only rooms that know names inside `mcp`, `httpx`, `httpx2` and `httpx_sse`. They decide nothing."""
