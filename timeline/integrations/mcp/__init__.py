"""Recorded conversations for any MCP client, read-only: `timeline mcp` on the command line, or `server.serve_stdio`.

The questions and their answers (`questions`, `answers`, `arguments`) know nothing of the protocol; `server` puts them
on the wire, and is the one module that needs the extra ``mcp``.
"""

from __future__ import annotations
