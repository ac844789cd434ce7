"""Vectors of texts and labels: what they are, and the files that `longtail embed` writes."""

import io
import json
import sys

import numpy as np
import pytest
from corpora import topic_corpus

torch = pytest.importorskip("torch")
pytest.importorskip("pyarrow")

import pyarrow.parquet as pq  # noqa: E402
from training import SETTINGS  # noqa: E402

import longtail  # noqa: E402
from longtail.cli.main import main  # noqa: E402
from longtail.core.errors import ParameterError, UnsupportedError  # noqa: E402
from longtail.core.run import Run  # noqa: E402
from longtail.data.writers import vectors as files  # noqa: E402

TEXTS = ["boat wind harbour", "pawn knight", "oven flour and a guitar", "", "xyzzy"]


@pytest.fixture(scope="module")
def corpus():
    return topic_corpus(60)


@pytest.fixture(scope="module")
def unidec(corpus):
    return fitted("unidec", corpus, share=0.3)


@pytest.fixture(scope="module")
def depsl(corpus):
    return fitted("depsl", corpus)


@pytest.fixture(scope="module")
def folder(unidec, tmp_path_factory):
    path = tmp_path_factory.mktemp("embed") / "model"
    unidec.edit_labels(unidec.labels.remove(["music"])).save(path)
    return path


def fitted(name, corpus, **changed):
    return longtail.recipe(name, **{**SETTINGS[name], **changed}).fit(corpus, Run(device="cpu", seed=1, threads=1))


def best_by_product(model, texts, k):
    scores = model.embed(texts) @ model.label_embeddings().T
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(scores, order, axis=1)


# --- what the vectors are -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_inner_products_are_the_scores_of_the_model(corpus, share):
    model = fitted("unidec", corpus, share=share)
    texts = list(corpus.test.texts)
    ranking = model.predict(texts, 4)
    indices, scores = best_by_product(model, texts, 4)
    assert np.array_equal(indices, ranking.indices)
    np.testing.assert_allclose(scores, ranking.scores, atol=1e-6)
    assert model.embed(texts).shape[1] == (16 if 0 < share < 1 else 8)


def test_a_model_without_classifiers(depsl, corpus):
    texts = list(corpus.test.texts)
    assert np.array_equal(best_by_product(depsl, texts, 3)[0], depsl.predict(texts, 3).indices)
    assert np.array_equal(depsl.embed(texts, "de"), depsl.embed(texts))
    for head in ("clf", "both"):
        with pytest.raises(ParameterError, match="needs classifiers, which recipe 'depsl' does not have"):
            depsl.embed(texts, head)
        with pytest.raises(ParameterError, match="needs classifiers"):
            depsl.label_embeddings(head)


def test_a_memory_has_no_part_in_the_vectors(unidec, corpus, tmp_path, capsys):
    texts = list(corpus.test.texts)
    model = unidec.remember(corpus.train.texts, corpus.train.Y)
    assert np.array_equal(model.embed(texts), unidec.embed(texts))
    model.save(tmp_path / "m")
    assert embed(tmp_path / "m", "--labels", "--out", tmp_path / "l.parquet") == 0
    assert "warning: this model also looks up remembered points" in capsys.readouterr().err
    assert np.array_equal(pq.read_table(tmp_path / "l.parquet")["vector"].to_pylist(), unidec.vectors)


def test_heads(unidec):
    de, clf, both, own = (unidec.embed(TEXTS, head) for head in ("de", "clf", "both", None))
    assert np.array_equal(both, np.concatenate([de, clf], axis=1))
    np.testing.assert_allclose(own, np.concatenate([0.7 * de, 0.3 * clf], axis=1), rtol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(de[:3], axis=1), 1, rtol=1e-6)
    assert own.dtype == np.float32 and own.flags.c_contiguous
    labels = [unidec.label_embeddings(head) for head in ("de", "clf", "both", None)]
    assert [part.shape for part in labels] == [(6, 8), (6, 8), (6, 16), (6, 16)]
    assert np.array_equal(np.concatenate(labels[:2], axis=1), unidec.vectors)
    with pytest.raises(ParameterError, match="there is no head 'DE'. Did you mean 'de'?"):
        unidec.embed(TEXTS, "DE")


def test_no_texts_and_wrong_ones(unidec):
    assert unidec.embed([]).shape == (0, 16)
    with pytest.raises(ParameterError, match="wrap it in a list"):
        unidec.embed("a text")


def test_label_embeddings_cannot_be_changed(unidec):
    with pytest.raises(ValueError, match="read-only"):
        unidec.label_embeddings()[0, 0] = 1
    assert unidec.vectors.flags.writeable


def test_a_recipe_without_vectors_is_refused_by_name(corpus, tmp_path, capsys):
    model = longtail.recipe("popular").fit(corpus)
    for ask in (lambda: model.embed(["a text"]), model.label_embeddings):
        with pytest.raises(UnsupportedError, match="recipe 'popular' has no vectors.*unidec") as refused:
            ask()
        assert "xr-linear" not in str(refused.value)
    model.save(tmp_path / "m")
    assert main(["embed", str(tmp_path / "m"), "boat", "--out", str(tmp_path / "x.npy")]) == 1
    assert "recipe 'popular' has no vectors" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


# --- files ----------------------------------------------------------------------------------------------------------


def embed(*arguments):
    return main(["embed", *map(str, arguments), "--threads", "1"])


def error_of(capsys, code, *arguments):
    assert embed(*arguments) == code
    return capsys.readouterr().err


def test_texts_as_npy(unidec, folder, tmp_path):
    source, out = tmp_path / "texts.txt", tmp_path / "new" / "texts.npy"
    source.write_text("\n".join(TEXTS) + "\n")
    assert embed(folder, source, "one more", "--out", out) == 0
    found = np.load(out, mmap_mode="r")
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, unidec.embed([*TEXTS, "one more"]), rtol=1e-6)
    assert [path.name for path in out.parent.iterdir()] == ["texts.npy"]


@pytest.mark.parametrize("head", [None, "de", "clf", "both"])
def test_texts_as_parquet(unidec, folder, tmp_path, monkeypatch, head):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(TEXTS).encode())))
    out = tmp_path / "texts.parquet"
    assert embed(folder, "--out", out, "--with-text", *([] if head is None else ["--head", head])) == 0
    table = pq.read_table(out)
    assert table.column_names == ["row", "text", "vector"]
    assert table["row"].to_pylist() == list(range(5)) and table["text"].to_pylist() == TEXTS
    expected = unidec.embed(TEXTS, head)
    assert table.schema.field("vector").type.list_size == expected.shape[1]
    np.testing.assert_allclose(table["vector"].to_pylist(), expected, rtol=1e-6)


def test_texts_are_written_only_on_request(folder, tmp_path):
    assert embed(folder, "boat", "--out", tmp_path / "t.parquet") == 0
    assert pq.read_schema(tmp_path / "t.parquet").names == ["row", "vector"]


def test_labels_as_parquet(unidec, folder, tmp_path):
    out = tmp_path / "labels.parquet"
    assert embed(folder, "--labels", "--out", out) == 0
    table = pq.read_table(out)
    kept = [i for i, key in enumerate(unidec.labels.keys) if key != "music"]
    assert table.column_names == ["key", "text", "vector"]
    assert table["key"].to_pylist() == [unidec.labels.keys[i] for i in kept]
    assert table["text"].to_pylist() == [unidec.labels.texts[i] for i in kept]
    assert np.array_equal(np.array(table["vector"].to_pylist(), np.float32), unidec.vectors[kept])


def test_labels_as_npy_have_their_keys_beside(unidec, folder, tmp_path, capsys):
    assert embed(folder, "--labels", "--head", "de", "--out", tmp_path / "labels.npy") == 0
    keys = [json.loads(line)["key"] for line in (tmp_path / "labels.keys.jsonl").read_text().splitlines()]
    assert "music" not in keys and len(keys) == 5
    rows = [unidec.labels.index(key) for key in keys]
    assert np.array_equal(np.load(tmp_path / "labels.npy"), unidec.vectors[rows, :8])
    assert "labels.keys.jsonl; removed labels are in neither" in capsys.readouterr().err


def test_a_search_in_the_files_gives_what_predict_gives(folder, tmp_path, corpus):
    """The use that the files are for: labels in one, texts in another, top k by inner product."""
    source = tmp_path / "in.txt"
    source.write_text("\n".join(corpus.test.texts))
    assert embed(folder, source, "--out", tmp_path / "q.parquet") == 0
    assert embed(folder, "--labels", "--out", tmp_path / "l.parquet") == 0
    labels = pq.read_table(tmp_path / "l.parquet")
    queries = np.array(pq.read_table(tmp_path / "q.parquet")["vector"].to_pylist())
    scores = queries @ np.array(labels["vector"].to_pylist()).T
    found = [[labels["key"][i].as_py() for i in row] for row in np.argsort(-scores, axis=1)[:, :3].tolist()]
    assert found == longtail.load(folder).predict(list(corpus.test.texts), 3).keys()


@pytest.mark.parametrize("name", ["t.npy", "t.parquet"])
def test_many_batches_and_row_groups(folder, tmp_path, monkeypatch, name):
    monkeypatch.setattr("longtail.cli.embed.BATCH", 3)
    monkeypatch.setattr(files, "GROUP", 5)
    source = tmp_path / "in.txt"
    source.write_text("\n".join(f"boat wind {i}" for i in range(20)))
    assert embed(folder, source, "--out", tmp_path / name) == 0
    if name == "t.npy":
        assert np.load(tmp_path / name).shape == (20, 16)
        return
    file = pq.ParquetFile(tmp_path / name)
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [6, 6, 6, 2]
    assert file.read()["row"].to_pylist() == list(range(20))


@pytest.mark.parametrize("name", ["none.npy", "none.parquet"])
def test_no_texts_at_all(folder, tmp_path, monkeypatch, name):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert embed(folder, "--out", tmp_path / name) == 0
    if name.endswith("npy"):
        assert np.load(tmp_path / name).shape == (0, 16)
    else:
        assert pq.read_table(tmp_path / name).num_rows == 0


def test_existing_files_stay_without_overwrite(folder, tmp_path, capsys):
    out, keys = tmp_path / "labels.npy", tmp_path / "labels.keys.jsonl"
    keys.write_text("mine")
    assert "labels.keys.jsonl: already exists; use --overwrite" in error_of(capsys, 1, folder, "--labels", "--out", out)
    assert keys.read_text() == "mine" and not out.exists()
    out.write_text("mine")
    assert "labels.npy: already exists" in error_of(capsys, 1, folder, "boat", "--out", out)
    assert out.read_text() == "mine"
    assert embed(folder, "--labels", "--out", out, "--overwrite") == 0
    assert np.load(out).shape == (5, 16) and keys.read_text() != "mine"
    (tmp_path / "place.npy").mkdir()
    assert "is a folder" in error_of(capsys, 1, folder, "boat", "--out", tmp_path / "place.npy", "--overwrite")


@pytest.mark.parametrize("name", ["t.npy", "t.parquet"])
def test_a_failure_halfway_leaves_the_old_file_and_nothing_else(folder, tmp_path, monkeypatch, capsys, name):
    monkeypatch.setattr("longtail.cli.embed.BATCH", 2)
    monkeypatch.setattr(files, "GROUP", 2)
    out, source = tmp_path / name, tmp_path / "in.jsonl"
    out.write_text("old")
    source.write_text('{"text": "a"}\n{"text": "b"}\n{"text": "c"}\n{"body": "d"}\n')
    assert "in.jsonl, line 4" in error_of(capsys, 1, folder, source, "--out", out, "--overwrite")
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["in.jsonl", name])


def test_a_full_disk_is_named(tmp_path):
    class Full(io.BytesIO):
        name = str(tmp_path / "t.npy")

        def write(self, data):
            raise OSError(28, "No space left on device")

    file = files.NpyFile(io.BytesIO(), 2, {})
    file.file = Full()  # full only after the header
    with pytest.raises(longtail.LongtailError, match=r"t\.npy: cannot write this file: the disk is full"):
        file.add(np.zeros((1, 2), np.float32))


def test_wrong_usage(folder, tmp_path, capsys):
    assert "must end in .parquet or .npy; got t.csv" in error_of(capsys, 2, folder, "x", "--out", tmp_path / "t.csv")
    assert "leave out texts" in error_of(capsys, 2, folder, "boat", "--labels", "--out", tmp_path / "t.npy")
    assert "needs a file that ends in .parquet" in error_of(
        capsys, 2, folder, "boat", "--with-text", "--out", tmp_path / "t.npy"
    )
    for missing in (["--out", tmp_path / "t.npy", "--head", "dee"], []):
        with pytest.raises(SystemExit) as stop:
            embed(folder, "boat", *missing)
        assert stop.value.code == 2
    assert "required: --out" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_without_pyarrow_the_extra_is_named(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "longtail[tables]" in error_of(capsys, 1, folder, "boat", "--out", tmp_path / "t.parquet")
    assert embed(folder, "boat", "--out", tmp_path / "t.npy") == 0
    assert [path.name for path in tmp_path.iterdir()] == ["t.npy"]


def test_what_was_written_is_said(folder, tmp_path, capsys):
    assert embed(folder, "boat", "--literal", "--out", tmp_path / "t.npy") == 0
    assert "wrote 1 vector(s) of 16 dimensions" in capsys.readouterr().err
    assert embed(folder, "boat", "--literal", "--out", tmp_path / "u.npy", "--quiet") == 0
    assert not capsys.readouterr().err
