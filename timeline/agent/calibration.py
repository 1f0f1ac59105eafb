"""Calibration: how the provider's token counts compare with ours, as the fold measured it (design: Budget)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from timeline.fold.reported import Reported


@dataclass(frozen=True, slots=True)
class Calibration:
    """The result of a comparison.

    Attributes:
        ratio: the provider's tokens for each of the counter's, from 0.7 to 2.0; 1.0 while too little could be compared.
        reported: the provider's tokens for the compared text.
        counted: the counter's tokens for the same text.
        model: the model that the provider's tokens are of.
        calls: how many of its calls reported usage for a recorded context.
        offset: tokens that the provider counts besides, in system prompt, tools or a prompt of its own; negative where
            it counts fewer there than the counter.
    """

    ratio: float = 1.0
    reported: int = 0
    counted: int = 0
    model: str = ""
    calls: int = 0
    offset: int = 0


def calibration_of(reported: Reported) -> Calibration:
    """Return what a fold measured as a calibration."""
    ratio = reported.ratio_from(1.0)
    compared = (reported.input, reported.counted, reported.model, reported.calls)
    return Calibration(ratio, *compared, reported.offset(ratio))
