"""What a trained model costs in use: its size on disk, and how long a single text takes."""

from __future__ import annotations

import logging
import statistics
import tempfile
import time
from pathlib import Path

from longtail.core.errors import StoreError
from longtail.core.model import Model
from longtail.data.dataset import Dataset
from longtail.store.model import load

log = logging.getLogger("longtail")
TEXTS, WARM_UP, K = 200, 20, 5


def served(model: Model, data: Dataset) -> dict[str, float]:
    """The size of the saved model in MB, and the median time in µs of a text alone, from the model as it is loaded.

    The first texts of `data` are asked, after a few that are not counted. Empty where the model cannot be saved, for
    example because the disk is full: its other figures still count.
    """
    with tempfile.TemporaryDirectory(prefix="longtail-bench-") as folder:
        place = Path(folder) / "model"
        try:
            model.save(place)
        except StoreError as error:
            log.warning("size and speed of the saved model are not measured: %s", error)
            return {}
        size = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
        loaded = load(place)
        times = []
        for row in [*range(min(WARM_UP, len(data))), *range(min(TEXTS, len(data)))]:
            began = time.perf_counter()
            loaded.predict(data.x[row : row + 1], K)
            times.append(time.perf_counter() - began)
        counted = times[min(WARM_UP, len(data)) :]
    return {"model_mb": round(size / 1e6, 2), "p50_us": round(1e6 * statistics.median(counted), 1)}
