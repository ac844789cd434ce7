"""Hugging Face folders: real ones (made by tests/fixtures/huggingface/make.py), and damaged ones."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from longtail.core.errors import DataError
from longtail.data.read import detect, read

FIXTURES = Path(__file__).parent / "fixtures" / "huggingface"


def test_splits_and_class_names() -> None:
    assert detect(FIXTURES / "splits").name == "huggingface"
    corpus = read(FIXTURES / "splits")
    assert list(corpus.labels.keys) == ["fruit", "vegetable", "tool"]  # the order of the classes
    assert list(corpus.train.texts) == ["an apple", "a carrot", "a tomato, käärme 🍅", "a stone", "a rake"]
    assert corpus.train.Y.toarray().tolist() == [[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 0], [0, 0, 1]]
    assert corpus.dev is not None and list(corpus.dev.texts) == ["a pear"]
    assert corpus.test is not None and corpus.test.Y.toarray().tolist() == [[0, 1, 0], [1, 0, 1]]


def test_single_split_in_shards() -> None:
    corpus = read(FIXTURES / "single")
    assert list(corpus.train.texts) == ["up", "down", "left", "right"]
    assert list(corpus.labels.keys) == ["horizontal", "vertical"]
    assert corpus.train.Y.indices.tolist() == [1, 1, 0, 0]
    one = read(FIXTURES / "splits" / "train")
    assert len(one.train) == 5 and one.dev is None


def test_a_class_that_is_not_known(caplog: pytest.LogCaptureFixture) -> None:
    corpus = read(FIXTURES / "classes")
    assert list(corpus.labels.keys) == ["neg", "pos"]
    assert corpus.train.Y.toarray().tolist() == [[1, 0], [0, 1], [0, 0]]
    assert "a point without labels was kept: 1 time(s), the first in classes, line 3" in caplog.text


def test_group_and_columns() -> None:
    corpus = read(FIXTURES / "splits", group_by="id")
    assert list(corpus.train.groups or []) == ["0", "1", "2", "3", "4"]
    with pytest.raises(DataError, match="no column 'body'") as caught:
        read(FIXTURES / "splits", text="body")
    assert caught.value.found == ["id", "text", "labels"]
    with pytest.raises(DataError, match="column 'id' must be text"):
        read(FIXTURES / "splits", text="id")


def save(folder: Path, table: pa.Table, features: dict[str, Any]) -> Path:
    """A split as `save_to_disk` lays it out."""
    folder.mkdir(parents=True)
    with (
        pa.OSFile(str(folder / "data-00000-of-00001.arrow"), "wb") as sink,
        pa.ipc.new_stream(sink, table.schema) as out,
    ):
        out.write_table(table, max_chunksize=2)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}))
    (folder / "dataset_info.json").write_text(json.dumps({"features": features}))
    return folder


CLASSES = {"names": ["x", "y"], "_type": "ClassLabel"}


@pytest.mark.parametrize(
    "feature",
    [{"feature": CLASSES, "_type": "Sequence", "length": -1}, [CLASSES], {"feature": CLASSES, "_type": "List"}],
)
def test_lists_of_classes_as_all_versions_write_them(tmp_path: Path, feature: Any) -> None:
    table = pa.table({"text": ["a", "b", "c"], "labels": [[0], [1, 0], []]})
    corpus = read(save(tmp_path / "set", table, {"text": {"_type": "Value"}, "labels": feature}))
    assert list(corpus.labels.keys) == ["x", "y"]
    assert corpus.train.Y.toarray().tolist() == [[1, 0], [1, 1], [0, 0]]


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view()])
def test_kinds_of_strings_and_inferred_integers(tmp_path: Path, kind: Any) -> None:
    table = pa.table({"text": pa.array(["a", "bé", "c"], kind), "label": [12, 3, 12]})
    corpus = read(save(tmp_path / "set", table, {}))
    assert list(corpus.train.texts) == ["a", "bé", "c"]
    assert list(corpus.labels.keys) == ["3", "12"]


def test_class_out_of_range(tmp_path: Path) -> None:
    table = pa.table({"text": ["a", "b", "c"], "labels": [[0], [1, 2], [1]]})
    folder = save(tmp_path / "set", table, {"labels": {"feature": CLASSES, "_type": "List"}})
    with pytest.raises(DataError, match="outside 0 … 1") as caught:
        read(folder)
    assert (caught.value.where, caught.value.line, caught.value.found) == (folder, 2, 2)
    assert list(read(folder, on_bad_line="skip").train.texts) == ["a", "c"]


def test_splits_that_disagree_or_are_missing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = pa.table({"text": ["a", "b"], "label": [0, 1]})
    for split, names in (("train", ["x", "y"]), ("test", ["y", "x"])):
        save(tmp_path / split, table, {"label": {"names": names, "_type": "ClassLabel"}})
    listing = tmp_path / "dataset_dict.json"
    listing.write_text('{"splits": ["train", "test"]}')
    with pytest.raises(DataError, match="train and test name the classes"):
        read(tmp_path)
    caplog.set_level("INFO", "longtail")
    listing.write_text('{"splits": ["train", "unsupervised"]}')
    assert len(read(tmp_path).train) == 2
    assert "not read: the split(s) unsupervised" in caplog.text
    listing.write_text('{"splits": ["test"]}')
    with pytest.raises(DataError, match="no split 'train'") as caught:
        read(tmp_path)
    assert caught.value.found == ["test"]


def damage(folder: Path, how: str) -> None:
    data, state = folder / "data-00000-of-00001.arrow", folder / "state.json"
    if how == "truncated":
        data.write_bytes(data.read_bytes()[:-300])
    elif how == "foreign":
        data.write_bytes(b"not arrow at all, just some text")
    elif how == "empty":
        data.write_bytes(b"")
    elif how == "missing":
        data.unlink()
    elif how == "bad json":
        state.write_text('{"_data_files": ')
    elif how == "no files":
        state.write_text('{"_data_files": []}')
    elif how == "outside":
        state.write_text('{"_data_files": [{"filename": "../../other.arrow"}]}')
    elif how == "indices":
        state.write_text('{"_data_files": [{"filename": "x"}], "_indices_data_files": [{"filename": "i.arrow"}]}')
    elif how == "no state":
        state.unlink()


@pytest.mark.parametrize(
    ("how", "problem"),
    [
        ("truncated", "Arrow stream"),
        ("foreign", "Arrow stream"),
        ("empty", "Arrow stream"),
        ("missing", "missing"),
        ("bad json", "not valid JSON"),
        ("no files", "must name the Arrow files"),
        ("outside", "must name the Arrow files"),
        ("indices", "flatten_indices"),
        ("no state", "cannot be opened"),
    ],
)
def test_damaged_folders(tmp_path: Path, how: str, problem: str) -> None:
    shutil.copytree(FIXTURES / "splits", tmp_path / "splits")
    damage(tmp_path / "splits" / "train", how)
    with pytest.raises(DataError, match=problem) as caught:
        read(tmp_path / "splits")
    assert Path(caught.value.where or "").parent == tmp_path / "splits" / "train"
