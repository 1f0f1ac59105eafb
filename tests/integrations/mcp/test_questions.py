"""What a model is told, and that it is never told more than fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client

from tests.integrations.mcp.recorded import LONG, ask, asking, record, said, text_of
from tests.scenes import AT, after, small_policy
from timeline import Timeline, open_store
from timeline.blocks import UserPrompt, instant_text
from timeline.events import BlockRedacted, event_id
from timeline.frozen import compact_json
from timeline.integrations.mcp.server import build_server
from timeline.queries import Found
from timeline.store.memory import MemoryStore
from timeline.tokens import get_counter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

COUNTER = get_counter("o200k_base")


@pytest.fixture
async def db(tmp_path: Path) -> Path:
    """Give a database with one conversation."""
    file = tmp_path / "recorded.db"
    await record(file)
    return file


async def pages(client: Client, tool: str, key: str, **arguments: Any) -> list[list[dict[str, Any]]]:
    """Ask for one page after the other, to the end."""
    got: list[list[dict[str, Any]]] = []
    cursor = None
    while not got or cursor is not None:
        answer = await ask(client, tool, **arguments, **({} if cursor is None else {"cursor": cursor}))
        assert COUNTER.count(compact_json(answer)) <= 4_000
        got.append(answer[key])
        cursor = answer["next_cursor"]
    return got


async def test_conversations_come_with_the_last_active_first(db: Path) -> None:
    """And page by page without a gap or a repetition."""
    async with open_store(db) as store:
        for number in range(7):
            await Timeline.open(store, f"c{number}", policy=small_policy(), now=after(1_000 + number), title="A talk")
    async with asking(db) as client:
        listed = await pages(client, "conversations", "conversations", limit=3)
        assert [len(page) for page in listed] == [3, 3, 2]
        assert [row["id"] for page in listed for row in page] == [*(f"c{n}" for n in reversed(range(7))), "work"]
        some = (await ask(client, "conversations", query="LOGIN"))["conversations"]
        assert [row["id"] for row in some] == ["work"]


async def test_pages_of_conversations_miss_none_that_is_active_again_between_them(db: Path) -> None:
    """It comes behind all others: it may have been on a page before, or not."""
    async with open_store(db) as store, asking(db) as client:
        for number in range(5):
            await Timeline.open(store, f"c{number}", policy=small_policy(), now=after(1_000 + number))
        first = await ask(client, "conversations", limit=2)
        assert [row["id"] for row in first["conversations"]] == ["c4", "c3"]
        for late, id_ in enumerate(("c1", "c4", "new")):
            await (await Timeline.open(store, id_, now=after(2_000 + late))).append(UserPrompt(text="And again"))
        rest, cursor = list[str](), first["next_cursor"]
        while cursor is not None:
            answer = await ask(client, "conversations", limit=2, cursor=cursor)
            rest += [row["id"] for row in answer["conversations"]]
            cursor = answer["next_cursor"]
    assert rest == ["c2", "c0", "work", "c1", "c4", "new"]


async def test_digests_tell_what_was_covered_and_where_to_read_it(db: Path) -> None:
    """With a filter, only the entries that it asks for."""
    async with asking(db) as client:
        whole = (await ask(client, "digests"))["digests"]
        assert len(whole) >= 2
        assert [row["compaction_number"] for row in whole] == list(range(1, len(whole) + 1))
        assert whole[0]["entries"]["files_written"][0]["file"] == "src/part_0.py"
        (one,) = (await ask(client, "digests", path="src/part_0.py"))["digests"]
        assert one["entries"].keys() == {"files_written"}
        text = await text_of(client, "digests", command="test_0.py")
        assert "commands: pytest tests/test_0.py (failed True" in text
        assert "tc:turn_1.run_0.result" in text
        assert "assert 0 == 0" in await text_of(client, "read", conversation="work", path="tc:turn_1.run_0.result")


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"tool": "edit"}, True),
        ({"tool": "Edit"}, False),
        ({"error_text": "assert 0"}, True),
        ({"failed": True}, True),
        ({"compaction_number": "1"}, True),
        ({"compaction_number": "90-99"}, False),
        ({"reverted": True}, False),
        ({"conversation": "work"}, True),
        ({"since": instant_text(after(3_600))}, False),
        ({"until": instant_text(AT)}, False),
    ],
    ids=str,
)
async def test_digests_are_found_by_each_filter(db: Path, filters: dict[str, Any], *, found: bool) -> None:
    """Those of `timeline digests`."""
    async with asking(db) as client:
        assert bool((await ask(client, "digests", **filters))["digests"]) is found


async def test_a_digest_that_would_fill_the_window_is_shortened(tmp_path: Path) -> None:
    """It says how much is left out; the summary's own block has it all."""
    db = tmp_path / "many.db"
    await record(db, rounds=120)
    async with open_store(db) as store:
        await (await Timeline.open(store, "work", policy=small_policy(max_tokens=1_500))).compact()
    async with asking(db, max_tokens=1_000) as client:
        answer = await ask(client, "digests")
        assert COUNTER.count(compact_json(answer)) <= 1_000
        assert await pages(client, "digests", "digests")


async def test_a_digest_of_thousands_of_unsaid_prompts_is_shortened(tmp_path: Path) -> None:
    """The newest of them are named, and the others counted."""
    db = tmp_path / "many.db"
    async with open_store(db) as store:
        timeline = await Timeline.open(store, "work", policy=small_policy(max_tokens=1_500))
        asked = [UserPrompt(text=f"Write page {number}. Mind the colour of its lines.") for number in range(2_000)]
        await timeline.append(*asked)
        await timeline.compact()
    async with asking(db, max_tokens=1_000) as client:
        [digest] = (answer := await ask(client, "digests"))["digests"]
        assert COUNTER.count(compact_json(answer)) <= 1_000
        assert COUNTER.count(await text_of(client, "digests")) <= 1_000
    shown = len(digest["unsaid_addresses"])
    assert shown >= 5
    async with open_store(db, readonly=True) as store:
        [stored] = [found async for found in store.digests()]
    assert shown + digest["left_out"]["unsaid"] == len(stored.unsaid) > 1_000


async def test_pages_of_digests_miss_nothing_where_a_compaction_is_undone_between_them(db: Path) -> None:
    """A cursor is a place in the log: no row behind it moves up."""
    await record(db, "later")
    async with open_store(db) as store, asking(db) as client:
        ids = [digest.conversation async for digest in store.digests()]
        first = await ask(client, "digests", limit=ids.count("work"))
        assert {row["conversation"] for row in first["digests"]} == {"work"}
        await (await Timeline.open(store, "work")).undo_compaction()
        answer = await ask(client, "digests", limit=100, cursor=first["next_cursor"])
    assert [row["conversation"] for row in answer["digests"]] == ["later"] * ids.count("later")


async def test_pages_of_facts_miss_nothing_where_a_compaction_covers_some_between_them(db: Path) -> None:
    """Those of the first page are no longer among the live ones; all others that are come with the next pages."""
    asked: dict[str, Any] = {"kind": ["command", "file_written"], "covered": False}
    async with open_store(db) as store, asking(db) as client:
        timeline = await Timeline.open(store, "work", policy=small_policy(max_tokens=1_500))
        first = await ask(client, "facts", limit=2, **asked)
        await timeline.compact()
        live = [row for page in await pages(client, "facts", "facts", **asked) for row in page]
        answer = await ask(client, "facts", limit=100, cursor=first["next_cursor"], **asked)
    given = [row["address"] for row in first["facts"]]
    assert live
    assert answer["facts"] == [row for row in live if row["address"] not in given]


async def test_pages_of_a_search_hold_every_hit_once(db: Path) -> None:
    """However many fit a page."""
    async with asking(db) as client:
        once = [
            row["path"] for page in await pages(client, "search", "found", query="pytest", limit=100) for row in page
        ]
        listed = await pages(client, "search", "found", query="pytest", limit=5)
        assert [row["path"] for page in listed for row in page] == once
        assert len({*once}) == len(once)
        assert len(listed) == -(-len(once) // 5)


async def test_pages_of_a_search_repeat_no_hit_where_better_ones_are_written_between_them(db: Path) -> None:
    """A cursor is the hit that came last: what is newer than the first page is not among its hits."""
    async with open_store(db) as store, asking(db) as client:
        once = [row["path"] for row in (await ask(client, "search", query="pytest", limit=10))["found"]]
        first = await ask(client, "search", query="pytest", limit=4)
        await (await Timeline.open(store, "work")).append(*(UserPrompt(text="pytest pytest") for _ in range(3)))
        answer = await ask(client, "search", query="pytest", limit=6, cursor=first["next_cursor"])
    assert [row["path"] for row in (*first["found"], *answer["found"])] == once


async def test_pages_of_a_search_miss_and_repeat_no_hit_where_its_words_become_more_frequent_between_them() -> None:
    """A rank counts all texts of the store, so that each append may move the hits among each other."""
    store = MemoryStore()
    timeline = await Timeline.open(store, "work")
    await timeline.append(*(UserPrompt(text="alpha " * (n % 7 + 1) + "beta " * (7 - n % 7)) for n in range(30)))
    await timeline.append(*(UserPrompt(text="gamma") for _ in range(300)))
    given, cursor = list[str](), None
    async with Client(build_server(store)) as client:
        while not given or cursor is not None:
            asked = {"query": "alpha beta", "limit": 7} | ({"cursor": cursor} if cursor else {})
            found = await ask(client, "search", **asked)
            given += [row["address"] for row in found["found"]]
            cursor = found["next_cursor"]
            often = "alpha" if len(given) == 7 else "beta"
            await timeline.append(*(UserPrompt(text=often) for _ in range(100 * len(given) // 7)))
    assert sorted(given) == sorted(f"work@{version}" for version in range(2, 32))


async def test_a_search_goes_on_where_the_last_hit_of_a_page_is_erased() -> None:
    """The others come all the same, once."""
    store = MemoryStore()
    timeline = await Timeline.open(store, "work")
    await timeline.append(*(UserPrompt(text=f"pytest {number}") for number in range(7)))
    async with Client(build_server(store)) as client:
        first = await ask(client, "search", query="pytest", limit=3)
        await timeline.redact(first["found"][-1]["path"], reason="It has a key")
        answer = await ask(client, "search", query="pytest", limit=9, cursor=first["next_cursor"])
    given = [row["address"] for row in (*first["found"], *answer["found"])]
    assert sorted(given) == [f"work@{n}" for n in range(2, 9)]


class EarlierStore(MemoryStore):
    """A store as an earlier release documented one: its hits have no position."""

    async def search(self, *args: Any, **filters: Any) -> AsyncIterator[Found]:
        """Find blocks."""
        async for hit in super().search(*args, **filters):
            yield Found(hit.conversation, hit.version, hit.path, hit.type, hit.at, hit.snippet, hit.rank)


async def test_pages_of_a_search_are_whole_where_the_hits_of_a_store_have_no_position() -> None:
    """The contract of stores asked for none before."""
    store = EarlierStore()
    timeline = await Timeline.open(store, "work")
    await timeline.append(*(UserPrompt(text=f"pytest {number}") for number in range(7)))
    async with Client(build_server(store)) as client:
        listed = await pages(client, "search", "found", query="pytest", limit=3)
    assert sorted(row["address"] for page in listed for row in page) == [f"work@{n}" for n in range(2, 9)]


async def test_a_server_that_did_not_give_the_page_goes_on_behind_no_hit_that_is_erased(db: Path) -> None:
    """Where it stood among the others nobody knows: the error says to begin again."""
    async with asking(db) as client:
        first = await ask(client, "search", query="pytest", limit=4)
    async with open_store(db) as store, asking(db) as client:
        rest = await ask(client, "search", query="pytest", limit=4, cursor=first["next_cursor"])
        assert not {row["path"] for row in rest["found"]} & {row["path"] for row in first["found"]}
        await (await Timeline.open(store, "work")).redact(first["found"][-1]["path"], reason="It has a key")
        answer = await client.call_tool("search", {"query": "pytest", "cursor": first["next_cursor"]})
    assert "the block that it names is not found any more; ask again without one" in said(answer)


async def test_a_summary_that_was_undone_is_found_with_a_word_about_it(db: Path) -> None:
    """As a compaction is among the digests."""
    async with open_store(db) as store, asking(db) as client:
        await (await Timeline.open(store, "work")).undo_compaction()
        [(last, by)] = [(one.version, one.reverted_by) async for one in store.digests(reverted=True)]
        asked: dict[str, Any] = {"query": "pytest", "types": ["conv.range.summary"]}
        found = (await ask(client, "search", **asked))["found"]
        assert {row["address"]: row["reverted_by"] for row in found if row["reverted_by"]} == {f"work@{last}": by}
        assert f"undone at version {by}" in await text_of(client, "search", **asked)


async def test_a_search_is_narrowed_by_type_and_time(db: Path) -> None:
    """As on the command line."""
    async with asking(db) as client:
        found = (await ask(client, "search", query="login", types=["user.prompt"], until=instant_text(AT)))["found"]
        assert [row["path"] for row in found] == ["ar:turn_1.user.prompt"]
        assert "«login»" in found[0]["snippet"]
        assert "Nothing holds all" in await text_of(client, "search", query="login", since=instant_text(after(3_600)))


async def test_long_content_is_read_piece_by_piece(db: Path) -> None:
    """Each piece fits, and together they are the whole."""
    async with open_store(db) as store:
        [block] = await (await Timeline.open(store, "work")).append(UserPrompt(text=LONG))
    got, offset = "", 0
    async with asking(db) as client:
        while True:
            answer = await ask(client, "read", conversation="work", path=block.path, offset=offset)
            assert COUNTER.count(compact_json(answer)) <= 4_400  # the JSON writes a line's end as two characters
            got += "\n".join(answer["content"].split("\n")[1:]).rpartition("\n[characters ")[0]
            if answer["next_offset"] is None:
                break
            offset = answer["next_offset"]
    assert got == LONG
    assert answer["characters"] == len(LONG)


async def test_what_cannot_be_read_is_answered_in_plain_words(db: Path) -> None:
    """An unknown path with the nearest ones, an erased block with the fact and the reason."""
    async with open_store(db) as store:
        timeline = await Timeline.open(store, "work")
        [secret] = await timeline.append(UserPrompt(text="my password is hunter2"))
        erased = BlockRedacted(version=timeline.version, reason="a password")
        await timeline.decide([erased], at=AT, ids=[event_id(AT)])
    async with asking(db) as client:
        gone = await ask(client, "read", conversation="work", path=secret.path)
        assert (gone["outcome"], "a password" in gone["content"], "hunter2" in str(gone)) == ("redacted", True, False)
        unknown = await ask(client, "read", conversation="work", path="tc:turn_1.run_99.result")
        assert unknown["outcome"] == "unknown"
        assert "Nearest paths: tc:turn_1.run_9.result" in unknown["content"]
        assert (await ask(client, "search", query="hunter2"))["found"] == []


async def test_what_a_list_prints_is_read_by_its_address_alone(db: Path) -> None:
    """`search` and `digests` give addresses with the conversation; with the conversation beside it, a bare one does."""
    async with asking(db) as client:
        rows = [
            *(await ask(client, "search", query="login", types=["user.prompt"]))["found"],
            *(await ask(client, "digests", limit=1))["digests"],
        ]
        for row in rows:
            path = row["path"]
            read = await ask(client, "read", path=row["address"])
            assert (read["conversation"], read["path"], read["outcome"]) == ("work", path, "found")
            assert read["address"] == row["address"] == f"work@{row['address'].rpartition('@')[2]}"
            bare = row["address"].removeprefix("work")
            assert await ask(client, "read", conversation="work", path=bare) == read
        unknown = await ask(client, "read", conversation="work", path="@1")
        assert (unknown["outcome"], unknown["address"]) == ("unknown", "")
        assert "version 1 is not a block: it is conversation.opened. Nearest addresses: @" in unknown["content"]
        nameless = await client.call_tool("read", {"path": "@2"})
        assert nameless.is_error
        assert "an address with it: cards@152" in said(nameless)


async def test_facts_come_page_by_page_and_each_meets_every_condition(db: Path) -> None:
    """The failed runs of one test, and no other failure nor another run; each is read at its address."""
    async with asking(db) as client:
        listed = await pages(client, "facts", "facts", kind=["command"], failed=True, limit=7)
        assert [len(page) for page in listed] == [7, 7, 7, 3]
        rows = [row for page in listed for row in page]
        assert [row["subject"] for row in rows] == [f"pytest tests/test_{number}.py" for number in range(24)]
        (one,) = (await ask(client, "facts", kind=["command"], subject="test_9", failed=True))["facts"]
        assert (one["tool"], one["failed"], one["covered"]) == ("bash", True, True)
        read = await ask(client, "read", path=one["address"])
        assert "assert 9 == 0" in read["content"]
        assert one["address"] in await text_of(client, "facts", subject="test_9")


async def test_the_record_of_a_conversation_sums_it_up_in_pieces(db: Path) -> None:
    """All of its lines come, each once, and no answer is larger than the budget."""
    async with asking(db, max_tokens=1_000) as client:
        lines: list[str] = []
        offset: int | None = 0
        while offset is not None:
            answer = await ask(client, "record", conversation="work", offset=offset)
            assert COUNTER.count(compact_json(answer)) <= 1_000
            lines += answer["lines"]
            offset = answer["next_offset"]
    assert lines[0] == "Failed, and not done since (24):"
    assert [line for line in lines if line.startswith("Files written")] == ["Files written (24):"]
    assert len(lines) == len(set(lines)) >= 50
