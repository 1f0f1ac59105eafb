"""A fake of the model providers on loopback, for tests that drive a real SDK.

    with FakeProvider(["Hello", Trouble("overloaded"), Answer(calls=(Call("ls", {"path": "."}),))]) as provider:
        client = AsyncOpenAI(api_key="none", base_url=provider.openai_url)

One server speaks Anthropic's messages, OpenAI's chat completions and responses, and Gemini's generateContent, each
whole and streamed. `FakeProvider.url` is the base URL of ``anthropic`` and ``google-genai``, `FakeProvider.openai_url`
that of ``openai``.

**What it answers** is a script: one step for every request, a list of steps used up in order, or a function from
`Asked` to a step. A step is a text, an `Answer`, or a misbehaviour: `Trouble`, `Cut`, `Hang`, `Raw`.

**What it is asked** is checked as the provider would, by the SDK's own types and by the rules that they cannot say
(pairs of calls and results, empty content, the first message): a request that breaks one is refused with status 400 in
the provider's shape, and told in `FakeProvider.refused`. Those that were answered, or were to be, are in
`FakeProvider.asked`.
"""

from __future__ import annotations

from tests.providers.script import Answer, Asked, Call, Cut, Hang, Raw, Step, Trouble
from tests.providers.server import FakeProvider

__all__ = ["Answer", "Asked", "Call", "Cut", "FakeProvider", "Hang", "Raw", "Step", "Trouble"]
