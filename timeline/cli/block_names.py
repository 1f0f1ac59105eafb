"""Read which block the words of a command name: `read cards @152`, `read cards PATH`, or `read cards@152` alone."""

from __future__ import annotations

from timeline.cli.exits import UsageProblem
from timeline.events.addresses import parse_address


def block_named(id_: str, block: str | None) -> tuple[str, str]:
    """Return the conversation and the path or address of the block that the words of a command mean.

    Raises:
        UsageProblem: no block is named.
    """
    if block is not None:
        return id_, block
    address = parse_address(id_)
    if address is None:
        raise UsageProblem(f"Name a block: its path or address after the id, or both in one word, such as {id_}@152.")
    if not address.conversation:
        raise UsageProblem(f"{id_} is an address without its conversation: write ID {id_}, or ID{id_} as one word.")
    return address.conversation, str(address.bare)
