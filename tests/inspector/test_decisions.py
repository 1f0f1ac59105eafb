"""Decisions from the page: only where they are allowed, and only by a page of ours or a script that means it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.abridged import read_numbered
from tests.inspector.asking import Answer, ask, segment
from tests.scenes import small_policy, turn
from timeline import Timeline
from timeline.inspector import inspector
from timeline.inspector.asked import DECISIONS
from timeline.store import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from tests.inspector.sent import Sent
    from timeline.ports import EventStore

MEANT = {"x-timeline-decision": "1"}


async def decide(app: Any, id_: str, headers: dict[str, str] | None = None, **decision: object) -> Answer:
    """Send a decision."""
    return await ask(
        app,
        f"/v1/conversations/{segment(id_)}/decisions",
        method="POST",
        headers=MEANT if headers is None else headers,
        body=[json.dumps(decision).encode()],
    )


@pytest.fixture
def deciding(store: EventStore) -> Any:
    """Give an inspector that takes decisions."""
    return inspector(store, allow=DECISIONS)


async def test_unless_they_are_allowed_none_is_taken(app: Any, store: EventStore, sent: Sent) -> None:
    """One by one: what is not named is not allowed."""
    head = await store.head()
    assert (await decide(app, sent.id, decision="compact")).json["type"] == "decision-not-allowed"
    some = inspector(store, allow=["pin"])
    assert (await decide(some, sent.id, decision="undo")).status == 403
    assert (await ask(some, "/v1/about")).json["decisions"] == ["pin"]
    assert await store.head() == head


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"sec-fetch-site": "same-origin"},
        {**MEANT, "sec-fetch-site": "cross-site"},
        {**MEANT, "sec-fetch-site": "same-site"},
        {**MEANT, "sec-fetch-site": "none"},
        {**MEANT, "origin": "http://evil.example"},
    ],
)
async def test_a_page_of_another_origin_decides_nothing(
    deciding: Any, store: EventStore, sent: Sent, headers: dict[str, str]
) -> None:
    """Nor does a form or a link of one."""
    head = await store.head()
    answer = await decide(deciding, sent.id, headers, decision="compact")
    assert (answer.status, answer.json["type"]) == (403, "foreign-request")
    assert await store.head() == head


async def test_each_decision_is_that_of_the_library(deciding: Any, store: EventStore, sent: Sent) -> None:
    """It is an event of the log, and the answer has the blocks that it changed."""
    timeline = await Timeline.open(store, sent.id)
    live = next(item for item in timeline.window.items if item.block.type == "react.tool.result" and not item.carried)
    address = f"@{live.version}"
    for decision, state in (("hide", "hidden"), ("reveal", "visible")):
        answer = (await decide(deciding, sent.id, decision=decision, block=address)).json
        assert [(b["version"], b["state"]) for b in answer["blocks"]] == [(live.version, state)]
    assert (await decide(deciding, sent.id, decision="pin", block=address)).json["blocks"][0]["pinned"]
    assert not (await decide(deciding, sent.id, decision="unpin", block=address)).json["blocks"][0]["pinned"]
    undone = (await decide(deciding, sent.id, decision="undo")).json
    assert len(undone["reverted"]) == 1
    assert (await decide(deciding, sent.id, decision="compact")).status == 200
    forked = (await decide(deciding, sent.id, decision="fork", call=5, new_id="other")).json
    assert (forked["conversation"], (await store.info("other")).parent is not None) == ("other", True)


DECIDED = ("blocks", "gone", "reverted", "after_tokens", "before_tokens", "base")


async def test_a_dry_run_says_what_the_decision_then_does(deciding: Any, store: EventStore, sent: Sent) -> None:
    """Of each decision; nothing is appended, and no conversation begins."""
    timeline = await Timeline.open(store, sent.id)
    live = next(item for item in timeline.window.items if item.block.type == "react.tool.result" and not item.carried)
    about = {"block": f"@{live.version}"}
    wishes: list[dict[str, object]] = [
        {"decision": "hide", **about},
        {"decision": "reveal", **about},
        {"decision": "hide", "mode": "omit", **about},
        {"decision": "reveal", **about},
        {"decision": "pin", **about},
        {"decision": "unpin", **about},
        {"decision": "undo"},
        {"decision": "compact", "instructions": "Keep the names."},
        {"decision": "fork", "at": 30},
        {"decision": "fork", "call": 5, "new_id": "other"},
    ]
    for wish in wishes:
        head = await store.head()
        tried = (await decide(deciding, sent.id, None, **wish, dry_run=True)).json
        assert await store.head() == head, wish
        done = (await decide(deciding, sent.id, None, **wish)).json
        assert await store.head() > head
        assert (tried.pop("dry_run"), done.pop("dry_run")) == (True, False)
        assert {key: tried[key] for key in DECIDED} == {key: done[key] for key in DECIDED}, wish
        assert tried["conversation"] == done["conversation"]


async def test_a_dry_run_is_refused_as_the_decision_is(deciding: Any, app: Any, sent: Sent) -> None:
    """With the same words; and where no decision is allowed, none is tried either."""
    for wish in (
        {"decision": "hide", "block": "@9999"},
        {"decision": "undo", "version": 3},
        {"decision": "fork", "at": 10**9},
        {"decision": "unpin", "block": "@2"},
    ):
        answers = [await decide(deciding, sent.id, None, **wish, dry_run=tried) for tried in (True, False)]
        assert answers[0].json == answers[1].json, wish
        assert answers[0].status in {404, 409}, wish
    assert (await decide(app, sent.id, decision="pin", block="@2", dry_run=True)).status == 403


async def _both(app: Any, id_: str, **wish: object) -> list[Any]:
    """Return the answers of a dry run and of its decision, without what says which is which."""
    tried = (await decide(app, id_, None, **wish, dry_run=True)).json
    done = (await decide(app, id_, None, **wish)).json
    return [{key: value for key, value in one.items() if key not in {"dry_run", "version"}} for one in (tried, done)]


@pytest.mark.parametrize("decision", ["compact", "pin", "hide", "undo", "fork"])
async def test_a_dry_run_counts_as_the_policy_in_force_counts(deciding: Any, store: EventStore, decision: str) -> None:
    """Also where blocks were stored under another counter: before and behind it are in one unit."""
    timeline = await Timeline.open(store, "c", policy=small_policy(max_tokens=4_000))
    await timeline.append(*turn(600), *turn(600), *turn(600), *turn(600))
    await timeline.compact()
    await timeline.append(*turn(600), *turn(600))
    await timeline.use_policy(small_policy(max_tokens=4_000, counter="o200k_base"))
    about = {"block": f"@{timeline.version - 2}"} if decision in {"pin", "hide"} else {}
    tried, done = await _both(deciding, "c", decision=decision, **about)
    assert tried == done
    assert done["decision"] == decision


@pytest.mark.parametrize("reserve", [1_000, 8_000])
async def test_a_dry_run_of_a_compaction_keeps_room_for_the_answer(
    deciding: Any, store: EventStore, reserve: int
) -> None:
    """As the compaction does: less is kept verbatim, and where the policy's reserves leave no room both refuse."""
    policy = small_policy(max_tokens=4_000, output_reserve=reserve)
    timeline = await Timeline.open(store, "c", policy=policy)
    await timeline.append(*turn(500), *turn(500), *turn(500), *turn(500), *turn(500))
    tried, done = await _both(deciding, "c", decision="compact")
    assert tried == done
    assert done.get("type", "") == ("budget-impossible" if reserve > policy.max_tokens else "")


async def test_a_dry_run_of_a_fork_refuses_an_id_that_is_not_free(deciding: Any, store: EventStore) -> None:
    """Whether a conversation has it or had it before it was erased."""
    for id_ in ("c", "taken", "erased"):
        await (await Timeline.open(store, id_)).append({"type": "user.prompt", "text": "Hello."})
    await store.erase("erased")
    for id_ in ("c", "taken", "erased"):
        tried, done = await _both(deciding, "c", decision="fork", new_id=id_)
        assert tried == done
        assert done["type"] in {"version-conflict", "conversation-erased"}


async def test_a_dry_run_of_a_fork_before_a_redaction_knows_of_it(deciding: Any, store: EventStore) -> None:
    """The fork shows a tombstone from its beginning."""
    timeline = await Timeline.open(store, "c")
    await timeline.append(*turn(200), *turn(200))
    shared = timeline.version
    await timeline.redact(f"@{shared}", "a secret")
    tried, done = await _both(deciding, "c", decision="fork", at=shared)
    assert tried == done


async def test_an_abridged_result_can_be_shown_whole_and_be_hidden() -> None:
    """It is in sight, only shorter."""
    async with open_store("memory://") as store:
        await read_numbered(store)
        answer = await ask(inspector(store, allow=DECISIONS), "/v1/conversations/c/why", {"block": "@3"})
    assert answer.json["decisions"] == ["reveal", "hide", "pin"]


async def test_a_block_names_the_decisions_that_its_state_allows(
    deciding: Any, app: Any, store: EventStore, sent: Sent
) -> None:
    """None where the inspector only reads, and none about a block that a summary covers."""
    timeline = await Timeline.open(store, sent.id)
    live = next(item for item in timeline.window.items if item.block.type == "react.tool.result" and not item.carried)

    async def offered(asked: Any, block: str) -> list[str]:
        path = f"/v1/conversations/{segment(sent.id)}/why"
        found: list[str] = (await ask(asked, path, {"block": block})).json["decisions"]
        return found

    assert await offered(app, f"@{live.version}") == []
    assert await offered(deciding, f"@{live.version}") == ["hide", "pin"]
    await timeline.pin(f"@{live.version}")
    assert await offered(deciding, f"@{live.version}") == ["unpin"]
    assert timeline.window.summary is not None
    assert await offered(deciding, f"@{timeline.window.summary.version}") == []


async def test_a_decision_that_cannot_be_taken_says_why(deciding: Any, sent: Sent) -> None:
    """And writes nothing."""
    answers = [
        await decide(deciding, sent.id, decision="hide"),
        await decide(deciding, sent.id, decision="hide", block="@9999"),
        await decide(deciding, sent.id, decision="erase"),
        await decide(deciding, sent.id, decision="fork", at=10**9),
        await decide(deciding, "nobody", decision="compact"),
        await ask(
            deciding,
            f"/v1/conversations/{segment(sent.id)}/decisions",
            method="POST",
            headers=MEANT,
            body=[b"{nothing"],
        ),
    ]
    assert [answer.status for answer in answers] == [400, 404, 400, 404, 404, 400]
    assert {answer.headers["content-type"] for answer in answers} == {"application/problem+json"}


async def test_a_database_that_is_only_read_takes_none(tmp_path: Path) -> None:
    """The answer names that."""
    file = tmp_path / "agent.db"
    async with open_store(file) as store:
        timeline = await Timeline.open(store, "c")
        await timeline.append({"type": "user.prompt", "text": "Hello."})
    async with open_store(file, readonly=True) as store:
        answer = await decide(inspector(store, allow=DECISIONS), "c", decision="pin", block="@2")
    assert (answer.status, answer.json["type"]) == (409, "store-read-only")
