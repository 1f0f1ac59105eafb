"""Cached prefixes of Google's Gen AI API: the parts of a request that an application may cache as objects.

The API does not cache marked parts. It caches a named object, made beforehand from system prompt, tools and the first
contents; a request names the object and sends only the other contents. So each cache point becomes a prefix with a
number of contents, and a hash over all of it, by which an application finds the object that it made of it before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from timeline.frozen import canonical_json, sha256_hex
from timeline.wire.gemini import ContentWriter, config_of, encode
from timeline.wire.groups import gather

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.wire.gemini import Content
    from timeline.wire.neutral import NeutralContext


@dataclass(frozen=True, slots=True)
class CachedPrefix:
    """A prefix of a request that ends at a cache point.

    Attributes:
        kind: the cache point's kind.
        blocks: number of entries of the context up to the cache point.
        contents: number of the request's contents in the prefix.
        sha256: hash of its canonical JSON: system prompt, tools and these contents. Equal hashes are equal prefixes.
        cached: the object's content, as ``caches.create(config=…)`` takes it; add a lifetime.
        rest: the contents behind the prefix.
    """

    kind: str
    blocks: int
    contents: int
    sha256: str
    cached: dict[str, Any]
    rest: list[Content]

    def request(self, name: str) -> dict[str, Any]:
        """Return the arguments of ``generate_content`` besides the model, once the prefix is cached.

        System prompt and tools are in the object; the API refuses a request that names them again.

        Args:
            name: name of the cached object, such as ``cachedContents/a1b2``.
        """
        return {"contents": self.rest, "config": {"cached_content": name}}


def cached_prefixes(context: NeutralContext) -> list[CachedPrefix]:
    """Return the prefixes that end at a context's cache points, the shortest first.

    The shortest prefix ends before the current turn, so it stays the same while the turn goes on. A prefix never
    divides a call from its answer, and a prefix that leaves no contents to send is left out.
    """
    writer = ContentWriter(context.model)
    for item in gather(context.entries):
        writer.add(item)
    contents: list[Content] = encode(context)["contents"]
    found: dict[int, CachedPrefix] = {}
    for point in context.cache_points:
        until = max((writer.place.get(number, -1) for number in range(point.index + 1)), default=-1) + 1
        length = _whole(contents, until)
        if 0 < length < len(contents) and length not in found:
            cached = {**config_of(context), "contents": contents[:length]}
            hash_ = sha256_hex(canonical_json(cached))
            found[length] = CachedPrefix(
                point.kind, point.index + 1, length, hash_, cached=cached, rest=contents[length:]
            )
    return [found[length] for length in sorted(found)]


def _whole(contents: Sequence[Content], length: int) -> int:
    """Return the number of contents that a prefix may have: a prefix may not end in calls, so it ends before them."""
    while length and any("function_call" in part for part in contents[length - 1]["parts"]):
        length -= 1
    return length
