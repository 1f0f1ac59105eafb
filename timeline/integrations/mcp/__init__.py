"""Serve recorded conversations to MCP clients, read-only: `timeline mcp` on the command line, or `server.serve_stdio`.

The modules `questions`, `answers` and `arguments` do not depend on the protocol; `server` speaks it, and is the only
module that needs the extra ``mcp``.
"""

from __future__ import annotations
