"""The contract of `EventStore` as tests: subclass `StoreContract`, define three hooks, and run pytest.

    class TestMyStore(StoreContract):
        async def make_store(self, folder: Path) -> EventStore:
            return await MyStore.open(folder / "my.db")

        async def open_again(self, folder: Path) -> EventStore | None:
            return await self.make_store(folder)  # None: one store has the database for itself

        async def restore(self, folder: Path, copy: Path) -> EventStore | None:
            return None  # there are no backups of it

`docs/stores.md` has an example that runs.

Needs pytest and pytest-asyncio with ``asyncio_mode = "auto"``. Every test gets a new, empty store.
"""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite(
    *(
        f"{__name__}.{part}"
        for part in (
            "appends",
            "chains",
            "repeats",
            "reads",
            "forks",
            "digests",
            "facts",
            "searches",
            "scavenging",
            "sharing",
            "forgetting",
            "faults",
            "waypoints",
        )
    )
)

from .appends import AppendContract  # noqa: E402 - after the asserts were announced
from .cancelling import cancelled_at  # noqa: E402 - after the asserts were announced
from .chains import ChainContract  # noqa: E402 - after the asserts were announced
from .digests import DigestContract  # noqa: E402 - after the asserts were announced
from .facts import FactContract  # noqa: E402 - after the asserts were announced
from .faults import FaultContract  # noqa: E402 - after the asserts were announced
from .forgetting import ForgetContract  # noqa: E402 - after the asserts were announced
from .forks import ForkContract  # noqa: E402 - after the asserts were announced
from .reads import ReadContract  # noqa: E402 - after the asserts were announced
from .repeats import RepeatContract  # noqa: E402 - after the asserts were announced
from .samples import block_event, compaction, event, events, fork  # noqa: E402 - after the asserts were announced
from .scavenging import ScavengeContract  # noqa: E402 - after the asserts were announced
from .searches import SearchContract  # noqa: E402 - after the asserts were announced
from .sharing import SharingContract  # noqa: E402 - after the asserts were announced
from .waypoints import WaypointContract  # noqa: E402 - after the asserts were announced

__all__ = ["StoreContract", "block_event", "cancelled_at", "compaction", "event", "events", "fork"]


class StoreContract(
    AppendContract,
    RepeatContract,
    ReadContract,
    ForkContract,
    DigestContract,
    FactContract,
    SearchContract,
    ScavengeContract,
    ForgetContract,
    ChainContract,
    FaultContract,
    SharingContract,
    WaypointContract,
):
    """Every sentence of `EventStore`'s docstrings as a test. Subclasses override the hooks of `ContractBase`."""
