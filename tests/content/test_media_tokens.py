"""Tokens of pictures and files: an estimate by size, where no tokenizer counts."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest

from tests.scenes import opened
from timeline.blocks import Attachment, ToolResult
from timeline.content.media_tokens import (
    FEWEST_IMAGE_TOKENS,
    IMAGE_TOKENS,
    MOST_IMAGE_TOKENS,
    image_count,
    media_characters,
    media_tokens,
    media_within,
)
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from pydantic import JsonValue


async def test_a_picture_whose_bytes_say_no_size_costs_as_much_as_a_screenshot() -> None:
    """So does one that is given by its address or id."""
    picture: dict[str, JsonValue] = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "aGk="},
    }
    block = ToolResult(call_id="c", text="abcd", data=[picture, {"type": "text", "text": "t"}, picture])
    timeline = await opened(MemoryStore())
    await timeline.append(block)
    assert image_count(block) == 2
    assert timeline.window.items[0].tokens == 1 + 2 * IMAGE_TOKENS


_FILE = "QUFB" * 50_000


@pytest.mark.parametrize(
    "part",
    [
        {"type": "file", "file": {"filename": "a.pdf", "file_data": _FILE}},
        {"type": "input_file", "file_data": _FILE},
        {"type": "input_audio", "input_audio": {"data": _FILE, "format": "wav"}},
        {"type": "inlineData", "inlineData": {"mimeType": "video/mp4", "data": _FILE}},
        {"inline_data": {"mime_type": "application/pdf", "data": _FILE}},
        {"type": "file", "mediaType": "application/pdf", "data": _FILE},
    ],
    ids=["file", "input_file", "input_audio", "inlineData", "inline_data", "AI SDK"],
)
def test_a_file_costs_the_same_in_the_form_of_every_provider(part: dict[str, JsonValue]) -> None:
    """A limit holds only where the same document counts the same."""
    source: dict[str, JsonValue] = {"type": "base64", "media_type": "application/pdf", "data": _FILE}
    document: dict[str, JsonValue] = {"type": "document", "source": source}
    assert media_tokens(Attachment(data=part)) == media_tokens(Attachment(data=document)) == len(_FILE) // 33


@pytest.mark.parametrize(
    "part",
    [
        {"type": "file", "file": {"file_id": "f1"}},
        {"type": "input_file", "file_url": "https://example.org/a.pdf"},
        {"type": "fileData", "fileData": {"fileUri": "gs://a/b.mp4", "mimeType": "video/mp4"}},
        {"inlineData": {"mimeType": "image/png", "data": _FILE}},
        {"image": {"format": "png", "source": {"bytes": _FILE}}},
        {"type": "file", "mediaType": "image/png", "data": _FILE},
    ],
    ids=["id", "address", "Google's address", "picture", "Bedrock's picture", "the AI SDK's picture"],
)
def test_a_file_elsewhere_costs_as_much_as_a_picture(part: dict[str, JsonValue]) -> None:
    """Nothing is known of its size, and a picture's size is not that of its file."""
    assert media_tokens(Attachment(data=part)) == IMAGE_TOKENS


def test_a_picture_inside_a_document_costs_what_a_picture_costs() -> None:
    """Its base64 was counted as text: a screenshot was more than the window."""
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _FILE}}
    content = [{"type": "text", "text": "page"}, picture]
    block = Attachment(data={"type": "document", "source": {"type": "content", "content": content}})
    assert IMAGE_TOKENS < media_tokens(block) < IMAGE_TOKENS + 20
    assert image_count(block) == 1
    assert media_characters(block) > len(_FILE)


def test_a_part_whose_type_is_no_text_is_no_picture() -> None:
    """Data comes from anywhere; it is stored as it is."""
    block = Attachment(data={"type": ["image"]})
    assert (image_count(block), media_tokens(block)) == (0, 0)


def test_a_file_that_an_earlier_release_did_not_count_is_no_part_of_its_tokens() -> None:
    """A log keeps the counts of its appends: a text of fewer tokens than none would be what is left of them."""
    block = Attachment(data={"type": "file", "file": {"file_data": _FILE}})
    assert [media_within(block, tokens) for tokens in (1, media_tokens(block))] == [0, media_tokens(block)]


def png(width: int, height: int) -> str:
    """Return the beginning of a PNG in base64: its size stands in its first 33 bytes."""
    sides = width.to_bytes(4, "big") + height.to_bytes(4, "big")
    return base64.b64encode(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + sides + bytes(9)).decode()


def as_part(content: str) -> dict[str, JsonValue]:
    """Return base64 as a picture in Anthropic's form."""
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": content}}


@pytest.mark.parametrize(
    ("size", "tokens"),
    [((1024, 1024), 1_369), ((1280, 720), 1_196), ((1920, 1080), 2_691), ((1080, 1920), 2_691)],
    ids=["square", "screenshot", "full HD", "on end"],
)
def test_a_picture_costs_what_anthropic_takes_for_its_size(size: tuple[int, int], tokens: int) -> None:
    """Measured there: 1,446, 1,273 and 2,768 tokens, of which 77 are the message around it."""
    assert media_tokens(Attachment(data=as_part(png(*size)))) == tokens


@pytest.mark.parametrize("size", [(1, 1), (256, 256), (512, 512)])
def test_a_small_picture_costs_what_the_dearest_provider_takes(size: tuple[int, int]) -> None:
    """Gemini 3 takes as much for a thumbnail as for a page."""
    assert media_tokens(Attachment(data=as_part(png(*size)))) == FEWEST_IMAGE_TOKENS


@pytest.mark.parametrize("size", [(2576, 1449), (4032, 3024), (8000, 8000)])
def test_a_large_picture_is_scaled_down_before_it_costs(size: tuple[int, int]) -> None:
    """No photograph costs more than the provider lets through."""
    assert media_tokens(Attachment(data=as_part(png(*size)))) == MOST_IMAGE_TOKENS


def test_a_long_strip_is_scaled_down_by_its_longer_edge() -> None:
    """8,000 by 2,000 pixels are 2,576 by 644 there, which is a tenth of what they are here."""
    assert media_tokens(Attachment(data=as_part(png(8_000, 2_000)))) == 92 * 23


JPEG = (
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAgGBgcGBQgHBwcJCQgKDBQNDAsLDBkSEw8UHRofHh0aHBwgJC4nICIsIxwcKDcpLDAxNDQ0Hyc5PTgy"
    "PC4zNDL/2wBDAQkJCQwLDBgNDRgyIRwhMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjL/wAARCAOEBdwDASIA"
    "AhEBAxEB"
)
"""The beginning of a JPEG of 1,500 by 900 pixels."""
OF_1500_BY_900 = 54 * 33
FORMATS = {
    "JPEG": JPEG,
    "GIF": "R0lGODdh3AWEA4EA",
    "WebP": "UklGRrwJAABXRUJQVlA4ILAJAACQIwGdASrcBYQDPm02mUmkIyKhIAgA",
    "PNG": png(1_500, 900),
}


@pytest.mark.parametrize("content", FORMATS.values(), ids=FORMATS)
def test_every_format_that_providers_take_says_its_size(content: str) -> None:
    """Each has it in another place of its bytes."""
    assert media_tokens(Attachment(data=as_part(content))) == OF_1500_BY_900


def test_a_photograph_says_its_size_behind_what_the_camera_wrote() -> None:
    """A JPEG may begin with a hundred thousand bytes of other things: a thumbnail, colours, places."""
    raw = base64.b64decode(JPEG)
    page = b"\xff\xe1" + (65_535).to_bytes(2, "big") + bytes(65_533)
    content = base64.b64encode(raw[:2] + page * 3 + raw[2:]).decode()
    assert media_tokens(Attachment(data=as_part(content))) == OF_1500_BY_900


def test_base64_in_lines_and_in_the_alphabet_of_addresses_is_the_same_picture() -> None:
    """Programs of mail divide it; Google's SDK writes the other alphabet."""
    written = base64.urlsafe_b64encode(base64.b64decode(JPEG)).decode()
    divided = "\n".join(written[at : at + 75] for at in range(0, len(written), 75))
    assert media_tokens(Attachment(data=as_part(divided))) == OF_1500_BY_900


_ADDRESS = f"data:image/jpeg;base64,{JPEG}"
FORMS: dict[str, dict[str, JsonValue]] = {
    "Anthropic": as_part(JPEG),
    "Chat Completions": {"type": "image_url", "image_url": {"url": _ADDRESS, "detail": "high"}},
    "a server of its form": {"type": "image_url", "image_url": _ADDRESS},
    "Responses": {"type": "input_image", "image_url": _ADDRESS},
    "Google": {"inlineData": {"mimeType": "image/jpeg", "data": JPEG}},
    "Google's SDK": {"inline_data": {"mime_type": "image/jpeg", "data": JPEG}},
    "Bedrock": {"image": {"format": "jpeg", "source": {"bytes": JPEG}}},
    "the AI SDK": {"type": "file", "mediaType": "image/jpeg", "data": JPEG},
    "the AI SDK's page": {"type": "file", "mediaType": "image/jpeg", "url": _ADDRESS},
    "the AI SDK before 5": {"type": "image", "image": JPEG},
    "MCP": {"type": "image", "data": JPEG, "mimeType": "image/jpeg"},
    "LangChain": {"type": "image", "base64": JPEG, "mime_type": "image/jpeg"},
}


@pytest.mark.parametrize("part", FORMS.values(), ids=FORMS)
def test_a_picture_costs_the_same_in_the_form_of_every_provider(part: dict[str, JsonValue]) -> None:
    """A limit holds only where the same picture counts the same."""
    assert media_tokens(Attachment(data=part)) == OF_1500_BY_900


def test_a_drawing_of_the_vector_kind_is_not_read() -> None:
    """No provider takes one, and XML of strangers is nothing to be parsed for a count."""
    content = base64.b64encode(b'<svg xmlns="http://www.w3.org/2000/svg" width="3000" height="3000"/>').decode()
    assert media_tokens(Attachment(data=as_part(content))) == IMAGE_TOKENS
