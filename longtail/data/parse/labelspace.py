"""From what stands in label fields to columns of Y: by a list of labels, by their numbers, or inferred from the data.

A label space is asked twice: `look` says which values are labels and remembers nothing; `columns` is then told the
values of the points that are kept, so that what stands on a skipped line never becomes a label.
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
UNKNOWN = -1  # a value that is no label of the list
WRONG_TYPE = -2  # a value that cannot be a label at all
NO_LABEL = "no point has a label"


class ListedLabels:
    """Labels from a list: an integer is a row of it, a string is a key."""

    def __init__(self, labels: Labels):
        self.labels = labels

    def look(self, values: Values) -> NDArray[np.int64]:
        """The column of each value; UNKNOWN for a key or row that is not in the list, WRONG_TYPE for nonsense."""
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
        """The column of each value, all of which are labels."""
        return self.look(values)

    def finish(self) -> tuple[Labels, NDArray[np.int64] | None]:
        """The labels; columns are final as they are."""
        return self.labels, None


class NumberedLabels(ListedLabels):
    """Labels that only have numbers, of which nobody says how many there are: up to the largest seen."""

    def __init__(self) -> None:
        super().__init__(numbered(0))
        self.count = 0

    def look(self, values: Values) -> NDArray[np.int64]:
        """The numbers themselves; WRONG_TYPE for what is no number from 0 up."""
        if not isinstance(values, np.ndarray):
            known = (v if type(v) is int and abs(v) < MOST_COLUMNS else WRONG_TYPE for v in values)
            values = np.fromiter(known, np.int64, len(values))
        return np.where((values >= 0) & (values < MOST_COLUMNS), values, WRONG_TYPE)

    def columns(self, values: Values) -> NDArray[np.int64]:
        """The numbers themselves, all of which are labels."""
        columns = self.look(values)
        self.count = max(self.count, int(columns.max(initial=-1)) + 1)
        return columns

    def finish(self) -> tuple[Labels, NDArray[np.int64] | None]:
        """The labels up to the largest; columns are final as they are."""
        if not self.count:
            raise DataError(NO_LABEL, fix="check which field holds the labels")
        self.labels = numbered(self.count)
        return self.labels, None


class InferredLabels:
    """Labels as they come. An integer and its decimal string are the same label.

    At the end they are sorted: by number where all were integers, else as strings.
    """

    def __init__(self) -> None:
        self._index: dict[str, int] = {}
        self._all_integers = True

    def look(self, values: Values) -> NDArray[np.int64]:
        """0 for each value that can be a label; WRONG_TYPE for a negative number or what is no label."""
        if isinstance(values, np.ndarray):
            return np.where(values >= 0, 0, WRONG_TYPE)
        if set(map(type, values)) <= {str}:
            return np.zeros(len(values), np.int64)
        fine = (type(v) is str or (type(v) is int and v >= 0) for v in values)
        return np.where(np.fromiter(fine, bool, len(values)), 0, WRONG_TYPE)

    def columns(self, values: Values) -> NDArray[np.int64]:
        """The provisional column of each value, all of which can be labels."""
        if isinstance(values, np.ndarray):
            values = values.tolist()
        kinds = set(map(type, values))
        self._all_integers &= kinds <= {int}
        index = self._index
        keys = values if kinds <= {str} else [str(value) for value in values]
        return np.fromiter((index.setdefault(key, len(index)) for key in keys), np.int64, len(keys))

    def finish(self) -> tuple[Labels, NDArray[np.int64] | None]:
        """The sorted labels, and for each provisional column its final one."""
        if not self._index:
            raise DataError(NO_LABEL, fix="check which field or column holds the labels")
        keys = sorted(self._index, key=int) if self._all_integers else sorted(self._index)
        order = np.fromiter((self._index[key] for key in keys), np.int64, len(keys))
        final = np.empty(len(keys), np.int64)
        final[order] = np.arange(len(keys))
        labels = Labels(Texts.of(keys))
        if any("\ud800" <= c <= "\udfff" for key in keys if not key.isascii() for c in key):
            labels.check_unique()  # what UTF-8 cannot hold was replaced, and two keys may have become one
        return labels, final


LabelSpace = ListedLabels | InferredLabels


def numbered(L: int, texts: Texts | None = None) -> Labels:
    """L labels whose keys are their numbers, from 0."""
    return Labels(decimal_keys(L), texts)


def decimal_keys(L: int, block: int = 1 << 20) -> Texts:
    """The numbers 0 … L − 1 in decimal, without a Python string for each."""
    keys = TextsBuilder()
    first, digits = 0, 1
    while first < L:
        last = min(first + block, 10**digits, L)  # numbers with as many digits
        numbers = np.arange(first, last, dtype=np.int64)
        octets = np.empty((last - first, digits), np.uint8)
        for place in range(digits):
            octets[:, digits - 1 - place] = numbers // 10**place % 10 + ord("0")
        keys.extend_utf8(octets.ravel(), np.full(last - first, digits, np.int64))
        first = last
        digits += first == 10**digits
    return keys.finish()
