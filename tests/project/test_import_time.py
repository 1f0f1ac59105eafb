from __future__ import annotations

import re
import subprocess
import sys

HEAVY = {
    "aiosqlite",
    "anthropic",
    "asyncpg",
    "openai",
    "opentelemetry",
    "sqlalchemy",
    "sqlmodel",
    "tiktoken",
    "timeline.store.sqlite.store",
    "toktok",
}
"""What a person who asks for help should not wait for."""


def test_help_imports_no_database_tokenizer_or_sdk() -> None:
    """`timeline --help` answers without the libraries that only real work needs."""
    program = "import sys; from timeline.cli import main; sys.argv = ['timeline', '--help']; main()"
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", program], capture_output=True, text=True, check=False
    )
    imported = set(re.findall(r"^import time:.*\| +(\S+)$", done.stderr, re.MULTILINE))
    assert done.returncode == 0, done.stderr[-2000:]
    assert "timeline.cli" in imported
    assert not {name for name in imported if name in HEAVY or name.partition(".")[0] in HEAVY}
