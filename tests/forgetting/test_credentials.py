from __future__ import annotations

import json
import random
from time import thread_time
from typing import TYPE_CHECKING, Any

import pytest

from tests.depth import sampled
from tests.forgetting.published import LABELLED, SHAPED, made
from tests.recorded import needs_recordings, swept
from timeline import Hooks, Timeline, open_store, policies
from timeline.blocks import Note, ToolCall, ToolResult, UserPrompt
from timeline.errors import InvalidBlock
from timeline.events import ContextRendered
from timeline.events.encoding import encode_payload
from timeline.forgetting import mask_credentials
from timeline.forgetting.credentials import credentials_in, masked
from timeline.importers import read_recording
from timeline.portable.recordings import import_recording

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from timeline.blocks import Block
    from timeline.ports import EventStore

# Put together here, so that no scanner takes this file for a leak.
FILL = "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY"
KEYS = {
    "anthropic": f"sk-ant-api03-{FILL}{FILL}",
    "openai": f"sk-proj-{FILL}",
    "openrouter": f"sk-or-v1-{'0123456789abcdef' * 4}",
    "github": f"ghp_{FILL}abcd",
    "gitlab": f"glpat-{FILL[:20]}",
    "aws": f"AKIA{'IOSFODNN7QWERTYU'}",
    "google": f"AIza{FILL}abc",
    "google-oauth": f"GOCSPX-{FILL[:28]}",
    "slack": f"xoxb-{'123456789012'}-{FILL}",
    "stripe": f"sk_live_{FILL[:24]}",
    "npm": f"npm_{FILL}abcd",
    "pypi": f"pypi-AgEI{FILL}{FILL}",
    "huggingface": f"hf_{'aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH'}",
    "sendgrid": f"SG.{FILL[:22]}.{FILL}{FILL[:11]}",
    "telegram": f"123456789:AA{FILL}a",
    "digitalocean": f"dop_v1_{'0123456789abcdef' * 4}",
    "jwt": f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.{FILL}",
    "private-key": f"-----BEGIN RSA PRIVATE KEY-----\n{FILL}\n{FILL}\n-----END RSA PRIVATE KEY-----",
}
HARMLESS = (
    "The token count is 12345678901234567890 and the password is wrong.",
    "token = get_token(request, refresh=True)  # see AccessTokenProvider.from_settings",
    "secret_key_base: your-secret-key-goes-here-please-change",
    "export OPENAI_API_KEY=sk-proj-... # your key",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "password: ${{ secrets.DEPLOY_PASSWORD }}",
    "postgres://user:$PASSWORD@localhost/db",
    "api_key=os.environ['SOME_LONG_VARIABLE_NAME_HERE_1']",
    "bearer /usr/local/lib/python3.11/site-packages/requests/auth.py",
    "sk-learn and ask-something-that-is-long-enough-for-this",
)


@pytest.mark.parametrize("kind", KEYS)
def test_each_kind_is_found_in_a_sentence_and_masked_by_its_name(kind: str) -> None:
    """Nothing around it is taken."""
    [found] = credentials_in(f"Use {KEYS[kind]} for it.")
    assert found.kind == kind
    assert masked(f"Use {KEYS[kind]} for it.") == f"Use [masked: {kind}] for it."


def test_a_labelled_value_that_looks_random_is_masked_and_its_label_stays() -> None:
    """In settings, in JSON and in URLs."""
    assert masked(f'{{"db_password": "{FILL}"}}') == '{"db_password": "[masked: secret]"}'
    assert masked(f"AUTH_TOKEN={FILL}\n") == "AUTH_TOKEN=[masked: secret]\n"
    assert masked("https://u:gR8-tY2kQ@host/x") == "https://u:[masked: url]@host/x"


@pytest.mark.parametrize("text", HARMLESS)
def test_what_merely_sounds_secret_stays(text: str) -> None:
    """A false alarm would take it out of the conversation for good."""
    assert masked(text) == text


async def test_nothing_is_masked_unless_it_is_asked_for() -> None:
    """A timeline without the hook stores what it gets."""
    async with await open_store("memory://") as store:
        timeline = await Timeline.open(store, "cards")
        [prompt] = await timeline.append(UserPrompt(text=KEYS["github"]))
        assert prompt.text == KEYS["github"]


async def test_the_hook_sees_every_block_before_it_is_stored() -> None:
    """Appended ones, messages, replies with calls, and what an adapter brings; the counts are of what is stored."""
    key = KEYS["github"]
    async with await open_store("memory://") as store:
        timeline = await Timeline.open(store, "cards", hooks=Hooks(on_append=mask_credentials))
        call = ToolCall(call_id="1", name="bash", arguments={"command": f"curl -H {key}", "more": [{"k": key}]})
        await timeline.append(UserPrompt(text=key), call, ToolResult(call_id="1", text=key, data={"said": [key]}))
        await timeline.append_messages([{"role": "user", "content": f"Again {key}"}], keys=["1"])
        asked = {"id": "c2", "type": "function", "function": {"name": "bash", "arguments": json.dumps({"c": key})}}
        message = {"role": "assistant", "content": key, "tool_calls": [asked]}
        await timeline.record({"id": "chatcmpl-1", "choices": [{"message": message}]})
        said = [encode_payload(event.payload) async for event in store.read("cards")]
        assert not [one for one in said if key in one]
        assert sum("[masked: github]" in one for one in said) == 6
        assert timeline.window.items[0].tokens < 10


async def test_a_frameworks_list_is_compared_with_what_was_stored() -> None:
    """Its history has the secret still; nothing is appended twice."""
    async with await open_store("memory://") as store:
        timeline = await Timeline.open(store, "cards", hooks=Hooks(on_append=mask_credentials))
        history = [[UserPrompt(text=f"Use {KEYS['github']}.")]]
        follower = timeline.list_follower()
        assert len(await follower.take(history)) == 1
        assert await timeline.list_follower().take(history) == []


async def test_a_hook_that_fails_keeps_the_block_out() -> None:
    """Its error is the caller's, and a hook that returns something else is refused."""

    def fails(block: Block) -> Block:
        raise RuntimeError(f"cannot mask {block.type}")

    async with await open_store("memory://") as store:
        timeline = await Timeline.open(store, "cards", hooks=Hooks(on_append=fails))
        with pytest.raises(RuntimeError, match="cannot mask"):
            await timeline.append(UserPrompt(text="Build it."))
        other = await Timeline.open(store, "other", hooks=Hooks(on_append=lambda _: Note(text="no")))
        with pytest.raises(InvalidBlock, match="on_append"):
            await other.append(UserPrompt(text="Build it."))
        assert [event.type async for event in store.read("cards")] == ["conversation.opened"]


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)


@needs_recordings
@sampled
def test_no_recording_has_a_false_alarm() -> None:
    """Millions of characters of recorded work, in which nothing is a credential."""
    found: list[str] = []
    for file in swept("*/*"):
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                value = json.loads(line)
            except ValueError:
                value = line
            found += [f"{file.name}: {one.kind}" for text in _strings(value) for one in credentials_in(text)]
    assert found == []


@pytest.mark.parametrize("name", SHAPED)
def test_every_credential_of_a_published_shape_is_masked(name: str) -> None:
    """In a sentence, in JSON and in a setting: twenty of each format, made as its issuer makes them."""
    for number in range(20):
        key = made(SHAPED[name], random.Random(f"{name} {number}"))
        for text in (f"Use {key} for it.", json.dumps({"value": key}), f"X={key}\n"):
            assert key[-12:] not in masked(text), text


def test_nearly_every_labelled_credential_is_masked() -> None:
    """Nothing but its label tells such a value from another random text; one in fifty looks like a word."""
    played = missed = 0
    for name, (label, parts) in LABELLED.items():
        for number in range(20):
            key = made(parts, random.Random(f"{name} {number}"))
            low = label.lower()
            for text in (
                f"{label}={key}\n",
                json.dumps({low: key}),
                f"{low.replace('_', '-')}: {key}",
                f'{low} = "{key}"',
            ):
                played += 1
                missed += key[-12:] in masked(text)
    assert missed <= played / 50


async def everything_stored(store: EventStore) -> str:
    """Return all texts that a store holds of its conversations."""
    said = [str(info) async for info in store.conversations()]
    hashes = set()
    async for event in store.read_all():
        said.append(encode_payload(event.payload))
        if isinstance(event.payload, ContextRendered):
            context = event.payload
            hashes |= {hash_ for hash_ in (context.system, context.tools, context.ephemeral) if hash_}
    return "".join((*said, *(await store.values(hashes)).values()))


async def test_the_hook_sees_every_other_text_too(tmp_path: Path) -> None:
    """Titles, errors, stages, system prompts, tools and tails, forks; contexts with a secret are recorded by hash."""
    key = KEYS["github"]

    async def leaks(_: object) -> None:
        raise RuntimeError(f"no access with {key}")

    hooks = Hooks(on_append=mask_credentials, on_before_compaction=leaks)
    policy = policies.cut_point(max_tokens=2_000)
    async with await open_store(tmp_path / "a.db") as store:
        timeline = await Timeline.open(store, "cards", policy=policy, hooks=hooks, title=f"Use {key}")
        await timeline.enter_stage("plan", label=f"Plan {key}")
        await timeline.append(UserPrompt(text="Write cards. " * 300), UserPrompt(text="Go on. " * 300))
        await timeline.approve_stage(decision=f"Use {key}", short=f"With {key}", detailed=f"By {key}")
        await timeline.append(UserPrompt(text="Go on. " * 300))
        await timeline.compact()
        context = await timeline.render(system=f"Never say {key}.", tools=[{"name": key}], ephemeral=[f"Say {key}."])
        assert key in str(context.to_anthropic())
        await timeline.record_model_call(model="m", error=f"401 for {key}")
        await timeline.fork(conversation="fork", title=f"Again {key}")
        said = await everything_stored(store)
        assert key not in said
        assert said.count("[masked: github]") >= 6
        assert (await timeline.verify()).ok
        clean = await timeline.render(system="Be brief.")
        assert clean.recorded is not None
        assert "Be brief." in await everything_stored(store)
    assert key.encode() not in (tmp_path / "a.db").read_bytes()


async def test_an_import_shows_the_hook_all_that_it_stores(tmp_path: Path) -> None:
    """Blocks are counted as they are stored; importing the file again adds nothing."""
    key = KEYS["github"]
    file = tmp_path / "chat.json"
    messages = [{"role": "user", "content": f"Use {key} here."}, {"role": "assistant", "content": f"I used {key}."}]
    file.write_text(json.dumps(messages))
    async with await open_store("memory://") as store:
        for events in (2, 0):
            [recording] = read_recording(file)
            done = await import_recording(store, recording, hooks=Hooks(on_append=mask_credentials))
            assert done.events == events
        said = await everything_stored(store)
        assert (key in said, said.count("[masked: github]") >= 2) == (False, True)


def test_private_keys_that_never_end_take_no_time() -> None:
    """A page may have thousands of their first lines; each was read on to the end of the page."""
    page = "-----BEGIN PRIVATE KEY-----\n" * 20_000
    assert credentials_in(page) == []
    assert credentials_in(f"{page}-----END PRIVATE KEY-----") == [("private-key", 0, len(page) + 25)]


def test_dotted_words_that_begin_like_a_credential_take_no_time() -> None:
    """A digit is looked for within the length of one, not to the end of the page."""
    assert credentials_in("M." * 200_000) == []


@pytest.mark.parametrize("unit", ["al-٣٣٣", "sk-6n1٣Zéé"])
def test_a_text_of_another_script_between_beginnings_of_keys_is_read_in_time(unit: str) -> None:
    """Each beginning was followed to the end of the text: a page of 100 KB took half a minute."""
    text = unit * 15_000
    began = thread_time()
    assert masked(text) == text
    assert thread_time() - began < 2
