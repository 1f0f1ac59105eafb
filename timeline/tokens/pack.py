"""Rebuild the packed vocabularies: ``python -m timeline.tokens.pack SOURCE… [--into FOLDER]``.

A source is a vocabulary in tiktoken's own form, ``o200k_base.tiktoken``, plain or gzip-compressed (the package
``bpe-openai`` carries both). Its hash identifies the vocabulary; a source whose hash is not one of those that tiktoken
expects is refused.
"""

from __future__ import annotations

import argparse
import gzip
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from timeline.databases import read_file
from timeline.tokens.pages import pack
from timeline.tokens.vocabulary import VOCABULARIES, Vocabulary, parse_tiktoken, tiktoken_sha256

if TYPE_CHECKING:
    from collections.abc import Sequence

GZIP_MAGIC: Final = b"\x1f\x8b"


def read_source(source: Path) -> tuple[Vocabulary, list[bytes]]:
    """Read a vocabulary in tiktoken's form and identify it by its hash.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is no vocabulary, or not one of the known ones.
    """
    content = read_file(source)
    tokens = parse_tiktoken(gzip.decompress(content) if content.startswith(GZIP_MAGIC) else content)
    found = tiktoken_sha256(tokens)
    for vocabulary in VOCABULARIES.values():
        if vocabulary.sha256 == found:
            return vocabulary, tokens
    raise ValueError(f"its sha256 {found} is that of none of {', '.join(sorted(VOCABULARIES))}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write a pack for each source; return 1, with one line of explanation, where a source is no known vocabulary."""
    parser = argparse.ArgumentParser(prog="python -m timeline.tokens.pack", description=(__doc__ or "").split(":")[0])
    parser.add_argument("sources", nargs="+", type=Path, metavar="SOURCE", help="a .tiktoken file, plain or gzip")
    parser.add_argument("--into", type=Path, default=Path(__file__).parent, help="where to write (default: here)")
    options = parser.parse_args(arguments)
    for source in options.sources:
        try:
            vocabulary, tokens = read_source(source)
        except (OSError, ValueError) as error:
            sys.stderr.write(f"{source}: {error}. Nothing was written for it.\n")
            return 1
        target = options.into / vocabulary.pack_name
        written = target.write_bytes(pack(tokens))
        sys.stdout.write(f"{target}: {len(tokens)} tokens, {written} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
