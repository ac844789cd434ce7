"""From what stands in label fields to columns of Y: by a list of labels, or inferred from the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.core.errors import DataError
from longtail.core.labels import Labels
from longtail.core.texts import Texts

Values = Sequence[Any] | NDArray[np.int64]  # integers and strings in a list, or integers only
UNKNOWN = -1  # a value that is no label of the list
WRONG_TYPE = -2  # a value that cannot be a label at all


class ListedLabels:
    """Labels from a list: an integer is a row of it, a string is a key."""

    def __init__(self, labels: Labels):
        self.labels = labels
        self._index = labels._index

    def columns(self, values: Values) -> NDArray[np.int64]:
        """The column of each value; UNKNOWN for a key or row that is not in the list, WRONG_TYPE for nonsense."""
        if isinstance(values, np.ndarray):
            return np.where((values >= 0) & (values < len(self.labels)), values, UNKNOWN)
        kinds = set(map(type, values))
        get = self._index.get
        if kinds == {str}:
            return np.fromiter((get(v, UNKNOWN) for v in values), np.int64, len(values))
        return np.array([self._one(v) for v in values], np.int64)

    def _one(self, value: Any) -> int:
        if type(value) is int:
            return value if 0 <= value < len(self.labels) else UNKNOWN
        return self._index.get(value, UNKNOWN) if type(value) is str else WRONG_TYPE

    def finish(self) -> tuple[Labels, None]:
        """The labels; columns are final as they are."""
        return self.labels, None


class InferredLabels:
    """Labels as they come. An integer and its decimal string are the same label.

    At the end they are sorted: by number where all were integers, else as strings.
    """

    def __init__(self) -> None:
        self._index: dict[str, int] = {}
        self._all_integers = True

    def columns(self, values: Values) -> NDArray[np.int64]:
        """The provisional column of each value; WRONG_TYPE for a negative number or what is no label."""
        if isinstance(values, np.ndarray):
            values = values.tolist()
        kinds = set(map(type, values))
        if not kinds <= {str}:
            keys: Values = [str(v) if type(v) is int and v >= 0 else v for v in values]
            self._all_integers &= kinds == {int}
            wrong = [type(key) is not str for key in keys]
        else:
            keys, wrong = values, []
            self._all_integers &= not keys
        index = self._index
        if any(wrong):
            return np.array(
                [WRONG_TYPE if w else index.setdefault(k, len(index)) for k, w in zip(keys, wrong, strict=True)],
                np.int64,
            )
        return np.fromiter((index.setdefault(key, len(index)) for key in keys), np.int64, len(keys))

    def finish(self) -> tuple[Labels, NDArray[np.int64]]:
        """The sorted labels, and for each provisional column its final one."""
        if not self._index:
            raise DataError("no point has a label", fix="check which field or column holds the labels")
        keys = sorted(self._index, key=int) if self._all_integers else sorted(self._index)
        order = np.fromiter((self._index[key] for key in keys), np.int64, len(keys))
        final = np.empty(len(keys), np.int64)
        final[order] = np.arange(len(keys))
        return Labels(Texts.of(keys)), final


LabelSpace = ListedLabels | InferredLabels
