"""The command line: `otel-mcp-resume demo | doctor`."""
