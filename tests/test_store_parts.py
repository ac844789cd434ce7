"""Texts, sparse matrices and labels as arrays and back, through the disk."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from longtail.core.errors import StoreError
from longtail.core.labels import Labels, Propensity
from longtail.core.texts import Texts
from longtail.store.folder import open_folder, save_folder
from longtail.store.parts import pack_csr, pack_labels, pack_texts, unpack_csr, unpack_labels, unpack_texts

STRINGS = st.lists(st.text(max_size=8), max_size=12)


def through_disk(tmp_path_factory, arrays):
    folder = tmp_path_factory.mktemp("parts")
    save_folder(folder, "x.json", "longtail-x", {}, arrays, overwrite=False)
    return open_folder(folder, "x.json", "longtail-x")[1]


@given(strings=STRINGS, cut=st.tuples(st.integers(0, 12), st.integers(0, 12)))
def test_texts(tmp_path_factory, strings, cut):
    texts = Texts.of(strings)[slice(*cut)]
    arrays = pack_texts("t", texts)
    assert arrays["t.data"].nbytes == sum(len(s.encode("utf-8", "replace")) for s in texts)
    found = unpack_texts("t", through_disk(tmp_path_factory, arrays))
    assert found == texts and list(found) == list(texts) and found.digest() == texts.digest()


def test_texts_in_the_middle_of_a_buffer():
    whole = Texts.of(["left", "é", "", "kept", "right"])
    arrays = pack_texts("t", Texts(whole.data, whole.offsets[1:5]))
    assert bytes(arrays["t.data"]) == "ékept".encode() and arrays["t.offsets"].tolist() == [0, 2, 2, 6]
    assert list(unpack_texts("t", arrays)) == ["é", "", "kept"]


@given(data=st.data())
def test_csr(tmp_path_factory, data):
    rows, columns = data.draw(st.integers(0, 6)), data.draw(st.integers(1, 6))
    dense = np.array(data.draw(st.lists(st.integers(0, 3), min_size=rows * columns, max_size=rows * columns)))
    matrix = sp.csr_matrix(dense.reshape(rows, columns), dtype=data.draw(st.sampled_from([np.float32, bool, np.int64])))
    kinds = data.draw(st.sampled_from([(np.int32, np.int32), (np.int32, np.int64), (np.int64, np.int64)]))
    matrix.indices, matrix.indptr = matrix.indices.astype(kinds[0]), matrix.indptr.astype(kinds[1])
    found = unpack_csr("m", through_disk(tmp_path_factory, pack_csr("m", matrix)))
    assert found.dtype == matrix.dtype and found.shape == matrix.shape
    assert found.indices.dtype == found.indptr.dtype == (kinds[0] if kinds[0] == kinds[1] else np.int32)
    expected = matrix.toarray()
    assert np.array_equal(found.toarray(), expected)
    # it is a matrix like any other: what models do with it works
    assert np.array_equal((found @ found.T).toarray(), (matrix @ matrix.T).toarray())
    assert np.array_equal(found[::-1].toarray(), expected[::-1])
    assert np.array_equal(found.sum(0), matrix.sum(0))


def test_csr_stays_mapped(tmp_path):
    matrix = sp.random(50, 40, 0.2, format="csr", dtype=np.float32, random_state=0)
    save_folder(tmp_path / "f", "x.json", "longtail-x", {}, pack_csr("m", matrix), overwrite=False)
    _, arrays = open_folder(tmp_path / "f", "x.json", "longtail-x", verify=False)
    found = unpack_csr("m", arrays)
    for part in ("data", "indices", "indptr"):
        array = getattr(found, part)
        assert np.shares_memory(array, arrays[f"m.{part}"]) and not array.flags.writeable
    assert found.has_sorted_indices and found.has_canonical_format


def test_csr_remembers_that_it_is_not_sorted():
    matrix = sp.csr_matrix((np.ones(3, np.float32), np.array([2, 0, 0]), np.array([0, 3])), shape=(1, 3))
    found = unpack_csr("m", pack_csr("m", matrix))
    assert not found.has_sorted_indices and not found.has_canonical_format
    assert found.toarray().tolist() == [[2, 0, 1]]


def test_nothing_unpacks_to_none():
    assert pack_texts("t", None) == {} and unpack_texts("t", {}) is None
    assert pack_csr("m", None) == {} and unpack_csr("m", {}) is None


def test_refuses_parts_that_do_not_fit():
    arrays = pack_texts("t", Texts.of(["ab", "c"]))
    with pytest.raises(StoreError, match=r"'t\.offsets' is missing; the folder is damaged"):
        unpack_texts("t", {"t.data": arrays["t.data"]})
    with pytest.raises(StoreError, match="'t' do not describe texts: found uint8"):
        unpack_texts("t", arrays | {"t.data": arrays["t.data"][:2]})
    arrays = pack_csr("m", sp.eye(3, format="csr"))
    with pytest.raises(StoreError, match="'m' do not describe a sparse matrix"):
        unpack_csr("m", arrays | {"m.indices": arrays["m.indices"][:2]})


@given(
    keys=st.lists(st.text(max_size=6), unique=True, max_size=8),
    texts=st.booleans(),
    removed=st.booleans(),
    points=st.integers(0, 100),
)
def test_labels(tmp_path_factory, keys, texts, removed, points):
    labels = Labels(
        keys=Texts.of(keys),
        texts=Texts.of([key * 2 for key in keys]) if texts else None,
        counts=np.arange(len(keys)),
        points=points,
        propensity=Propensity(0.6, 2.6),
        removed=np.arange(len(keys)) % 2 == 0 if removed else None,
    )
    arrays, meta = pack_labels("labels", labels)
    found = unpack_labels("labels", through_disk(tmp_path_factory, arrays), meta)
    assert found.keys == labels.keys and found.texts == labels.texts
    assert np.array_equal(found.counts, labels.counts) and found.points == points
    assert np.array_equal(found.propensities, labels.propensities)
    assert (found.removed is None) == (not removed) and (not removed or np.array_equal(found.removed, labels.removed))


def test_refuses_labels_that_are_not_those_of_the_manifest():
    arrays, meta = pack_labels("labels", Labels.of(["a", "b"]))
    other, _ = pack_labels("labels", Labels.of(["a", "c"]))
    with pytest.raises(StoreError, match="differ from the manifest: 2 with digest"):
        unpack_labels("labels", other, meta)
    assert len(unpack_labels("labels", other, meta, check=False)) == 2
    with pytest.raises(StoreError, match="'labels' is damaged"):
        unpack_labels("labels", arrays, {"points": 3})
    with pytest.raises(StoreError, match="are missing; the folder is damaged"):
        unpack_labels("labels", {}, meta)
