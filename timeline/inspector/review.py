"""What would be taken out of a file that is to be shared, to be looked over before it is saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.inspector.bundle import review_bundle
from timeline.inspector.cleaning import Cleaner
from timeline.inspector.onefile.collecting import Wish, collect
from timeline.inspector.shapes import Review

if TYPE_CHECKING:
    from timeline.inspector.asked import AskedReview
    from timeline.inspector.reader import Reader


async def review_file(reader: Reader, asked: AskedReview) -> Review:
    """List the credentials and home folders that would be taken out of a file."""
    store = reader.store
    version = (await store.info(asked.id)).version
    if asked.format == "bundle":
        cleaner = await review_bundle(store, asked.id)
    else:
        carried = await collect(store, asked.id, Wish(asked.mode, asked.contexts, redact=True))
        cleaner = carried.cleaner or Cleaner()
    return Review(conversation=asked.id, version=version, format=asked.format, findings=tuple(cleaner.taken))
