from __future__ import annotations
import pytest
from timeline.store.testing.scavenging import ScavengeContract
from timeline.store.testing.forgetting import ForgetContract
from timeline.store.testing.chains import ChainContract
from timeline.store.testing.waypoints import WaypointContract
from tests.postgres import new_schema
from timeline.store.postgres.store import PostgresStore
class TestKeep(ScavengeContract, ForgetContract, ChainContract, WaypointContract):
    @pytest.fixture
    async def store(self, postgres_url):
        s = await PostgresStore.open(postgres_url)
        yield s
        await s.aclose()
