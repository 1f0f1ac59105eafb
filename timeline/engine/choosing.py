"""Choose the policy that an opened conversation works under, and record the choice.

The policy belongs to the conversation: the log names it, and a handle that is opened without a policy works under it. A
policy that is given at the opening is recorded where the log names none. Where the log names another one, the given
policy holds for that handle alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from timeline.display.logs import logger_of
from timeline.engine.equipment import policy_in_force
from timeline.errors import InvalidPolicy, StoreReadOnly
from timeline.events import PolicyChanged
from timeline.events.other_payloads import PolicyOverridden
from timeline.policy.ours import balanced

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from timeline.events import ConversationOpened, Payload
    from timeline.log.stored import StoredLog
    from timeline.policy.model import Policy
    from timeline.ports import EventStore

_LOGGER: Final = logger_of("timeline")


class Chosen(NamedTuple):
    """The policy of a handle.

    Attributes:
        policy: what it works under.
        own: whether that is the handle's own instead of the conversation's.
        in_force: the conversation's, where the handle has its own; None if it cannot be read.
    """

    policy: Policy
    own: bool = False
    in_force: Policy | None = None


def first_policy(given: Policy | None, *, imported: bool) -> Policy | None:
    """Return the policy that a new conversation records: the default, unless one is given; none for a recording."""
    return given if given is not None or imported else balanced()


async def choose_policy(
    store: EventStore, log: StoredLog, given: Policy | None, at: datetime | None, *, imported: bool
) -> Chosen:
    """Return the policy to work under, and record it if the log names another one, or none.

    Into a log that names none, a given policy is recorded at once, and the default before the handle's first append or
    decision. A given policy other than the log's is recorded once, as an override. Nothing is recorded in a store that
    is open for reading only.

    Args:
        store: holds the conversation.
        log: the conversation's.
        given: what the application opened the conversation with.
        at: time of what is recorded; None for that of the append.
        imported: the handle appends a recording, for which nobody chose a policy.

    Raises:
        InvalidPolicy: no policy is given, and the one in force cannot be read.
        StoreError: the store cannot be read or written.
    """
    if given is None:
        in_force = await policy_in_force(store, log.fold.window)
        if in_force is None and not imported:
            log.adopt(*_adopted(balanced()))
        return Chosen(in_force or balanced())
    chosen = await _compared(store, log, given)

    async def news(_at: datetime) -> Sequence[Payload]:
        nonlocal chosen
        chosen = await _compared(store, log, given)
        window, hash_ = log.fold.window, given.hash()
        if window.policy is None:
            return [_adopted(given)[0]]
        if chosen.own and hash_ not in window.overrides:
            return [PolicyOverridden(policy=hash_, origin=given.origin, in_force=window.policy)]
        return []

    try:
        await log.decide(news, at=at, values={given.hash(): given.canonical()})
    except StoreReadOnly:  # the handle cannot write under its policy, so nobody else has to know of it
        return chosen._replace(own=chosen.own or log.fold.window.policy is None)
    if chosen.own:
        _warn(log, given, chosen.in_force)
    return chosen


async def _compared(store: EventStore, log: StoredLog, given: Policy) -> Chosen:
    """Compare a given policy with the one that the log names.

    The same preset with the same arguments is the same choice: if a later release of the preset has other figures, the
    conversation keeps those that it recorded.
    """
    window = log.fold.window
    if window.policy in {None, given.hash()}:
        return Chosen(given)
    try:
        in_force = await policy_in_force(store, window)
    except InvalidPolicy:  # a policy of a later version of this library, which this one cannot work under
        return Chosen(given, own=True)
    if in_force is None or in_force == given:
        return Chosen(given)
    if given.origin.same_choice(in_force.origin):
        return Chosen(in_force)
    return Chosen(given, own=True, in_force=in_force)


def with_policy(opened: ConversationOpened, policy: Policy | None) -> tuple[ConversationOpened, dict[str, str]]:
    """Return the event that begins a conversation with its policy recorded, and the text that goes with it."""
    if policy is None:
        return opened, {}
    hash_ = policy.hash()
    named = opened.model_copy(update={"policy": hash_, "origin": policy.origin})
    return named, {hash_: policy.canonical()}


def _adopted(policy: Policy) -> tuple[PolicyChanged, dict[str, str]]:
    """Return the event that names the policy of a log that names none, and the text that goes with it."""
    hash_ = policy.hash()
    return PolicyChanged(policy=hash_, origin=policy.origin, adopted=True), {hash_: policy.canonical()}


def _warn(log: StoredLog, given: Policy, in_force: Policy | None) -> None:
    conversations = "unreadable here" if in_force is None else _in_words(in_force)
    _LOGGER.warning(
        "conversation %s: this handle works under a policy of its own, %s. The conversation's is %s, which stays in "
        "force for everybody else. To use it, open without a policy; to change it for everybody, call use_policy.",
        *(log.fold.conversation, _in_words(given), conversations),
    )


def _in_words(policy: Policy) -> str:
    return f"{policy.origin.in_words()} ({policy.max_tokens:,} tokens, hash {policy.hash()[:12]})"
