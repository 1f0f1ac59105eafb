"""What the API answers is what the library says, and what the provider got."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.inspector.asking import ask, segment
from tests.scenes import call, prompt, result, small_policy
from timeline import Timeline, policies
from timeline.audit.differences import Side, diff_sides
from timeline.blocks import UserPrompt
from timeline.events import appended_block
from timeline.frozen import compact_json
from timeline.log.history import fold_past
from timeline.summarizers import CallableSummarizer

if TYPE_CHECKING:
    from tests.inspector.sent import Sent
    from timeline.ports import EventStore


def one(sent: Sent, rest: str = "") -> str:
    """Return the address of something of the conversation."""
    return f"/v1/conversations/{segment(sent.id)}{rest}"


async def test_the_body_of_each_call_is_the_one_that_its_provider_got(app: Any, sent: Sent) -> None:
    """Piece by piece, and the verdict says that its hash is the recorded one."""
    for number, body in enumerate(sent.bodies, start=1):
        text, offset = "", 0
        while True:
            answer = (await ask(app, one(sent, f"/calls/{number}/body"), {"offset": offset, "limit": 700})).json
            text += answer["text"]
            if (offset := answer["next_offset"]) is None:
                break
        assert json.loads(text) == body
        assert text == compact_json(body)
        assert (answer["verdict"], answer["characters"]) == ("same", len(text))
        call = (await ask(app, one(sent, f"/calls/{number}"))).json
        assert (call["verdict"], call["body_bytes"]) == ("same", len(text.encode()))


async def test_the_context_of_a_call_shows_the_request_in_its_order(app: Any, sent: Sent) -> None:
    """And each block with its state and rule, as `render --explain` has them."""
    number = len(sent.bodies)
    answer = (await ask(app, one(sent, f"/calls/{number}/context"))).json
    body = sent.bodies[-1]
    assert [piece["place"] for piece in answer["pieces"] if piece["role"]] == [
        f"messages[{place}]" for place in range(len(body["messages"]))
    ]
    assert [json.loads(piece["text"]) for piece in answer["pieces"] if piece["role"]] == body["messages"]
    assert {block["state"] for block in answer["explanation"]["blocks"]} >= {"visible"}
    other = (await ask(app, one(sent, f"/calls/{number}/context"), {"wire": "openai-chat"})).json
    assert other["wire"] == "openai_chat"


async def test_the_rows_of_a_version_have_the_states_of_that_version(app: Any, store: EventStore, sent: Sent) -> None:
    """Each row has what the whole log has; what is behind the version is no row."""
    timeline = await Timeline.open(store, sent.id)
    for version in (timeline.version, timeline.version - 9, 30, 12, 1):
        rows: list[dict[str, Any]] = []
        after = 0
        while after is not None:
            page = (await ask(app, one(sent, "/blocks"), {"at": version, "after": after, "limit": 10})).json
            rows += page["rows"]
            after = page["next_after"]
        assert [row["version"] for row in rows] == list(range(1, version + 1))
        window = (await timeline.at(version)).window
        live = {item.version: item.state for item in window.items}
        assert {row["version"]: row["state"] for row in rows if row["version"] in live} == live
        gone = [row for row in rows if row["path"] and row["version"] not in live]
        assert {row["state"] for row in gone} <= {"covered", "omitted"}


async def test_a_row_has_the_beginning_of_a_text_and_says_what_it_leaves_out(app: Any, sent: Sent) -> None:
    """The rest comes in pieces of the size that is asked for."""
    row = (await ask(app, one(sent, "/blocks"), {"after": 1, "limit": 1})).json["rows"][0]
    assert (len(row["text"]), row["left_out"] > 0) == (200, True)
    text, offset = "", 0
    while offset is not None:
        piece = (await ask(app, one(sent, f"/blocks/{segment(row['address'])}"), {"offset": offset, "limit": 50})).json
        assert len(piece["text"]) <= 50
        text, offset = text + piece["text"], piece["next_offset"]
    assert len(text) == len(row["text"]) + row["left_out"]
    assert text.startswith(row["text"])


async def test_a_block_under_its_checksum_may_be_kept_for_good(app: Any, sent: Sent) -> None:
    """Under another one, or none, it is asked for again, and not sent again while it is the same."""
    row = (await ask(app, one(sent, "/blocks"), {"after": 1, "limit": 1})).json["rows"][0]
    address = one(sent, f"/blocks/{segment(row['path'])}")
    kept = await ask(app, address, {"checksum": row["checksum"]})
    assert "immutable" in kept.headers["cache-control"]
    again = await ask(app, address, {"checksum": "0" * 64})
    assert again.headers["cache-control"] == "private, no-cache"
    same = await ask(app, address, headers={"if-none-match": (await ask(app, address)).headers["etag"]})
    assert (same.status, same.body) == (304, b"")


async def test_a_conversation_answers_at_a_glance(app: Any, store: EventStore, sent: Sent) -> None:
    """How full it is, what was compacted, what the newest call cost, and what is unusual."""
    answer = (await ask(app, one(sent))).json
    row, timeline = answer["conversation"], await Timeline.open(store, sent.id)
    done = [digest async for digest in store.digests(conversation=sent.id, reverted=None)]
    assert (row["compactions"], row["calls"], row["turns"]) == (len(done), len(sent.bodies), len(sent.bodies))
    assert row["compactions"] > 1
    assert row["limit"] == timeline.policy.max_tokens
    assert 0 < row["fill"] < 1
    assert answer["policy"]["name"] == timeline.policy.name
    assert answer["newest_call"]["number"] == len(sent.bodies)
    assert answer["newest_call_cost"] > 0
    assert row["cost"] > answer["newest_call_cost"]
    listed = (await ask(app, "/v1/conversations")).json
    assert (listed["conversations"], listed["total"], listed["next_cursor"]) == ([row], 1, None)


async def test_a_summary_that_another_wrote_is_told_beside_the_health(app: Any, store: EventStore) -> None:
    """With why the first choice did not write it, for as long as it is the newest."""

    async def broken(_: str) -> str:
        raise RuntimeError("the model is away")

    policy = policies.cut_point(max_tokens=2_000)
    timeline = await Timeline.open(store, "fallen", policy=policy, summarizer=CallableSummarizer(broken))
    await timeline.append(*(UserPrompt(text=f"Step {number}. " + "Go on. " * 60) for number in range(20)))
    await timeline.compact()
    answer = (await ask(app, "/v1/conversations/fallen")).json
    [told] = answer["remarks"]
    assert (told["code"], told["level"], told["version"]) == (
        "fallback",
        "note",
        answer["newest_compaction"]["version"],
    )
    assert "written by extractive" in told["text"]
    assert "the model is away" in told["text"]
    await timeline.undo_compaction()
    assert "fallback" not in {one["code"] for one in (await ask(app, "/v1/conversations/fallen")).json["remarks"]}


async def test_figures_are_kept_up_with_what_is_appended(app: Any, store: EventStore, sent: Sent) -> None:
    """A second look counts what came in between, once."""
    before = (await ask(app, one(sent))).json["conversation"]
    timeline = await Timeline.open(store, sent.id)
    await timeline.append({"type": "user.prompt", "text": "One more question, about another deck."})
    after = (await ask(app, one(sent))).json["conversation"]
    [counted] = [event.payload async for event in store.read(sent.id, after=before["version"])]
    assert after["tokens"] - before["tokens"] == counted.tokens  # type: ignore[attr-defined]
    assert after["turns"] == before["turns"] + 1
    assert after["version"] == before["version"] + 1


async def test_why_is_the_librarys_answer(app: Any, store: EventStore, sent: Sent) -> None:
    """For a covered block, now and in the context of a call."""
    timeline = await Timeline.open(store, sent.id)
    hows: tuple[dict[str, int], ...] = ({}, {"call": 3}, {"at": 9})
    for how in hows:
        answer = (await ask(app, one(sent, "/why"), {"block": "@2", **how})).json["why"]
        assert answer == json.loads(json.dumps((await timeline.why("@2", **how)).dump()))


async def test_a_compaction_has_its_summary_in_full_and_its_place_in_the_chain(
    app: Any, store: EventStore, sent: Sent
) -> None:
    """An undone one says by what, and one whose summary was integrated says where."""
    rows = (await ask(app, one(sent, "/compactions"))).json["compactions"]
    undone = [row for row in rows if row["reverted_by"] is not None]
    assert len(undone) == 1
    assert any(row["superseded_by"] is not None for row in rows)
    timeline = await Timeline.open(store, sent.id)
    for row in rows:
        card = (await ask(app, one(sent, f"/compactions/{row['version']}"))).json
        assert card["text"] == (await timeline.read(row["address"])).text
        assert card["compaction"] == row
        assert card["chain"][-1] == row["version"]
    assert len(card["chain"]) > 1
    assert (await ask(app, one(sent, "/compactions/2"))).json["type"] == "block-not-found"


async def test_the_chart_has_a_point_for_each_call_and_a_mark_for_each_decision(
    app: Any, store: EventStore, sent: Sent
) -> None:
    """With the tokens by kind as they were at that call, also behind an undo."""
    chart = (await ask(app, one(sent, "/chart"))).json
    assert [point["number"] for point in chart["points"]] == list(range(1, len(sent.bodies) + 1))
    timeline = await Timeline.open(store, sent.id)
    for point in chart["points"]:
        state = (await ask(app, one(sent, "/state"), {"at": point["context"] - 1})).json
        assert point["by_role"] == state["by_role"], point["number"]
        assert point["limit"] == timeline.policy.max_tokens
        assert point["target"] < point["trigger"] < point["limit"]
    blocks = [(event.version, appended_block(event.payload)) async for event in store.read(sent.id)]
    assert chart["turn_versions"] == [version for version, block in blocks if isinstance(block, UserPrompt)]
    types = {mark["type"] for mark in chart["marks"]}
    assert {"compaction.completed", "compaction.reverted", "blocks.hidden"} <= types
    page = (await ask(app, one(sent, "/chart"), {"after": 2, "limit": 3})).json
    assert [point["number"] for point in page["points"]] == [3, 4, 5]
    assert page["next_after"] == 5


async def test_the_state_of_each_version_is_that_of_its_window(app: Any, store: EventStore, sent: Sent) -> None:
    """Its tokens, its beginning, its newest summary, and the calls that wait for a result."""
    timeline = await Timeline.open(store, sent.id)
    for version in range(1, timeline.version + 1, 3):
        window = (await timeline.at(version)).window
        state = (await ask(app, one(sent, "/state"), {"at": version})).json
        plain = sum(item.shown_tokens for item in (await fold_past(store, sent.id, version)).window.items)
        summary = None if window.summary is None else f"@{window.summary.version}"
        assert (state["tokens"], state["window_start"]) == (plain, window.window_start), version
        assert (state["summary_address"], state["calls"]) == (summary, window.calls), version
        assert state["open_calls"] == [f"@{item.version}" for item in window.open_calls()], version
        assert sum(counted["blocks"] for name, counted in state["states"].items() if name != "covered") == len(
            window.items
        )


async def test_a_difference_is_that_of_the_library(app: Any, store: EventStore, sent: Sent) -> None:
    """Of two calls, and of two summaries."""
    timeline = await Timeline.open(store, sent.id)
    answer = (await ask(app, one(sent, "/diff"), {"a": "call:2", "b": "call:9"})).json
    assert answer["difference"] == json.loads(json.dumps((await timeline.diff("call:2", "call:9")).dump()))
    rows = (await ask(app, one(sent, "/compactions"))).json["compactions"]
    names = {"a": rows[0]["address"], "b": rows[1]["address"]}
    answer = (await ask(app, one(sent, "/diff"), names)).json
    assert (answer["kind"], answer["difference"]["before"]["address"]) == ("summaries", rows[0]["address"])


async def test_a_difference_may_be_that_of_two_conversations(app: Any, store: EventStore, sent: Sent) -> None:
    """A call of one against the newest context of its fork."""
    fork = await (await Timeline.open(store, sent.id)).fork(conversation="other way")
    await fork.append(UserPrompt(text="Try it without a database."))
    await fork.render()
    asked = {"a": "call:9", "b": "last", "other": "other way"}
    answer = (await ask(app, one(sent, "/diff"), asked)).json
    found, _ = await diff_sides(store, Side(sent.id, "call:9"), Side("other way", "last"))
    assert answer["difference"] == json.loads(json.dumps(found.dump()))
    assert answer["difference"]["after"]["conversation"] == "other way"


async def test_a_log_is_run_again_under_another_policy_and_nothing_is_written(
    app: Any, store: EventStore, sent: Sent
) -> None:
    """Its figures come beside those of the log as it is."""
    head = await store.head()
    answer = (await ask(app, one(sent, "/what-if"), {"policy": "keep_last", "max_tokens": 3000})).json
    assert (answer["policy"], answer["max_tokens"]) == ("keep_last", 3000)
    assert answer["simulation"]["renders"] > 0
    assert answer["recorded"]["renders"] == len(sent.bodies)
    assert await store.head() == head
    assert [info.id async for info in store.conversations()] == [sent.id]
    refused = await ask(app, one(sent, "/what-if"), {"policy": "/etc/passwd"})
    assert (refused.status, refused.json["type"]) == (400, "invalid-policy")


async def test_policies_are_compared_on_a_log_while_it_is_asked_how_far_that_is(
    app: Any, store: EventStore, sent: Sent
) -> None:
    """Nothing is written; the page of the result is the lab's, and may be shown by this origin alone."""
    head = await store.head()
    asked = {"policies": "none,keep_last", "limits": "3000,9000", "wait": 0}
    first = (await ask(app, one(sent, "/lab"), asked)).json
    assert (first["ended"], first["rows"]) == (False, [])
    assert (await ask(app, one(sent, "/lab-page"), asked)).json["type"] == "not-yet"
    answer = first
    while not answer["ended"]:
        assert answer["done"] <= (answer["of"] or 0)
        answer = (await ask(app, one(sent, "/lab"), {**asked, "wait": 1})).json
    assert answer["done"] == answer["of"]
    named = [(row["policy"], row["max_tokens"]) for row in answer["rows"]]
    assert named == [("none", 3000), ("keep_last", 3000), ("none", 9000), ("keep_last", 9000)]
    assert [row["relative"] for row in answer["rows"] if row["policy"] == "none"] == [1, 1]
    page = await ask(app, one(sent, "/lab-page"), asked)
    assert "What would another policy have cost?" in page.body.decode()
    assert page.headers["content-security-policy"].startswith("frame-ancestors 'self'")
    assert await store.head() == head
    for wrong in ({"policies": "nobody"}, {"limits": "12"}, {"policies": "../x"}):
        assert (await ask(app, one(sent, "/lab"), {**asked, **wrong})).status == 400


async def test_a_search_finds_blocks_and_the_calls_that_said_them(app: Any, sent: Sent) -> None:
    """And digests are found by what they covered."""
    asked = {"query": "answer 4", "types": "assistant.completion", "conversation": sent.id}
    found = (await ask(app, "/v1/search", asked)).json["found"]
    assert [row["call"] for row in found] == [4]
    assert (await ask(app, "/v1/search", {"query": "decks", "limit": 3})).json["more"]
    digests = (await ask(app, "/v1/digests", {"conversation": sent.id})).json["digests"]
    rows = (await ask(app, one(sent, "/compactions"))).json["compactions"]
    assert [row["version"] for row in digests] == [row["version"] for row in rows if row["reverted_by"] is None]


async def test_a_fact_is_found_with_the_compaction_that_covers_it(app: Any, store: EventStore, sent: Sent) -> None:
    """As the store finds it, newest first; the compaction is the one that the list of compactions has."""
    asked = {"conversation": sent.id, "limit": 200}
    found = (await ask(app, "/v1/facts", asked)).json["facts"]
    stored = [fact async for fact in store.facts(conversation=sent.id)]
    assert [(row["kind"], row["subject"], row["version"]) for row in reversed(found)] == [
        (fact.kind, fact.subject, fact.version) for fact in stored
    ]
    assert [row["covered"] for row in found] == [row["covered_by"] is not None for row in found]
    assert {True, False} == {row["covered"] for row in found}
    numbers = {
        row["version"]: row["compaction_number"]
        for row in (await ask(app, one(sent, "/compactions"))).json["compactions"]
    }
    assert all(numbers[row["covered_by"]] == row["compaction_number"] for row in found if row["covered"])
    newest = (await ask(app, "/v1/facts", {**asked, "limit": 2})).json
    assert (newest["facts"], newest["more"]) == (found[:2], True)


async def test_what_a_fork_shares_is_where_the_fork_has_it(app: Any, store: EventStore) -> None:
    """A compaction of its parent behind the fork covers nothing of what the model sees in the fork."""
    timeline = await Timeline.open(store, "c", policy=small_policy(max_tokens=4_000))
    for name in "abcdefgh":
        await timeline.append(prompt(), call(name, "bash", arguments={"command": "make"}), result(name, 300))
    await timeline.fork(conversation="branch")
    await timeline.compact()
    for asked, covered in (("branch", {False}), ("c", {True, False})):
        facts = (await ask(app, "/v1/facts", {"conversation": asked, "kind": "command"})).json["facts"]
        assert {fact["covered"] for fact in facts} == covered
        assert [fact["state"] == "covered" for fact in facts] == [fact["covered"] for fact in facts]
        assert [fact["covered_by"] is not None for fact in facts] == [fact["covered"] for fact in facts]


async def test_a_call_and_its_result_name_each_other_and_one_that_is_alone_says_so(app: Any, store: EventStore) -> None:
    """Also where the other one is on another page of rows."""
    timeline = await Timeline.open(store, "c")
    await timeline.append(prompt(), call("a"), result("a"), call("b"))
    path = "/v1/conversations/c/blocks"
    first, other = [(await ask(app, f"{path}/%40{version}")).json["partner"] for version in (3, 4)]
    assert (first, other) == ("@4", "@3")
    assert (await ask(app, f"{path}/%405")).json["partner"] is None
    rows = [(await ask(app, path, {"after": after, "limit": 1})).json["rows"][0] for after in (2, 3, 4)]
    assert [row["orphan"] for row in rows] == [False, False, True]
    await timeline.append(result("b"))
    assert not (await ask(app, path, {"after": 4, "limit": 1})).json["rows"][0]["orphan"]


async def test_a_hide_says_which_prompts_it_leaves_something_of_unsaid(app: Any, store: EventStore) -> None:
    """In the words of `show`, with the versions as a compaction has them."""
    timeline = await Timeline.open(store, "asked")
    asked = "Never push to main. " + "Look at the logs of the service. " * 40
    [stored] = await timeline.append(UserPrompt(text=asked))
    await timeline.hide(stored.path, text="a prompt")
    row = (await ask(app, "/v1/conversations/asked/blocks")).json["rows"][-1]
    assert row["type"] == "blocks.hidden"
    assert row["unsaid"] == [timeline.version - 1]
    assert row["text"] == f"(unsaid: @{timeline.version - 1}) hidden (manual): {timeline.version - 1}"


async def test_a_family_has_forks_and_parents(app: Any, store: EventStore, sent: Sent) -> None:
    """From whichever of them it is asked."""
    timeline = await Timeline.open(store, sent.id)
    fork = await timeline.fork(at=20, conversation="fork")
    await fork.fork(conversation="fork of a fork")
    for id_ in (sent.id, "fork of a fork"):
        rows = (await ask(app, f"/v1/conversations/{segment(id_)}/family")).json["family"]
        assert [(row["id"], row["parent"] and row["parent"]["conversation"]) for row in rows] == [
            (sent.id, None),
            ("fork", sent.id),
            ("fork of a fork", "fork"),
        ]


@pytest.mark.parametrize("beginning", ["c", "c" * 5_000])
async def test_pages_of_conversations_follow_one_another(app: Any, store: EventStore, beginning: str) -> None:
    """The one that changed last comes first, none twice; words narrow the list. A store takes ids of any length."""
    for number in range(7):
        timeline = await Timeline.open(store, f"{beginning}{number}", title=f"Deck {number}")
        await timeline.append({"type": "user.prompt", "text": "Hello."})
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = (await ask(app, "/v1/conversations", {"limit": 3, "cursor": cursor})).json
        seen += [row["id"] for row in page["conversations"]]
        cursor = page["next_cursor"]
    assert seen == [f"{beginning}{number}" for number in reversed(range(7))]
    found = (await ask(app, "/v1/conversations", {"query": "deck 3"})).json
    assert [row["id"] for row in found["conversations"]] == [f"{beginning}3"]
