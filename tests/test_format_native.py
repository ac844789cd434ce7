"""The native corpus: opens in milliseconds, memory-mapped, equal to what was written; damaged folders are refused."""

import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from longtail.core.errors import DataError, ParameterError, StoreError
from longtail.core.labels import Labels, Propensity
from longtail.core.texts import Texts
from longtail.data import corpus as corpus_module
from longtail.data.corpus import Corpus
from longtail.data.dataset import Dataset
from longtail.data.formats import native
from longtail.data.read import detect, read
from longtail.data.write import write
from longtail.store import npy


def csr(N, width, a_row, rng):
    """About `a_row` entries per row, at random places."""
    columns = rng.integers(0, width, N * a_row)
    matrix = sp.csr_matrix(
        (np.full(len(columns), 0.25, np.float32), columns, np.arange(N + 1) * a_row), shape=(N, width)
    )
    matrix.sum_duplicates()
    matrix.data = np.minimum(matrix.data, 1)
    return matrix


def made(N=1000, L=300, features=False):
    rng = np.random.default_rng(0)
    x = csr(N, 50, 5, rng) if features else Texts.of([f"text {i} é" for i in rng.integers(0, N, N)])
    groups = Texts.of([str(i % 7) for i in range(N)])
    train = Dataset(x, csr(N, L, 3, rng), csr(N, L, 1, rng).astype(bool), groups)
    labels = Labels.of([f"k{i}" for i in range(L)], [f"label {i}" for i in range(L)], propensity=Propensity(0.6, 2.6))
    part = train.take(np.arange(15))
    return Corpus("made", train, labels, replace(part, ignore=None), part, {"licence": "free", "n": [1, None, 0.5]})


@pytest.mark.parametrize("features", [False, True])
def test_equal_to_what_was_written_and_mapped(tmp_path, features):
    corpus = made(features=features)
    write(corpus, tmp_path / "out", "native")
    assert detect(tmp_path / "out").name == "native"
    found = read(tmp_path / "out")
    assert found.digest == corpus.digest and found.about == corpus.about and found.name == "made"
    assert found.labels.counts.tolist() == corpus.labels.counts.tolist() and found.labels.points == 1000
    assert found.labels.propensity == Propensity(0.6, 2.6)
    arrays = [found.train.Y.data, found.train.Y.indices, found.labels.keys.data, found.train.ignore.indices]
    arrays += [found.train.features.data] if features else [found.train.texts.data]
    for array in arrays:
        assert not array.flags.writeable and not array.flags.owndata
    assert found.train.take(np.array([5, 3])).digest() == corpus.train.take(np.array([5, 3])).digest()
    assert found.with_validation(0).digest == corpus.with_validation(0).digest


def test_opening_reads_little(tmp_path, monkeypatch):
    corpus = made(200_000, 20_000)
    write(corpus, tmp_path / "out", "native")
    monkeypatch.setattr(native, "VERIFIED", 1 << 20)
    hashed = []
    check_sum = npy.check_sum

    def count(path, entry):
        hashed.append(entry["bytes"])
        check_sum(path, entry)

    def never(*_):
        raise AssertionError("hashed or counted on opening")

    monkeypatch.setattr(npy, "check_sum", count)
    monkeypatch.setattr(Texts, "digest", never)
    monkeypatch.setattr(Labels, "_index", property(never))
    monkeypatch.setattr(corpus_module.Dataset, "label_counts", never)
    taken = []
    for _ in range(5):
        hashed.clear()
        start = time.perf_counter()
        read(tmp_path / "out")
        taken.append(time.perf_counter() - start)
        sizes = sorted(entry["bytes"] for entry in manifest(tmp_path / "out")["arrays"].values())
        assert sorted(hashed) == sizes[: len(hashed)]  # the smallest files, as far as they go
        assert sum(hashed) <= 1 << 20 < sum(sizes[: len(hashed) + 1])
    assert min(taken) < 0.05  # milliseconds; reading all of it takes many times that


def test_subsets_keep_the_counts_of_the_original(tmp_path):
    part = made().with_validation(3)
    part = replace(part, dev=part.train.take(np.arange(9)), test=None)
    part = replace(part, labels=part.labels.remove(["k3"]))
    write(part, tmp_path / "out", "native")
    found = read(tmp_path / "out")
    assert found.labels.points == 1000 and found.labels.counts.tolist() == made().labels.counts.tolist()
    assert found.labels.removed.nonzero()[0].tolist() == [3] and found.test is None and len(found.dev) == 9


def manifest(folder):
    return json.loads((folder / native.MANIFEST).read_text())


@pytest.mark.parametrize("damage", ["array", "short", "manifest", "field", "part", "labels"])
def test_damaged_folders_are_refused(tmp_path, damage):
    folder = tmp_path / "out"
    write(made(20, 5), folder, "native")
    told = manifest(folder)
    data = folder / told["generation"]
    if damage == "array":
        (data / told["arrays"]["train.Y.indices"]["file"]).unlink()
    elif damage == "short":
        path = data / told["arrays"]["train.texts.data"]["file"]
        path.write_bytes(path.read_bytes()[:-1])
    elif damage == "manifest":
        (folder / native.MANIFEST).write_text("{")
    else:
        if damage == "field":
            del told["about"]
        elif damage == "part":
            told["parts"].append("more")
        else:
            told["labels"]["count"] = 4
        (folder / native.MANIFEST).write_text(json.dumps(told))
    with pytest.raises(StoreError) as caught:
        read(folder)
    assert str(folder) in str(caught.value) or "labels" in str(caught.value)


def test_a_model_folder_is_not_a_corpus(tmp_path):
    write(made(20, 5), tmp_path / "out", "native")
    told = manifest(tmp_path / "out") | {"format": "longtail-model"}
    (tmp_path / "out" / native.MANIFEST).write_text(json.dumps(told))
    with pytest.raises(StoreError, match="'longtail-model', but should be in format 'longtail-corpus'"):
        read(tmp_path / "out")
    with pytest.raises(StoreError, match="no corpus in it"):
        (tmp_path / "empty").mkdir()
        read(tmp_path / "empty", format="native")
    with pytest.raises(DataError, match="no such file or folder"):
        read(tmp_path / "nowhere", format="native")


def test_the_manual_names_the_manifest():
    manual = (Path(__file__).parent.parent / "docs" / "format.md").read_text(encoding="utf-8")
    assert f"| corpus | `{native.MANIFEST}` | `{native.KIND}` |" in manual


def test_named_fields_are_refused(tmp_path):
    write(made(20, 5), tmp_path / "out", "native")
    with pytest.raises(ParameterError, match="the native format has no named fields: leave --group-by 'src' out"):
        read(tmp_path / "out", group_by="src")
