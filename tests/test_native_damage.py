"""A native corpus with changed bytes: it can be used, or is refused with a message; no crash, and never "a bug"."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from corpora import feature_corpus, topic_corpus

from longtail.core.errors import StoreError
from longtail.core.texts import Texts
from longtail.data.formats import native
from longtail.data.read import read
from longtail.data.write import write

SCRIPT = Path(__file__).parent / "flip_bytes.py"
ALL, FEW = 1 << 24, 2000  # bytes to verify: all of so small a corpus; only what is smallest in one of any size


def written(folder: Path, kind: str) -> Path:
    """A small corpus with everything a corpus can have."""
    corpus = topic_corpus(60, ignore=True) if kind == "texts" else feature_corpus(60)
    groups = Texts.of([f"gré {i % 20}" for i in range(len(corpus.train))])
    assert corpus.test is not None
    dev, labels = corpus.test.take(np.arange(10)), corpus.labels.remove(["music"])
    write(replace(corpus, train=replace(corpus.train, groups=groups), dev=dev, labels=labels), folder, "native")
    return folder


@pytest.mark.parametrize(("kind", "verified"), [("texts", ALL), ("texts", FEW), ("features", FEW)])
def test_any_changed_byte_is_survived(tmp_path: Path, kind: str, verified: int) -> None:
    folder = written(tmp_path / "corpus", kind)
    arguments = [str(folder), str(tmp_path / "out"), "1", "3", str(verified)]
    environment = os.environ | {"LONGTAIL_THREADS": "1"}
    process = subprocess.run([sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, env=environment)
    told = [json.loads(line) for line in process.stdout.splitlines()]
    assert process.returncode == 0, (told[-1:], process.stderr[-2000:])  # −11 is a crash, at what was tried last
    tried = [one for one in told if "found" in one]
    files = sum(path.is_file() for path in folder.rglob("*"))
    assert len(tried) == 3 * files > 60
    for one in tried:
        for code, said in one["found"]:
            assert (code == 0 and not said) or (code == 1 and str(folder) in said), one
    if verified == ALL:  # no change goes unnoticed, but in what the manifest says of the data
        assert {code for one in tried if one["file"] != native.MANIFEST for code, _ in one["found"]} == {1}


def change(folder: Path, array: str, at: int, value: int) -> Path:
    """Put another value into an array of a corpus; returns its file."""
    manifest = json.loads((folder / native.MANIFEST).read_text())
    path = folder / manifest["generation"] / manifest["arrays"][array]["file"]
    content = np.load(path)
    content[at] = value
    np.save(path, content)
    return path


@pytest.mark.parametrize(
    ("array", "at", "value", "how"),
    [
        ("train.texts.offsets", 7, 10**6, "must increase from 0, but decreases"),
        ("train.texts.offsets", 7, -1, "must increase from 0, but decreases"),
        ("train.texts.offsets", 0, 1, "must increase from 0, but decreases"),
        ("train.groups.offsets", 3, 10**9, "must increase from 0, but decreases"),
        ("labels.keys.offsets", 3, 0, "must increase from 0, but decreases"),
        ("train.Y.indices", 5, 6, "a column is outside 0 … 5 .*found 6"),
        ("train.Y.indices", 5, -1, "a column is outside 0 … 5 .*found -1"),
        ("train.Y.indptr", 5, 10**6, "must increase from 0"),
        ("train.Y.data", 5, 2, "must be above 0 and at most 1 .*found 2.0"),
        ("test.ignore.indices", 0, 77, "a column is outside 0 … 5"),
        ("labels.counts", 0, -4, "must contain counts from 0 to 60"),
    ],
)
def test_what_points_elsewhere_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, array: str, at: int, value: int, how: str
) -> None:
    folder = written(tmp_path / "corpus", "texts")
    path = change(folder, array, at, value)
    with pytest.raises(StoreError, match="SHA-256") as caught:
        read(folder)
    assert str(path) in str(caught.value) and "restore it from a copy, or create it again" in str(caught.value)
    monkeypatch.setattr(native, "VERIFIED", 0)  # as in a corpus too large to be read on opening
    with pytest.raises(StoreError, match=how) as caught:
        read(folder)
    assert str(path) in str(caught.value) and "restore it from a copy, or create it again" in str(caught.value)


def test_bytes_that_are_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = written(tmp_path / "corpus", "texts")
    path = change(folder, "train.texts.data", 3, 0xFF)
    monkeypatch.setattr(native, "VERIFIED", FEW)
    corpus = read(folder)
    texts, labels = corpus.train.texts, replace(corpus.labels, removed=None)
    plain = replace(corpus, train=replace(corpus.train, groups=None), labels=labels)
    assert texts[5] == topic_corpus(60).train.texts[5]  # what is not damaged can be read
    for use in (
        lambda: texts[0],
        lambda: list(texts),
        lambda: list(texts[:3]),
        lambda: texts.take(np.array([1, 0]))[1],
        lambda: texts[np.arange(60) < 2][0],
        lambda: write(plain, tmp_path / "copy"),
    ):
        with pytest.raises(StoreError, match="holds b'\\\\xff', which is not text") as caught:
            use()
        assert str(path) in str(caught.value)
