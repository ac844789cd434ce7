"""Sparse matrices from `.npz` files: whatever the file holds, the matrix is right or refused, and nothing crashes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from longtail.core.errors import DataError
from longtail.data.parse.npz import load_npz

LAYOUTS = ("csr", "csc", "bsr", "coo", "dia")


def matrix(layout: str) -> Any:
    dense = np.array([[0, 1.5, 0, 2], [0, 0, 0, 0], [3, 0, 0, 0], [0, 0.25, 4, 0]], np.float32)
    return sp.bsr_matrix(dense, blocksize=(2, 2)) if layout == "bsr" else sp.coo_matrix(dense).asformat(layout)


def parts(path: Path, layout: str) -> dict[str, Any]:
    sp.save_npz(path, matrix(layout))
    with np.load(path) as stored:
        return dict(stored)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_of_scipy_is_read(layout: str, tmp_path: Path) -> None:
    sp.save_npz(tmp_path / "x.npz", matrix(layout))
    found = load_npz(tmp_path / "x.npz")
    assert found.format == "csr" and found.dtype == np.float32
    np.testing.assert_array_equal(found.toarray(), matrix(layout).toarray())


@pytest.mark.parametrize(
    ("layout", "changed", "said"),
    [
        ("csc", {"indices": [0, 2**30, 3, 0, 0]}, "index number 1073741824"),
        ("csr", {"indices": [1, 3, -(10**6), 1, 2]}, "index number -1000000"),
        ("csr", {"indptr": [0, 2, 1, 3, 5]}, "do not rise"),
        ("csr", {"indptr": [0, 2, 2, 3, 2**30]}, "do not rise"),
        ("csr", {"indptr": [0, 2, 5]}, "3 row pointers for 4 rows"),
        ("csr", {"indptr": np.array([0, 2, 2, 3, 5.0])}, "row pointers"),
        ("csr", {"shape": [4, -4]}, "its shape is"),
        ("csr", {"shape": [2**40, 4]}, "its shape is"),
        ("bsr", {"indptr": [0, 2**30, 4]}, "do not rise"),
        ("bsr", {"indices": [0, 7, 0, 1]}, "index number 7"),
        ("bsr", {"shape": [3, 4]}, "blocks of shape"),
        ("coo", {"row": [0, 0, 2, 3, 4]}, "row number 4 of value 5"),
        ("coo", {"col": [1, 3, 0, 1]}, "5 values have 4 column numbers"),
        ("dia", {"offsets": [-(2**40), 0, 1, 2]}, "diagonal number"),
        ("csr", {"format": "lil"}, "save it as CSR"),
        ("csr", {"data": np.array(["a", "b", "c", "d", "e"])}, "its values are"),
    ],
)
def test_what_scipy_would_trust_is_refused(layout: str, changed: dict[str, Any], said: str, tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, **(parts(path, layout) | {name: np.asarray(value) for name, value in changed.items()}))
    with pytest.raises(DataError, match=said):
        load_npz(path)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), layout=st.sampled_from(LAYOUTS))
def test_any_arrays_are_read_right_or_refused(data: st.DataObject, layout: str, tmp_path: Path) -> None:
    """Arrays of any size and value under the names that scipy uses: what is read has every index in range."""
    path = tmp_path / "x.npz"
    stored = parts(path, layout)
    numbers = st.integers(-3, 6) | st.sampled_from([-(2**31), 2**31 - 1, 2**40, -1])
    for name in data.draw(st.sets(st.sampled_from(sorted(set(stored) - {"format"})), max_size=3)):
        if name == "data":
            stored[name] = np.ones(data.draw(st.lists(st.integers(0, 5), max_size=3)), np.float32)
        else:
            stored[name] = np.array(data.draw(st.lists(numbers, max_size=8)), data.draw(st.sampled_from(["i8", "f4"])))
    np.savez(path, **stored)
    try:
        found = load_npz(path)
    except DataError:
        return
    found.check_format(full_check=True)
    assert not found.nnz or (found.indices.min() >= 0 and found.indices.max() < found.shape[1])


def test_bytes_that_are_no_archive_are_refused(tmp_path: Path) -> None:
    sp.save_npz(tmp_path / "x.npz", matrix("csr"))
    whole = (tmp_path / "x.npz").read_bytes()
    for part in (b"", whole[:100], whole[:-30], b"PK" + whole[50:], whole[:40] + b"\xff" * 40 + whole[80:]):
        (tmp_path / "x.npz").write_bytes(part)
        with pytest.raises(DataError, match="cannot be read as a sparse matrix"):
            load_npz(tmp_path / "x.npz")
