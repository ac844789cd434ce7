"""The result of an evaluation."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from longtail.metrics.frequency import FrequencyBin


@dataclass(frozen=True)
class Report:
    """Scores of one system on one test set.

    `scores` is flat, in percent: {"P@1": 31.5, …}. `by_frequency` has the five bins and the labels without training
    examples, with their contribution to P@`k` and their recall; it is empty if training counts are unknown. `points`
    is N, `labels` the number of labels with a test positive.
    """

    scores: dict[str, float]
    by_frequency: tuple[FrequencyBin, ...]
    k: int
    points: int
    labels: int

    def __getitem__(self, name: str) -> float:
        return self.scores[name]

    def to_json(self) -> dict[str, Any]:
        """Return all fields as plain JSON values."""
        return asdict(self) | {"by_frequency": [asdict(row) for row in self.by_frequency]}
