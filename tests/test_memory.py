"""The memory of a model: lookups against their formula, points that come and go, the command line."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from corpora import topic_corpus

torch = pytest.importorskip("torch")
from training import SETTINGS  # noqa: E402

import longtail  # noqa: E402
from longtail.cli.main import main  # noqa: E402
from longtail.core.decision import CutOff, Decision  # noqa: E402
from longtail.core.errors import DataError, ParameterError  # noqa: E402
from longtail.core.run import Run  # noqa: E402
from longtail.data.parse.memory_points import read_memory_points  # noqa: E402
from longtail.search.memory import Lookup, Memory, keys_of  # noqa: E402

NEW = "zeppelin over the harbour"


@pytest.fixture(scope="module")
def model():
    recipe = longtail.recipe("unidec", **SETTINGS["unidec"], memory=True, memory_share=0.5, memory_temperature=0.1)
    return recipe.fit(topic_corpus(60), Run(device="cpu"))


def one_point(model, key):
    row = np.zeros((1, len(model.labels)), np.float32)
    row[0, model.labels.index(key)] = 1
    return sp.csr_matrix(row)


def test_a_lookup_is_its_formula():
    """p = softmax(q Kᵀ / τ) V, K = [labels; points], V = [λ I; (1 − λ) Y]."""
    rng = np.random.default_rng(0)
    L, M, B, d = 5, 7, 3, 4
    labels, points, queries = (rng.normal(size=(n, d)).astype(np.float32) for n in (L, M, B))
    Y = (rng.random((M, L)) < 0.4).astype(np.float32)
    lookup = Lookup(0.7, 0.3, M)
    memory = Memory(points, sp.csr_matrix(Y), keys_of(map(str, range(M))))
    order = np.argsort(-(queries @ labels.T), axis=1).astype(np.int32)
    scores = np.take_along_axis(queries @ labels.T, order, 1)
    found = memory.scores(order, scores, *memory.nearest(queries, M), lookup).toarray()
    weights = np.exp(queries @ np.concatenate([labels, points]).T / 0.3)
    weights /= weights.sum(1, keepdims=True)
    assert np.allclose(found, weights @ np.concatenate([0.7 * np.identity(L), 0.3 * Y]), atol=1e-5)


def test_a_lookup_without_labels_ranks_all_that_were_found():
    """λ = 0: only points vote; labels that no point has come last, but they are there."""
    memory = Memory(np.eye(3, dtype=np.float32), sp.csr_matrix(np.eye(3, 5, dtype=np.float32)), keys_of("abc"))
    labels = np.array([[4, 3, 0]], np.int32)
    scores = np.array([[0.9, 0.5, 0.1]], np.float32)
    found = memory.scores(labels, scores, *memory.nearest(np.eye(1, 3, dtype=np.float32), 2), Lookup(0.0, 0.1, 2))
    assert sorted(found.indices.tolist()) == [0, 1, 3, 4] and found.toarray()[0].argmax() == 0


def test_points_are_stored_as_labels_are(model):
    assert model.memory.storage == model.recipe.storage == "int8"
    rng = np.random.default_rng(1)
    points, queries = (rng.normal(size=(n, 16)).astype(np.float32) for n in (200, 3))
    Y, keys = sp.csr_matrix((200, 2), dtype=np.float32), keys_of(map(str, range(200)))
    plain, coded = (Memory(points, Y, keys, storage) for storage in ("float32", "int8"))
    assert coded.without(keys[:5])[0].with_points(points[:5], Y[:5], keys[:5]).of_labels(3).storage == "int8"
    assert coded._index.codes is not None
    for found, wanted in zip(coded.nearest(queries, 7), plain.nearest(queries, 7), strict=True):
        assert np.allclose(found, wanted, atol=1e-6)


def test_what_is_remembered_changes_what_is_found(model):
    before = model.predict([NEW], 3).keys()[0]
    other = next(key for key in model.labels.keys if key != before[0])
    corrected = model.remember(longtail.Texts.of([NEW]), one_point(model, other), ["ticket"])
    assert corrected.predict([NEW], 3).keys()[0][0] == other
    assert model.predict([NEW], 3).keys()[0] == before  # a model never changes
    again = corrected.remember(longtail.Texts.of([NEW]), one_point(model, before[0]), ["ticket"])
    assert len(again.memory) == len(corrected.memory)  # it took the place of the first
    assert again.predict([NEW], 1).keys()[0] == before[:1]
    back, count = again.forget(["ticket"])
    assert count == 1 and np.array_equal(back.predict([NEW], 3).indices, model.predict([NEW], 3).indices)


def test_the_first_points_of_a_model_count():
    model = longtail.recipe("unidec", **SETTINGS["unidec"]).fit(topic_corpus(60), Run(device="cpu"))
    assert model.memory is None
    texts = topic_corpus(60).train.x
    other = next(key for key in model.labels.keys if key != model.predict([NEW], 1).keys()[0][0])
    corrected = model.remember(longtail.Texts.of([NEW]), one_point(model, other))
    assert corrected.predict([NEW], 1).keys() == [[other]]
    far = [i for i, text in enumerate(texts) if "harbour" not in text]
    same = corrected.predict(texts, 1).indices[far] == model.predict(texts, 1).indices[far]
    assert len(far) > 20 and same.mean() > 0.9  # of texts that are not near to it


def test_what_fits_other_scores_is_left_out(model, caplog):
    model = model.changed_to(model.memory)
    model.decision = Decision(cut_off=CutOff("f1", 0.1, 3))
    taught = model.remember(longtail.Texts.of([NEW]), one_point(model, model.labels.keys[0]))
    assert taught.decision is model.decision  # one more point: scores are made as before
    assert model.changed_to(model.memory, model.lookup._replace(share=1.0)).decision is None
    assert "probabilities and the cut-off were fitted" in caplog.text


def test_copies_of_points_are_not_remembered():
    with pytest.raises(ParameterError, match="synonyms"):
        longtail.recipe("unidec", **SETTINGS["unidec"], memory=True, augment="synonyms")


def test_training_points_are_remembered_and_can_be_erased(model):
    corpus = topic_corpus(60)
    text = corpus.train.texts[0]
    assert len(model.memory) >= 30
    less, count = model.forget([text])
    assert count >= 1 and len(less.memory) == len(model.memory) - count
    assert not np.isin(keys_of([text]), less.memory.keys).any()


def test_removed_labels_are_not_voted_for(model):
    corpus = topic_corpus(60)
    gone = model.predict([corpus.train.texts[0]], 1).keys()[0][0]
    edited = model.edit_labels(model.labels.remove([gone]))
    assert gone not in edited.predict([corpus.train.texts[0]], 6).keys()[0]


def test_labels_can_be_added_to_a_model_with_a_memory(model, tmp_path):
    edited = model.edit_labels(model.labels.add(["airship"], ["zeppelin"]))
    taught = edited.remember(longtail.Texts.of([NEW]), one_point(edited, "airship"))
    assert taught.predict([NEW], 1).keys() == [["airship"]]
    taught.save(tmp_path / "model")
    again = longtail.load(tmp_path / "model")
    assert again.predict([NEW], 3).keys() == taught.predict([NEW], 3).keys()
    assert again.lookup == taught.lookup and len(again.memory) == len(taught.memory)


def test_the_validation_part_is_not_in_the_memory_that_is_weighed(monkeypatch):
    """While λ, τ and b are chosen, the memory holds the training part alone; afterwards all of train."""
    from longtail.dual import recipe as room

    seen = []
    plain = room.best_lookup
    monkeypatch.setattr(room, "best_lookup", lambda m, v, of: seen.append((m.memory.keys, v)) or plain(m, v, of))
    made = longtail.recipe("unidec", **SETTINGS["unidec"], memory=True)
    model = made.fit(topic_corpus(60), Run(device="cpu"))
    keys, validation = seen[0]
    others = set(topic_corpus(60).train.texts) - set(validation.texts)
    assert set(keys.tolist()) <= set(keys_of(others).tolist())
    assert len(model.memory) > len(keys)
    assert model.lookup == (model.recipe.memory_share, model.recipe.memory_temperature, model.recipe.memory_neighbours)


def test_a_text_without_known_words_is_near_to_nothing(model):
    ranking = model.predict(["qqqq", ""], 3)
    assert np.isfinite(ranking.scores).all() and (ranking.indices[0] == ranking.indices[1]).all()


def write_points(path: Path, *points):
    path.write_text("".join(json.dumps(point) + "\n" for point in points))
    return str(path)


def test_the_command(model, tmp_path, capsys):
    folder, key = str(tmp_path / "model"), list(model.labels.keys)[-1]
    model.save(folder)
    points = write_points(tmp_path / "points.jsonl", {"text": NEW, "labels": [key], "key": "t1"})
    assert main(["memory", "add", folder, points, "--share", "0.3"]) == 0
    changed = longtail.load(folder)
    assert changed.predict([NEW], 1).keys() == [[key]] and changed.lookup.share == 0.3
    assert main(["memory", "remove", folder, "t1"]) == 0
    assert len(longtail.load(folder).memory) == len(model.memory)
    assert main(["memory", "weigh", folder, "--share", "1"]) == 0
    assert longtail.load(folder).lookup.share == 1
    assert main(["memory", "add", folder, "--text", NEW, "--label", key]) == 0
    assert "no weight" in capsys.readouterr().err
    assert main(["memory", "remove", folder, "--text", NEW]) == 0
    assert main(["memory", "remove", folder, "unknown"]) == 0
    assert "nothing to do" in capsys.readouterr().err
    assert main(["memory", "weigh", folder, "--share", "3"]) != 0
    assert main(["memory", "weigh", folder, "--temperature", "nan"]) != 0
    assert main(["memory", "add", folder, "--text", NEW]) != 0
    assert "needs a label" in capsys.readouterr().err


def test_what_an_interrupted_removal_left_is_deleted(model, tmp_path):
    folder = tmp_path / "model"
    model.save(folder)
    left = folder / f"data-{'0' * 16}"
    left.mkdir()
    (left / "memory.keys.npy").write_bytes(b"a point")
    assert main(["memory", "remove", str(folder), "nobody"]) == 0
    assert not left.exists() and longtail.load(folder).memory is not None


def test_another_weight_is_another_generation(model, tmp_path):
    """So an edit that was made from the model before is refused, and does not undo the new weight."""
    folder = tmp_path / "model"
    model.save(folder)
    before = longtail.store.describe(folder)["generation"]
    assert main(["memory", "weigh", str(folder), "--share", "0.7"]) == 0
    with pytest.raises(longtail.LongtailError, match="in the meantime"):
        model.save(folder, replaces=before)
    assert longtail.load(folder).lookup.share == 0.7


def test_removed_labels_are_refused(model, tmp_path, capsys):
    folder, key = str(tmp_path / "model"), list(model.labels.keys)[-1]
    model.edit_labels(model.labels.remove([key])).save(folder)
    assert main(["memory", "add", folder, "--text", NEW, "--label", key]) != 0
    assert "was removed" in capsys.readouterr().err


def test_points_with_unknown_labels_are_refused_with_their_line(model, tmp_path):
    path = tmp_path / "points.jsonl"
    write_points(path, {"text": "a", "labels": []}, {"text": "b", "labels": ["no such label"]})
    with pytest.raises(DataError, match="no such label") as error:
        read_memory_points(path, model.labels)
    assert ":2" in str(error.value) or "line 2" in str(error.value)
    write_points(path, {"text": 3, "labels": []})
    with pytest.raises(DataError, match="a list of keys"):
        read_memory_points(path, model.labels)


def test_models_without_a_memory_refuse_by_name(tmp_path, capsys):
    longtail.fit(["a b", "c d"] * 10, [["x"], ["y"]] * 10, "popular").save(tmp_path / "model")
    assert main(["memory", "add", str(tmp_path / "model"), "--text", "a", "--label", "x"]) != 0
    assert "popular" in capsys.readouterr().err
