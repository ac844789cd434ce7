"""From values in label fields to columns of Y: by a label list, by numbers, or inferred from the data.

A label space is used in two steps. `look` says which values are labels and stores nothing. Then `columns` gets the
values of the points that are kept, so that a value on a skipped line never becomes a label.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.core.errors import DataError
from longtail.core.labels import Labels
from longtail.core.texts import Texts, TextsBuilder
from longtail.data.sparse import MOST_COLUMNS

Values = Sequence[Any] | NDArray[np.int64]  # integers and strings in a list, or integers only
UNKNOWN = -1  # a value that is not in the list
WRONG_TYPE = -2  # a value that cannot be a label at all
NO_LABEL = "no point has a label"


class ListedLabels:
    """Labels from a list: an integer is a row of it, a string is a key."""

    def __init__(self, labels: Labels):
        self.labels = labels

    def look(self, values: Values) -> NDArray[np.int64]:
        """Return the column of each value; UNKNOWN if it is not in the list, WRONG_TYPE if it cannot be a label."""
        if isinstance(values, np.ndarray):
            return np.where((values >= 0) & (values < len(self.labels)), values, UNKNOWN)
        kinds = set(map(type, values))
        if kinds == {str}:
            get = self.labels._index.get
            return np.fromiter((get(v, UNKNOWN) for v in values), np.int64, len(values))
        return np.array([self._one(v) for v in values], np.int64)

    def _one(self, value: Any) -> int:
        if type(value) is int:
            return value if 0 <= value < len(self.labels) else UNKNOWN
        return self.labels._index.get(value, UNKNOWN) if type(value) is str else WRONG_TYPE

    def columns(self, values: Values) -> NDArray[np.int64]:
        """Return the column of each value; all must be labels."""
        return self.look(values)

    def finish(self) -> tuple[Labels, NDArray[np.int64] | None]:
        """Return the labels, and None: the columns are already final."""
        return self.labels, None


class NumberedLabels(ListedLabels):
    """Labels that only have numbers; there are as many as the largest number seen requires."""

    def __init__(self) -> None:
        super().__init__(numbered(0))
        self.count = 0

    def look(self, values: Values) -> NDArray[np.int64]:
        """Return the numbers themselves; WRONG_TYPE for values that are not numbers of at least 0."""
        if not isinstance(values, np.ndarray):
            known = (v if type(v) is int and abs(v) < MOST_COLUMNS else WRONG_TYPE for v in values)
            values = np.fromiter(known, np.int64, len(values))
        return np.where((values >= 0) & (values < MOST_COLUMNS), values, WRONG_TYPE)

    def columns(self, values: Values) -> NDArray[np.int64]:
        """Return the numbers themselves; all must be labels."""
        columns = self.look(values)
        self.count = max(self.count, int(columns.max(initial=-1)) + 1)
        return columns

    def finish(self) -> tuple[Labels, NDArray[np.int64] | None]:
        """Return the labels up to the largest number, and None: the columns are already final."""
        if not self.count:
            raise DataError(NO_LABEL, fix="check which field holds the labels")
        self.labels = numbered(self.count)
        return self.labels, None


class InferredLabels:
    """Labels in order of first appearance. An integer and its decimal string are the same label.

    At the end they are sorted: by number if all are integers, else as strings.
    """

    def __init__(self) -> None:
        self._index: dict[str, int] = {}
        self._all_integers = True

    def look(self, values: Values) -> NDArray[np.int64]:
        """Return 0 for each value that can be a label; WRONG_TYPE for negative numbers and other values."""
        if isinstance(values, np.ndarray):
            return np.where(values >= 0, 0, WRONG_TYPE)
        if set(map(type, values)) <= {str}:
            return np.zeros(len(values), np.int64)
        fine = (type(v) is str or (type(v) is int and v >= 0) for v in values)
        return np.where(np.fromiter(fine, bool, len(values)), 0, WRONG_TYPE)

    def columns(self, values: Values) -> NDArray[np.int64]:
        """Return the provisional column of each value; all must be possible labels."""
        if isinstance(values, np.ndarray):
            values = values.tolist()
        kinds = set(map(type, values))
        self._all_integers &= kinds <= {int}
        index = self._index
        keys = values if kinds <= {str} else [str(value) for value in values]
        return np.fromiter((index.setdefault(key, len(index)) for key in keys), np.int64, len(keys))

    def finish(self) -> tuple[Labels, NDArray[np.int64] | None]:
        """Return the sorted labels, and the final column of each provisional one."""
        if not self._index:
            raise DataError(NO_LABEL, fix="check which field or column holds the labels")
        keys = sorted(self._index, key=int) if self._all_integers else sorted(self._index)
        order = np.fromiter((self._index[key] for key in keys), np.int64, len(keys))
        final = np.empty(len(keys), np.int64)
        final[order] = np.arange(len(keys))
        labels = Labels(Texts.of(keys))
        if any("\ud800" <= c <= "\udfff" for key in keys if not key.isascii() for c in key):
            labels.check_unique()  # characters that UTF-8 cannot store were replaced: two keys may now be equal
        return labels, final


LabelSpace = ListedLabels | InferredLabels


def numbered(L: int, texts: Texts | None = None) -> Labels:
    """Return L labels whose keys are their numbers, from 0."""
    return Labels(decimal_keys(L), texts)


def decimal_keys(L: int, block: int = 1 << 20) -> Texts:
    """Return the numbers 0 … L − 1 in decimal, without creating a Python string for each."""
    keys = TextsBuilder()
    first, digits = 0, 1
    while first < L:
        last = min(first + block, 10**digits, L)  # numbers with this many digits
        numbers = np.arange(first, last, dtype=np.int64)
        octets = np.empty((last - first, digits), np.uint8)
        for place in range(digits):
            octets[:, digits - 1 - place] = numbers // 10**place % 10 + ord("0")
        keys.extend_utf8(octets.ravel(), np.full(last - first, digits, np.int64))
        first = last
        digits += first == 10**digits
    return keys.finish()
