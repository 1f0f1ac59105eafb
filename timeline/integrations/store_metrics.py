"""Metrics of a PostgreSQL store through OpenTelemetry's API; needs no SDK, and sets nothing global.

from timeline.integrations.store_metrics import observed

async with open_store("postgresql://…") as store, observed(store):
    ...
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final, Protocol

from timeline import __version__
from timeline.errors import StoreError, needs

with needs("opentelemetry-api", "otel"):
    from opentelemetry import metrics
    from opentelemetry.metrics import Observation

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from opentelemetry.metrics import CallbackOptions, MeterProvider

log: Final = logging.getLogger("timeline.store")
INTERVAL: Final = 10.0
"""Seconds between two questions to the server."""


class Figures(Protocol):
    """What the queue of a store did and holds; see `timeline.store.postgres.writer.Figures`."""

    waiting: int
    waiting_characters: int
    groups: int
    appends: int
    lost: int


class MeasuredStore(Protocol):
    """The part of a PostgreSQL store that is reported."""

    where: str

    @property
    def figures(self) -> Figures:
        """What the queue of appends did and holds."""
        ...

    async def horizon_lag(self) -> int:
        """Return the number of transactions behind the oldest one that runs."""
        ...

    async def horizon_age(self) -> int:
        """Return the seconds since the oldest transaction that writes began."""
        ...


@asynccontextmanager
async def observed(
    store: MeasuredStore, *, meter_provider: MeterProvider | None = None, interval: float = INTERVAL
) -> AsyncIterator[None]:
    """Report the queue of a store's appends, and the lag and age of its horizon, while the ``async with`` block runs.

    Args:
        store: the store; its address without the password is an attribute of each figure.
        meter_provider: gets the figures; None for the process's own.
        interval: seconds between two looks at the horizon; each runs two statements on a connection that only reads.
    """
    one = _Observed(store)
    one.register(metrics.get_meter("timeline", __version__, meter_provider))
    await one.look()
    looking = asyncio.create_task(one.keep_looking(interval))
    try:
        yield
    finally:
        one.ended = True  # the API has no way to take an instrument back
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking


class _Observed:
    """A store, and what was last read of its horizon: an exporter's thread cannot ask the server."""

    def __init__(self, store: MeasuredStore) -> None:
        self._store = store
        self._attributes = {"timeline.store": store.where}
        self._lag: int | None = None
        self._age: int | None = None
        self.ended = False

    def register(self, meter: metrics.Meter) -> None:
        self._register_queue(meter)
        self._register_horizon(meter)

    def _register_queue(self, meter: metrics.Meter) -> None:
        figures = self._store.figures
        of_figures: tuple[tuple[Callable[..., object], str, str, str, Callable[[], int]], ...] = (
            (
                meter.create_observable_up_down_counter,
                "timeline.store.queue.appends",
                "{append}",
                "Appends that wait for the server",
                lambda: figures.waiting,
            ),
            (
                meter.create_observable_up_down_counter,
                "timeline.store.queue.characters",
                "{character}",
                "Characters of the appends that wait",
                lambda: figures.waiting_characters,
            ),
            (
                meter.create_observable_counter,
                "timeline.store.groups",
                "{group}",
                "Groups of appends that were committed together",
                lambda: figures.groups,
            ),
            (
                meter.create_observable_counter,
                "timeline.store.appends",
                "{append}",
                "Appends of these groups",
                lambda: figures.appends,
            ),
            (
                meter.create_observable_counter,
                "timeline.store.lost",
                "{append}",
                "Appends that came second to another writer's, and were placed again",
                lambda: figures.lost,
            ),
        )
        for create, name, unit, description, read in of_figures:
            create(name, callbacks=[self._reporting(read)], unit=unit, description=description)

    def _register_horizon(self, meter: metrics.Meter) -> None:
        lag = (
            "Transactions from the oldest running one of the server to the newest, which readers of all events wait for"
        )
        meter.create_observable_gauge(
            "timeline.store.horizon.lag",
            callbacks=[self._reporting(lambda: self._lag)],
            unit="{transaction}",
            description=lag,
        )
        meter.create_observable_gauge(
            "timeline.store.horizon.age",
            callbacks=[self._reporting(lambda: self._age)],
            unit="s",
            description="Time since the oldest transaction of the server that writes began",
        )

    def _reporting(self, read: Callable[[], int | None]) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def report(_: CallbackOptions) -> Iterable[Observation]:
            value = None if self.ended else read()
            return [] if value is None else [Observation(value, self._attributes)]

        return report

    async def look(self) -> None:
        """Ask for lag and age; while the server is away there are none."""
        try:
            self._lag, self._age = await self._store.horizon_lag(), await self._store.horizon_age()
        except StoreError as error:
            self._lag = self._age = None
            log.info("%s: the lag of the horizon is not known (%s)", self._store.where, error)

    async def keep_looking(self, interval: float) -> None:
        while True:
            await asyncio.sleep(interval)
            await self.look()
