"""How long the inspector takes to show any version of a long conversation, once its chart was drawn."""

from __future__ import annotations

import http.client
import random
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Final

from tests.bench.rows import figure
from tests.inspector.looking import TOKEN, change, served_apart
from tests.inspector.story import LONG, tell_long

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.rows import Row
    from timeline.ports import EventStore

BLOCKS: Final = 100_000
VERSIONS: Final = 60
LONGEST: Final = 200
"""Milliseconds."""
_PATIENCE: Final = 120
_SLICE: Final = 5


def rows() -> Iterator[Row]:
    """Measure the slowest of some versions, over HTTP."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "long.db"

        async def tell(store: EventStore) -> None:
            await tell_long(store, LONG, BLOCKS)

        change(file, tell)
        with served_apart(file) as server:
            connection = http.client.HTTPConnection(server.base.removeprefix("http://").rstrip("/"), timeout=_PATIENCE)
            while _asked(connection, f"chart?wait={_SLICE}") > _SLICE:  # it is drawn slice by slice
                pass
            versions = random.Random(0).sample(range(2, BLOCKS), VERSIONS)
            for what in ("state?at={}", "blocks?limit=60&at={}"):
                slowest = max(_asked(connection, what.format(version)) for version in versions)
                name = f"`/{what.partition('?')[0]}` of {VERSIONS} versions of {BLOCKS:,} blocks, the slowest"
                yield figure("Looking back", name, "ms", [1_000 * slowest], LONGEST)


def _asked(connection: http.client.HTTPConnection, what: str) -> float:
    """Return the seconds of an answer."""
    start = perf_counter()
    connection.request("GET", f"/v1/conversations/{LONG}/{what}", headers={"Authorization": f"Bearer {TOKEN}"})
    answer = connection.getresponse()
    answer.read()
    assert answer.status == http.client.OK
    return perf_counter() - start
