"""The contract of `search`: how a query is read, which texts are searched, and the order of the blocks found."""

# ruff: noqa: S101 - asserts are what tests are made of
from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from timeline.blocks import AssistantCompletion, Block, ToolCall, ToolResult
from timeline.errors import ConversationNotFound, InvalidFilter
from timeline.events import BlockAppended, BlockRedacted, CompactionReverted, UnknownPayload
from timeline.ports import Expected
from timeline.queries import LONGEST_QUERY

from .base import ContractBase
from .samples import block_event, compaction, event, fork

if TYPE_CHECKING:
    from timeline.events import NewEvent
    from timeline.ports import EventStore
    from timeline.queries import Found


def _appended(block: Block) -> NewEvent:
    return event(BlockAppended(block=block, tokens=1, counter="chars"))


async def _found(store: EventStore, text: str, **filters: Any) -> list[Found]:
    return [found async for found in store.search(text, **filters)]


async def _paths(store: EventStore, text: str, **filters: Any) -> set[str]:
    return {found.path for found in await _found(store, text, **filters)}


async def _texts(store: EventStore, **texts: str) -> None:
    await store.append("a", [block_event(path, text) for path, text in texts.items()])


CODE = "def test_login(self): return open('src/app/main.py') if getUserName(HTTPServer) else GitHub.SQLite3"


class SearchContract(ContractBase):
    """`Queries.search`."""

    async def test_a_block_is_found_with_its_place_and_a_line_of_its_text(self, store: EventStore) -> None:
        """Conversation, version, path, type and time of the block, and its snippet with the hit between two marks."""
        written = block_event("p", "please run the tests")
        await store.append("a", [block_event("q", "something else"), written])
        (found,) = await _found(store, "RUN")
        assert (found.conversation, found.version, found.path, found.type) == ("a", 2, "p", "user.prompt")
        assert found.at == written.at
        assert found.snippet == "please «run» the tests"
        assert found.rank > 0
        assert [stored.position async for stored in store.read("a", after=1)] == [found.position]

    async def test_a_summary_that_was_undone_is_found_with_the_version_that_undid_it(self, store: EventStore) -> None:
        """One in force has none, nor has any block; the summaries of two conversations are two."""
        made = [*(block_event(text="they greeted") for _ in range(2)), compaction(1, 2)]
        await store.append("a", made)
        await store.append("b", [*(block_event(text="they waved") for _ in range(2)), compaction(1, 2)])
        await store.append("a", [event(CompactionReverted(versions=(3,)))])
        found = await _found(store, "greeted")
        undone = {(hit.conversation, hit.version): hit.reverted_by for hit in found}
        assert undone == {("a", 1): None, ("a", 2): None, ("a", 3): 4, ("b", 3): None}

    async def test_all_words_must_be_there_in_any_order(self, store: EventStore) -> None:
        """Words match anywhere in the block, in upper or lower case."""
        await _texts(store, p="the Parser fails on empty input", q="the parser works", r="empty input is fine")
        assert await _paths(store, "parser") == {"p", "q"}
        assert await _paths(store, "input parser") == {"p"}
        assert await _paths(store, "input parser PARSER fails") == {"p"}
        assert await _paths(store, "parser missing") == set()
        assert await _paths(store, "pars") == set()

    async def test_quoted_words_follow_one_another(self, store: EventStore) -> None:
        """Signs between two words of the text are ignored, other words are not; a missing closing quote is forgiven."""
        await _texts(store, p="no such file: main.py", q="such a file, no", r="file such no")
        assert await _paths(store, '"no such file"') == {"p"}
        assert await _paths(store, '"such no"') == {"r"}
        assert await _paths(store, 'main "no such') == {"p"}
        assert await _paths(store, '"no" "file"') == {"p", "q", "r"}
        assert (await _found(store, '"no such"'))[0].snippet == "«no such» file: main.py"

    async def test_a_star_finds_every_word_that_begins_so(self, store: EventStore) -> None:
        """Only at the end of a word; elsewhere, and between quotes, it is a sign like any other."""
        await _texts(store, p="testing", q="tests/test_login.py", r="attest", s="a * b")
        assert await _paths(store, "test*") == {"p", "q"}
        assert await _paths(store, "test_log*") == {"q"}
        assert await _paths(store, "tests/*") == {"q"}
        assert await _paths(store, "*test") == {"q"}
        assert await _paths(store, '"testi*"') == set()
        assert await _paths(store, "a * b") == {"s"}

    @pytest.mark.parametrize(
        "asked",
        [
            "test_login",
            "login",
            "TEST_LOGIN",
            "src/app/main.py",
            "app/main",
            "main.py",
            "py",
            "getUserName",
            "getusername",
            "user",
            "UserName",
            "getUs*",
            "UserNa*",
            "httpserver",
            "HTTPServer",
            "server",
            "github",
            "GitHub",
            "sqlite3",
            "sqlite*",
            '"open src app"',
        ],
    )
    async def test_names_and_paths_in_code_are_found_whole_and_in_part(self, store: EventStore, asked: str) -> None:
        """Signs separate words; a word with humps is found whole, by a hump, or by some of them in a row."""
        await _texts(store, code=CODE, other="nothing of interest")
        assert await _paths(store, asked) == {"code"}

    @pytest.mark.parametrize("asked", ["username", "namegetuser", '"user name"', "NameServer", "src.main.py", "tests"])
    async def test_what_is_not_there_as_it_was_typed_is_not_found(self, store: EventStore, asked: str) -> None:
        """Humps make a word only in the order typed; between quotes a word is whole; parts keep their order."""
        await _texts(store, code=CODE)
        assert await _paths(store, asked) == set()

    @pytest.mark.parametrize(
        ("text", "asked"),
        [
            ("Die Straße ist gesperrt", "STRASSE"),
            ("Ἑλλάς και ΟΔΟΣ", "οδος"),
            ("数据库迁移失败了", "迁移"),
            ("エラーが出ました", "エラー"),
            ("ошибка сборки", "ОШИБКА"),
            ("naïve café", "café"),
            ("step 3 of 7", "3"),
            ("done 😀 well", "done 😀 well"),
            ("İstanbul", "İSTANBUL"),
            ("मेरी किताब", "किताब"),
            ("தமிழ் மொழி", "மொழி*"),
            ("שָׁלוֹם עולם", "שָׁלוֹם"),
            ("ประเทศไทยสวยมาก", "ไทย"),
            ("ភាសាខ្មែរ", "ខ្មែរ"),
            ("오늘 회의에서 정했다", "회의"),
            ("pytest를 실행하세요", "pytest"),
            ("A\u0308rger in U\u0308ber.md", "Über.md"),
            ("Über.md", "U\u0308ber*"),
            ("\u1112\u1161\u11ab\u1100\u1173\u11af.txt", "한글"),
            ("\u039c\u03b1\u0390\u03bf\u03c5", "\u039c\u0391\u03aa\u0301\u039f\u03a5"),
            ("\u3007\u3007API", "api"),
            ("ﾃﾞｰﾀﾍﾞｰｽｴﾗｰ", "ｴﾗｰ"),
            ("ផ្សេងៗ10", "10"),
            ("ㅋㅋㅋpytest", "pytest ㅋㅋ"),
        ],
    )
    async def test_every_script_is_searched(self, store: EventStore, text: str, asked: str) -> None:
        """Case is ignored, a mark may stand apart, and what is written without spaces is found by any part."""
        await _texts(store, p=text, q="something else")
        assert await _paths(store, asked) == {"p"}

    async def test_a_word_with_another_mark_is_another_word(self, store: EventStore) -> None:
        """The vowels of Hindi are marks: without them all short words would be the same."""
        await _texts(store, p="राम का घर", q="राम की किताब", r="किरण")
        assert await _paths(store, "की") == {"q"}
        assert await _paths(store, "कि*") == {"q", "r"}

    @pytest.mark.parametrize(
        "asked",
        [
            "cats OR dogs",
            "cats NOT dogs",
            "NEAR(cats dogs, 2)",
            "cats AND (dogs",
            "words:cats",
            "-cats + ^dogs",
            "cats\x00dogs",
            "{cats} ; DROP",
            "cats' OR '1'='1",
            '"cats" dogs" OR',
            "cats\ud800dogs",
        ],
    )
    async def test_no_sign_is_an_operator(self, store: EventStore, asked: str) -> None:
        """Any text asks for its words, and only for them."""
        await _texts(store, p="near cats, words: cats, dogs; and, or, not 2 drop 1 1", q="cats", r="dogs")
        assert await _paths(store, asked) == {"p"}
        assert await _paths(store, f"{asked} tags : user") == set()

    @pytest.mark.parametrize("asked", ["", "   ", "***", '""', "-- | \x00", "\ud800", "😀"])
    async def test_a_text_without_a_word_is_refused(self, store: EventStore, asked: str) -> None:
        """The error says that there is no word to search for."""
        await _texts(store, p="something")
        with pytest.raises(InvalidFilter) as refused:
            await _found(store, asked)
        assert refused.value.field == "query"

    async def test_a_call_is_found_by_its_name_and_its_arguments(self, store: EventStore) -> None:
        """Values match, nested ones too; keys do not, and a result is found by its text."""
        arguments: dict[str, Any] = {
            "file_path": "src/app.py",
            "edits": [{"old": "colour", "times": 3, "all": True}],
            "none": None,
        }
        call = ToolCall(path="c", turn_id="t", call_id="1", name="MultiEdit", arguments=arguments)
        raw = ToolCall(path="raw", turn_id="t", call_id="2", name="bash", arguments='{"command": "make')
        result = ToolResult(path="r", turn_id="t", call_id="1", text="edited src/app.py")
        await store.append("a", [_appended(call), _appended(raw), _appended(result)])
        assert await _paths(store, "app.py") == {"c", "r"}
        assert await _paths(store, "multiedit colour 3") == {"c"}
        assert await _paths(store, "command make") == {"raw"}
        for key in ("file_path", "edits", "true", "none"):
            assert await _paths(store, key) == set()

    async def test_summaries_and_blocks_of_later_versions_are_searched_too(self, store: EventStore) -> None:
        """Every event that appends a block with a text is searched; other events are not."""
        later = UnknownPayload(
            type="block.later", data={"block": {"type": "x.y", "path": "l", "text": "greeted"}, "tokens": 1}
        )
        await store.append("a", [block_event("p", "hello"), compaction(1, 1), event(later)])
        assert {(found.path, found.type) for found in await _found(store, "greeted")} == {
            ("su:turn_1.conv.range.summary.1.1", "conv.range.summary"),
            ("l", "x.y"),
        }
        assert await _paths(store, "chars") == set()

    async def test_filters_narrow_what_is_found(self, store: EventStore) -> None:
        """Conversation, types of blocks, and time, whose bounds are included."""
        first, second = block_event("p", "word one"), block_event("q", "word two")
        answer = _appended(AssistantCompletion(path="r", turn_id="t", text="word three"))
        await store.append("a", [first, answer])
        await store.append("b", [second])
        assert await _paths(store, "word", conversation="a") == {"p", "r"}
        assert await _paths(store, "word", types=["user.prompt"]) == {"p", "q"}
        assert await _paths(store, "word", types={"user.prompt", "assistant.completion"}, conversation="a") == {
            "p",
            "r",
        }
        assert await _paths(store, "word", types=["user"]) == set()
        assert await _paths(store, "word", types=[]) == set()
        assert await _paths(store, "word", since=second.at) == {"q", "r"}
        assert await _paths(store, "word", until=second.at) == {"p", "q"}
        between = {"since": first.at + timedelta(microseconds=1), "until": second.at}
        assert await _paths(store, "word", **between) == {"q"}
        assert await _paths(store, "word", **between, conversation="a") == set()

    async def test_a_fork_is_searched_for_what_was_appended_to_it(self, store: EventStore) -> None:
        """A shared block is found once, in the parent."""
        await store.append("a", [block_event("p", "shared word")])
        await store.append("f", [fork("a", 1), block_event("q", "own word")], expected=Expected.NO_STREAM)
        assert [(found.conversation, found.path) for found in await _found(store, "shared")] == [("a", "p")]
        assert await _paths(store, "word", conversation="f") == {"q"}

    async def test_what_was_redacted_is_not_found(self, store: EventStore) -> None:
        """Neither before nor after a first search, nor when it is redacted twice; other blocks are found."""
        await _texts(store, p="secret one", q="secret two", r="secret three")
        await store.append("a", [event(BlockRedacted(version=1)), block_event("s", "secret four")])
        await store.append("b", [block_event("t", "secret five")])
        assert await _paths(store, "secret") == {"q", "r", "s", "t"}
        await store.append("a", [event(BlockRedacted(version=2)), event(BlockRedacted(version=1))])
        await store.append("a", [event(BlockRedacted(version=99))])
        assert await _paths(store, "secret") == {"r", "s", "t"}
        assert await _paths(store, "secret", conversation="a") == {"r", "s"}

    async def test_what_was_appended_since_the_last_search_is_found(self, store: EventStore) -> None:
        """A search finds every append that was acknowledged before it began."""
        for number in range(5):
            await store.append("ab"[number % 2], [block_event(f"p{number}", f"round {number}")])
            assert await _paths(store, "round") == {f"p{n}" for n in range(number + 1)}

    async def test_the_best_comes_first_and_of_equals_the_newest(self, store: EventStore) -> None:
        """More hits in a shorter text rank higher (bm25); equal blocks come newest first."""
        await _texts(store, p="error " + "word " * 50, q="error error word", r="error word word", s="error word word")
        await _texts(store, **{f"x{n}": "something else entirely" for n in range(8)})
        found = await _found(store, "error")
        assert [hit.path for hit in found] == ["q", "s", "r", "p"]
        assert [hit.rank for hit in found] == sorted((hit.rank for hit in found), reverse=True)
        bounds = {"since": found[-1].at - timedelta(days=1), "until": found[0].at + timedelta(days=1)}
        for filters in ({"page": 1}, bounds, {**bounds, "page": 1}, {"conversation": "a"}, {"types": ["user.prompt"]}):
            assert await _found(store, "error", **filters) == found

    @pytest.mark.parametrize("page", [1, 2, 3, 50])
    async def test_pages_of_any_size_give_the_same_blocks(self, store: EventStore, page: int) -> None:
        """A page sets how many blocks are read at a time."""
        await _texts(store, **{f"p{n}": "word " * (n + 1) for n in range(7)}, q="other")
        everything = [found.path for found in await _found(store, "word")]
        assert len(everything) == 7
        assert [found.path for found in await _found(store, "word", page=page)] == everything

    async def test_a_long_text_is_shown_where_most_was_found(self, store: EventStore) -> None:
        """A line around the hits, with marks where it was cut, and no other text."""
        await _texts(store, p="lorem beta " * 40 + "here alpha\n\tmeets beta at last" + " dolor" * 300)
        (found,) = await _found(store, "alpha beta")
        assert "here «alpha» meets «beta» at last dolor" in found.snippet
        assert found.snippet.startswith("…")
        assert found.snippet.endswith("…")
        assert len(found.snippet) < 200

    async def test_a_query_of_more_characters_than_a_search_takes_is_refused_with_the_limit(
        self, store: EventStore
    ) -> None:
        """Its cost is the words of the query times those of each text; the same limit holds for a query of facts."""
        await _texts(store, p="word")
        assert await _paths(store, "word".ljust(LONGEST_QUERY)) == {"p"}
        with pytest.raises(InvalidFilter, match=r"'query': has 1,001 characters of at most 1,000; give fewer words"):
            await _found(store, "word".ljust(LONGEST_QUERY + 1))
        with pytest.raises(InvalidFilter, match=r"'query': has 1,001 characters"):
            [fact async for fact in store.facts(query="word".ljust(LONGEST_QUERY + 1))]

    async def test_an_unknown_conversation_and_bad_filters_are_refused(self, store: EventStore) -> None:
        """As in any other read."""
        await _texts(store, p="word")
        for refused, asked in (
            (ConversationNotFound, {"conversation": "nobody"}),
            (ConversationNotFound, {"conversation": ""}),
        ):
            with pytest.raises(refused):
                await _found(store, "word", **asked)
        with pytest.raises(InvalidFilter, match="since"):
            await _found(store, "word", since=datetime(2026, 1, 1))  # noqa: DTZ001 - the missing zone is the point
        with pytest.raises(ValueError, match="page"):
            await _found(store, "word", page=0)
