from __future__ import annotations

import base64
import gzip
from typing import TYPE_CHECKING, Any

import pytest
from tiktoken_ext import openai_public  # type: ignore[import-untyped] # a plug-in package without a marker

from timeline.tokens.pack import main
from timeline.tokens.pages import Pages
from timeline.tokens.vocabulary import LONGEST_TOKEN, VOCABULARIES, Vocabulary, parse_tiktoken, tiktoken_sha256

if TYPE_CHECKING:
    from pathlib import Path

each_vocabulary = pytest.mark.parametrize("vocabulary", VOCABULARIES.values(), ids=VOCABULARIES)


def _tokens(pages: Pages) -> list[bytes]:
    """Return all tokens in rank order."""
    ranks = pages.all()
    return sorted(ranks, key=ranks.__getitem__)


def _tiktoken_form(tokens: list[bytes]) -> bytes:
    return b"".join(base64.b64encode(token) + f" {rank}\n".encode() for rank, token in enumerate(tokens))


@each_vocabulary
def test_a_pack_is_the_vocabulary_that_tiktoken_expects(
    vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hash, pattern and special tokens equal those of the installed tiktoken; nothing is fetched to find out."""
    asked: dict[str, Any] = {}
    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", lambda _url, expected_hash: asked.update(h=expected_hash))
    expected = openai_public.ENCODING_CONSTRUCTORS[vocabulary.name]()
    assert tiktoken_sha256(_tokens(vocabulary.pages())) == vocabulary.sha256 == asked["h"]
    assert vocabulary.pattern == expected["pat_str"]
    assert dict(vocabulary.special_tokens) == expected["special_tokens"]


@each_vocabulary
def test_no_token_is_longer_than_the_truncation_reckons_with(vocabulary: Vocabulary) -> None:
    """The longest token of a pack has as many bytes as the constant says."""
    assert max(map(len, vocabulary.ranks())) == LONGEST_TOKEN


def test_a_source_is_read_in_tiktokens_form() -> None:
    """Tokens come out in rank order, bytes that are no text included."""
    tokens = [b"a", b"\xff\x00", b"b" * LONGEST_TOKEN, b" \n"]
    assert parse_tiktoken(_tiktoken_form(tokens)) == tokens


def test_a_source_with_gaps_in_its_ranks_is_refused() -> None:
    """A line whose rank is not its number is an error that names the line."""
    with pytest.raises(ValueError, match="line 2 holds rank 7"):
        parse_tiktoken(b"IQ== 0\nIg== 7\n")


@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_the_rebuild_script_writes_the_pack_that_ships(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], compress: Any
) -> None:
    """A vocabulary in tiktoken's form, plain or gzip-compressed, becomes the same tokens as the shipped pack."""
    vocabulary = VOCABULARIES["cl100k_base"]
    source = tmp_path / "anything.tiktoken"
    source.write_bytes(compress(_tiktoken_form(_tokens(vocabulary.pages()))))
    assert main([str(source), "--into", str(tmp_path)]) == 0
    assert Pages((tmp_path / vocabulary.pack_name).read_bytes()).all() == vocabulary.ranks()
    assert "100256 tokens" in capsys.readouterr().out


def test_the_rebuild_script_writes_nothing_for_an_unknown_vocabulary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A source whose hash tiktoken does not expect leaves one line on stderr and no pack."""
    source = tmp_path / "o200k_base.tiktoken"
    source.write_bytes(_tiktoken_form([b"a", b"b"]))
    assert main([str(source), "--into", str(tmp_path)]) == 1
    assert "is that of none of cl100k_base, o200k_base" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [source]
