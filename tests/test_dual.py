"""The dual network: its loss against the spec's formulas, gradient caching, processes, and what its models do."""

import contextlib
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from corpora import topic_corpus

torch = pytest.importorskip("torch")

from test_contrast import pairs_of  # noqa: E402
from test_train_loop import launched  # noqa: E402
from training import BATCH, SETTINGS, StoppedError, fit, stop_at  # noqa: E402

import longtail  # noqa: E402
from longtail.core.errors import ParameterError, UnsupportedError  # noqa: E402
from longtail.core.run import Run  # noqa: E402
from longtail.dual.dual import CLF, DE, Contrast  # noqa: E402
from longtail.dual.heads import unit_rows  # noqa: E402
from longtail.dual.pool import Pool, whole_pool  # noqa: E402
from longtail.scoring.contrast import Decoupled, SupCon  # noqa: E402
from longtail.scoring.targets import Targets  # noqa: E402
from longtail.search.index import SearchSettings  # noqa: E402
from longtail.train.loop import Loop  # noqa: E402
from longtail.train.settings import LoopParameters  # noqa: E402
from longtail.train.step import GradCached, Plain  # noqa: E402


def learner_of(name, corpus, **changed):
    """An untrained network of a recipe, random numbers from one seed."""
    recipe = longtail.recipe(name, **{**SETTINGS[name], **changed})
    read = recipe.read(corpus.train, corpus.labels, Run())
    torch.manual_seed(0)
    return recipe.network(read, 3)


def opened(learner, **settings):
    """The loop of a network, its first phase built."""
    loop = Loop(learner, LoopParameters(batch=BATCH, min_steps=1, **settings), Run(device="cpu", seed=2, threads=1))
    loop.open(0)
    return loop


@pytest.fixture(scope="module")
def corpus():
    return topic_corpus(60, ignore=True)


def test_the_loss_of_unidec_is_that_of_the_spec(corpus):
    """λ·(½ q→l + ½ l→q) of Φ_D and (1 − λ)·the same of (Φ_C, Ψ), by loops over queries and the labels of the pool."""
    learner = learner_of("unidec", corpus, head_dropout=0.0, balance=0.3, forth=0.4, temperature=0.1)
    loop = opened(learner)
    learner.eval()
    points = torch.arange(3, 3 + BATCH)
    torch.manual_seed(1)
    _, (pool, _) = learner.batch(points)
    torch.manual_seed(1)
    loss, _ = learner(points, loop.phases[0], 0.0)
    labels = pool.labels.tolist()
    Y, ignore = corpus.train.Y.toarray() > 0, corpus.train.ignore.toarray()
    with torch.no_grad():
        text = learner.encoded(learner.tokens.value, points)
        label_text = learner.encoded(learner.label_tokens.value, pool.labels)
        psi = torch.nn.functional.normalize(learner.table.weight[pool.labels], dim=1)
        scores = [
            learner.head(DE)(text) @ learner.head(DE)(label_text).T / 0.1,
            learner.head(CLF)(text) @ psi.T / 0.1,
        ]

    def decoupled(s, true, counted):
        rows = []
        for i in range(len(s)):
            positives = [p for p in range(s.shape[1]) if true[i][p] and counted[i][p]]
            others = sum(np.exp(s[i, n]) for n in range(s.shape[1]) if not true[i][n] and counted[i][n])
            each = [-np.log(np.exp(s[i, p]) / (np.exp(s[i, p]) + others)) for p in positives]
            if each:
                rows.append(np.mean(each))
        return np.mean(rows)

    true = [[Y[i, label] for label in labels] for i in points.tolist()]
    counted = [[not ignore[i, label] for label in labels] for i in points.tolist()]
    total = 0.0
    for weight, s in zip((0.3, 0.7), scores, strict=True):
        s = s.double().numpy()
        total += weight * 0.4 * decoupled(s, true, counted)
        total += weight * 0.6 * decoupled(s.T, np.transpose(true), np.transpose(counted))
    assert loss.item() == pytest.approx(total, rel=1e-4)


@pytest.mark.parametrize("name", ["unidec", "depsl", "dexml", "ngame", "renee", "siamesexml"])
def test_cached_gradients_are_those_of_the_plain_step(name, corpus):
    found = []
    for step in (GradCached(3), GradCached(1000), Plain()):
        learner = learner_of(name, corpus, head_dropout=0.0)
        loop = opened(learner)
        loop.network.train()
        torch.manual_seed(7)
        figures = step(loop, np.arange(BATCH), loop.phases[0], 0.0)
        grads = {n: p.grad for n, p in learner.named_parameters() if p.grad is not None}
        for table_name, table in learner.tables().items():
            touched = table.gradient()
            if touched is not None:
                grads[table_name] = torch.zeros_like(table.weight).index_add_(0, *touched)
        found.append((figures["loss"], grads))
    wanted, of_plain = found[-1]
    for loss, grads in found[:-1]:
        assert loss == pytest.approx(wanted, rel=1e-5)
        assert grads.keys() == of_plain.keys()
        for parameter, grad in grads.items():
            torch.testing.assert_close(grad, of_plain[parameter], rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("name", ["unidec", "siamesexml", "ngame", "renee"])
def test_texts_are_encoded_in_chunks_if_asked_for(name, corpus):
    """Frozen encoders of second stages have no gradients to cache."""
    steps = [phase.step for phase in learner_of(name, corpus, chunk=5).phases]
    assert steps[0] == GradCached(5)
    own = {"head_dropout": 0.0, "dropout": 0.0, "epochs": 1, "lr": 1e-4}
    cached = fit(name, corpus, Run(device="cpu", threads=1), **own, chunk=5)
    assert np.isfinite(cached.vectors).all()
    if name == "unidec":  # rates are low enough that Adam does not enlarge rounding errors
        plain = fit(name, corpus, Run(device="cpu", threads=1), **own)
        np.testing.assert_allclose(cached.vectors, plain.vectors, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["unidec", "depsl", "dpr", "ngame", "siamesexml", "dexml", "renee"])
def test_a_batch_without_labels_is_survived(name, corpus):
    learner = learner_of(name, corpus, **({"negatives": 0} if name in ("unidec", "depsl", "siamesexml") else {}))
    learner.targets = Targets(sp.csr_matrix(corpus.train.Y.shape, dtype=np.float32))
    loop = opened(learner)
    figures = Plain()(loop, np.arange(BATCH), loop.phases[0], 0.0)
    assert np.isfinite(figures["loss"])
    grads = [p.grad for p in learner.parameters() if p.grad is not None]
    assert all(torch.isfinite(grad).all() for grad in grads)


@pytest.mark.parametrize("left_out", [True, False])
@pytest.mark.parametrize("loss", [SupCon(), Decoupled()])
def test_one_sampled_positive_is_the_formula_of_infonce(loss, left_out):
    """−log e^s_p / Σ_l e^s_l for the drawn label p; other true labels are negatives (DPR), or left out (DEXML)."""
    rng = np.random.default_rng(0)
    B, P = 4, 6
    Y = np.zeros((B, P))
    Y[[0, 0, 1, 2, 2, 3], [1, 4, 2, 0, 5, 3]] = 1
    drawn = np.array([4, 2, 0, 3])  # one true label of each query
    sampled = np.zeros((B, P))
    sampled[np.arange(B), drawn] = 1
    ignored = np.zeros((B, P))
    ignored[1, 3] = 1
    truth, one, out = (pairs_of(matrix) for matrix in (Y, sampled, ignored))
    pool = Pool(torch.arange(P), truth, one, out)
    queries, labels = (torch.from_numpy(rng.normal(size=(n, 3)).astype(np.float32)) for n in (B, P))
    found = Contrast(loss, 1.0, 1.0, 0.5, one_positive=True, others_left_out=left_out)(queries, labels, pool)
    s, total = (queries @ labels.T).numpy() / 0.5, 0.0
    for i, p in enumerate(drawn):
        counted = [n for n in range(P) if not ignored[i, n] and not (left_out and Y[i, n] and n != p)]
        total += -np.log(np.exp(s[i, p]) / sum(np.exp(s[i, n]) for n in counted)) / B
    assert found.item() == pytest.approx(total, rel=1e-5)


def test_a_text_without_known_tokens_has_no_huge_gradient():
    """Its vector is 0 at first, and the gradient of 0 / |0| must not spoil Adam's moments."""
    x = torch.zeros(2, 3)
    x[1] = torch.tensor([3.0, 0.0, 4.0])
    x.requires_grad_()
    rows = unit_rows(x)
    assert rows[0].tolist() == [0, 0, 0] and rows[1].tolist() == pytest.approx([0.6, 0, 0.8])
    (rows * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad.abs().max() <= 3
    whole = torch.nn.functional.normalize(x.detach()[1:].clone().requires_grad_(), dim=1)
    assert torch.equal(rows[1:], whole)


@pytest.mark.parametrize("name", ["unidec", "dexml", "renee"])
def test_low_precision_is_for_encoders_alone(name, corpus):
    model = fit(name, corpus, Run(device="cpu"), precision="bfloat16", epochs=1)
    assert np.isfinite(model.vectors).all()
    learner = learner_of(name, corpus)
    level = 1 if name == "renee" else 0
    D = learner.head(level).width
    rows, labels = torch.randn(BATCH, D), torch.randn(len(corpus.labels), D)
    pool = whole_pool(learner.targets.of(torch.arange(BATCH)), None, 1)[level]
    comparison = learner.comparisons[level]
    with torch.autocast("cpu", torch.bfloat16):
        low = comparison(rows, labels, pool)
    assert low.item() == pytest.approx(comparison(rows, labels, pool).item(), rel=1e-6)


def test_a_second_encoding_sees_the_same_dropout(corpus):
    """The gradient of a chunk belongs to the vectors that the loss was taken on."""
    learner = learner_of("depsl", corpus, dropout=0.5, head_dropout=0.0)
    loop = opened(learner)
    loop.network.train()
    seen = []
    plain = learner.encoded
    learner.encoded = lambda tokens, rows: seen.append(plain(tokens, rows)) or seen[-1]
    GradCached(4)(loop, np.arange(BATCH), loop.phases[0], 0.0)
    half = len(seen) // 2
    assert half >= 2
    for first, again in zip(seen[:half], seen[half:], strict=True):
        assert torch.equal(first, again)
        assert not first.requires_grad and again.requires_grad


@pytest.mark.parametrize("name", ["ngame", "siamesexml"])
@pytest.mark.parametrize("step", [Plain(), GradCached(3)])
def test_a_phase_that_freezes_the_encoder_encodes_texts_once(name, step, corpus, monkeypatch):
    """The second stages: the vectors of a step are those that the encoder gives its texts, without dropout."""
    learner = learner_of(name, corpus, dropout=0.5, head_dropout=0.0)
    loop = opened(learner)
    points = np.arange(5, 5 + BATCH)
    learner.begin(loop.phases[0])
    assert learner.kept is None
    loop.open(1)
    learner.begin(loop.phases[1])
    learner.eval()
    plain = learner.encoded(learner.tokens.value, torch.from_numpy(points))
    torch.testing.assert_close(learner.features(torch.from_numpy(points)), plain, rtol=1e-5, atol=1e-6)
    monkeypatch.setattr(learner.encoder, "forward", lambda tokens: pytest.fail("the encoder ran in a step"))
    assert np.isfinite(step(loop, points, loop.phases[1], 0.0)["loss"])
    assert learner.table.gradient() is not None


SCRIPT = """
import os, sys
import numpy as np
import torch
sys.path.insert(0, {tests!r})
from corpora import topic_corpus
from test_dual import learner_of
from longtail.core.run import Run
from longtail.train.loop import Loop
from longtail.train.settings import LoopParameters
learner = learner_of({name!r}, topic_corpus({points}, ignore=True), head_dropout=0.0, dropout=0.0)
loop = Loop(learner, LoopParameters(batch=16, min_steps=1), Run(device="cpu", seed=2, threads=1))
loop.train()
assert loop.accelerator.num_processes == int(os.environ.get("WORLD_SIZE", 1))
np.savez({out!r} + os.environ.get("RANK", ""), **{{n: t.numpy() for n, t in learner.state_dict().items()}})
if torch.distributed.is_initialized():
    torch.distributed.destroy_process_group()
"""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "points"), [("unidec", 64), ("unidec", 61), ("dexml", 64)])
def test_two_processes_train_the_network_of_one(name: str, points: int, tmp_path: Path) -> None:
    """The pool is that of both processes together: the same global batch gives the same network."""
    trained = []
    for count in (1, 2):
        out = str(tmp_path / f"of{count}-")
        launched(SCRIPT.format(tests=str(Path(__file__).parent), name=name, points=points, out=out), count)
        trained.append(dict(np.load(f"{out}{0 if count > 1 else ''}.npz")))
    assert trained[0].keys() == trained[1].keys()
    for part in trained[0]:
        np.testing.assert_allclose(trained[1][part], trained[0][part], rtol=1e-3, atol=1e-4, err_msg=part)


def test_mined_negatives_are_neither_true_nor_ignored(corpus):
    learner = learner_of("ance", corpus)
    opened(learner)
    mined = learner.reservoir.value.labels.numpy()
    known = (corpus.train.Y.toarray() > 0) | corpus.train.ignore.toarray()
    assert mined.shape == (60, 1) and (mined >= 0).all()
    assert not any(known[i, label] for i, row in enumerate(mined) for label in row)


def test_a_refresh_mines_again(corpus, monkeypatch):
    recipe = longtail.recipe("depsl", **{**SETTINGS["depsl"], "epochs": 5, "refresh": 2})
    mined = []
    plain = type(recipe).mined
    monkeypatch.setattr(type(recipe), "mined", lambda self, net: mined.append(net.done) or plain(self, net))
    recipe.train(corpus.train, corpus.labels, Run(device="cpu"))
    assert mined == [0.0, pytest.approx(0.4), pytest.approx(0.8)]


def test_ngames_clusters_double(corpus):
    learner = learner_of("ngame", corpus)
    recipe = longtail.recipe("ngame", **SETTINGS["ngame"])
    sizes = []
    for learner.done in (0.0, 0.05, 0.2, 0.7):
        sizes.append(60 / len(set(recipe.clustered(learner)["clusters"].tolist())))
    assert sizes[0] == 1 and sizes[1] == pytest.approx(2, abs=0.5)
    assert sizes == sorted(sizes) and sizes[-1] == 60  # 512 in a cluster: all of them


def test_a_training_that_stops_between_two_refreshes_goes_on_to_the_bit(tmp_path):
    """What was mined last is in the checkpoint: clusters and negatives are those of the interrupted training."""
    corpus = topic_corpus(60)
    whole = fit("unidec", corpus, Run(device="cpu", seed=5))
    with pytest.MonkeyPatch.context() as patch:
        before = stop_at(patch, 0, 10)  # 4 steps in an epoch: the refresh before epoch 2 is done, epoch 2 is not
        with pytest.raises(StoppedError):
            fit("unidec", corpus, Run(device="cpu", seed=5, folder=tmp_path / "run"))
    with pytest.MonkeyPatch.context() as patch:
        after = stop_at(patch, -1, -1)
        resumed = fit("unidec", corpus, Run(device="cpu", seed=5, folder=tmp_path / "run", resume=True))
    assert before[-1] == (0, 9) and after[0] == (0, 10)
    one, other = whole.state()[0], resumed.state()[0]
    assert all(np.array_equal(one[name], other[name]) for name in one)


@pytest.fixture(scope="module")
def model():
    return longtail.recipe("unidec", **{**SETTINGS["unidec"], "min_steps": 40}).fit(
        topic_corpus(200), Run(device="cpu")
    )


def test_the_three_ways_to_predict_are_their_formulas(model):
    texts = ["telescope planet comet", "guitar melody", "boat wind harbour"]
    vectors, d = model.encoder.vectors(model.reader.read(longtail.Texts.of(texts))), model.encoder.width
    both = [vectors[:, :d] @ model.vectors[:, :d].T, vectors[:, d:] @ model.vectors[:, d:].T]
    for share in (0.0, 0.3, 1.0):
        scores = (1 - share) * both[0] + share * both[1]
        ranking = model.ranked(model.reader.read(longtail.Texts.of(texts)), 6, share)
        for row, (labels, found) in enumerate(zip(ranking.indices, ranking.scores, strict=True)):
            assert np.allclose(found, scores[row, labels], atol=1e-5)
            assert np.allclose(found, np.sort(scores[row])[::-1], atol=1e-5)


def test_a_new_label_needs_no_training(model):
    labels = model.labels.add(["volcano"], ["lava crater eruption boat"])
    edited = model.edit_labels(labels)
    assert edited.vectors.shape[0] == len(model.labels) + 1
    alone = model.encoder.vectors(model.reader.read(longtail.Texts.of(["lava crater eruption boat"])))
    d = model.encoder.width
    assert np.allclose(edited.vectors[-1, :d], alone[0, :d], atol=1e-6)
    # the classifier: least squares from the labels' texts, written out
    seen = model.labels.counts > 0
    X = model.encoder.vectors(model.reader.read(model.labels.texts))[seen, d:].astype(np.float64)
    Y = model.vectors[seen, d:].astype(np.float64)
    pairs = np.array([(x - X.mean(0), y - Y.mean(0)) for x, y in zip(X, Y, strict=True)])
    a = np.vdot(pairs[:, 0], pairs[:, 1]) / np.vdot(pairs[:, 0], pairs[:, 0])
    assert a > 0
    assert np.allclose(edited.vectors[-1, d:], Y.mean(0) + a * (alone[0, d:] - X.mean(0)), atol=1e-5)
    assert "volcano" in edited.predict(["lava crater eruption boat"], 1).keys()[0]
    back = edited.edit_labels(edited.labels.remove(["volcano"]))
    assert "volcano" not in back.predict(["lava crater eruption boat"], 7).keys()[0]


def test_negatives_are_mined_by_the_search_that_was_asked_for(corpus, monkeypatch):
    from longtail.dual import parts

    asked, plain = [], parts.nearest_negatives

    def exactly(*args, settings):
        asked.append(settings)
        return plain(*args)

    monkeypatch.setattr(parts, "nearest_negatives", exactly)
    recipe = longtail.recipe("unidec", **SETTINGS["unidec"], index="approximate", probes=3)
    monkeypatch.setattr(SearchSettings, "check", lambda self: None)
    with contextlib.suppress(longtail.LongtailError):  # prediction needs a library that may not be installed
        recipe.fit(corpus, Run(device="cpu"))
    assert asked and {(found.index, found.probes) for found in asked} == {("approximate", 3)}


def test_a_missing_search_library_is_told_before_the_training(corpus, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    began = []
    monkeypatch.setattr(Loop, "train", lambda self: began.append(self))
    with pytest.raises(longtail.LongtailError, match=r"longtail\[ann\]"):
        fit("dpr", corpus, Run(device="cpu"), index="approximate")
    assert not began


def test_labels_added_again_score_as_trained_ones_do_on_average(model):
    # a classifier that is the text itself would score higher: see DualModel.like_labels
    labels, d = model.labels, model.encoder.width
    known = np.flatnonzero(labels.counts > 0)
    texts = [labels.texts[int(i)] for i in known]
    edited = model.edit_labels(labels.add([f"again-{i}" for i in known], texts))
    queries = model.encoder.vectors(model.reader.read(topic_corpus(200).train.texts))[:, d:]
    trained, added = queries @ model.vectors[known, d:].T, queries @ edited.vectors[len(labels) :, d:].T
    assert added.mean() == pytest.approx(trained.mean(), abs=1e-5)


def test_heads_are_compared_on_the_validation_part():
    model = longtail.recipe("unidec", **SETTINGS["unidec"]).fit(topic_corpus(2200), Run(device="cpu"))
    assert set(model.about["heads"]) == {"DE", "CLF", "both"}
    means = {name: scores["mean"] for name, scores in model.about["heads"].items()}
    assert means["both"] >= max(means["DE"], means["CLF"])
    assert model.recipe.share == model.share
    given = longtail.recipe("unidec", **SETTINGS["unidec"], share=0.25).fit(topic_corpus(2200), Run(device="cpu"))
    assert given.share == given.recipe.share == 0.25  # not chosen, but reported all the same
    assert given.about["heads"]["DE"] == model.about["heads"]["DE"] and "both" in given.about["heads"]


def test_approximate_search_is_saved_with_the_model(tmp_path):
    pytest.importorskip("faiss")
    recipe = longtail.recipe("depsl", **SETTINGS["depsl"], index="approximate")
    model = recipe.fit(topic_corpus(60), Run(device="cpu"))
    model.save(tmp_path / "model")
    again = longtail.load(tmp_path / "model")
    texts = ["telescope planet", "guitar melody"]
    assert again.predict(texts, 3).keys() == model.predict(texts, 3).keys()


# --- bad input


def test_labels_without_texts_are_refused():
    with pytest.raises(UnsupportedError, match="labels with texts"):
        longtail.fit(["a b", "c d"] * 10, [["x"], ["y"]] * 10, "unidec", **SETTINGS["unidec"])


def test_empty_label_texts_and_unknown_texts_are_survived(caplog):
    texts = ["boat wind", "guitar song", "?!", ""] * 10
    labels = [["sea"], ["music"], ["sea"], ["other"]] * 10
    described = {"sea": "boat", "music": "", "other": "?!"}
    model = longtail.fit(texts, labels, "unidec", label_texts=described, **SETTINGS["unidec"])
    ranking = model.predict(["zzz", "", "boat wind"], 3)
    assert np.isfinite(ranking.scores).all() and (ranking.indices >= 0).all()
    assert "2 label(s) have no known token in their text" in caplog.text and "'music'" in caplog.text
    d, silent = model.encoder.width, model.labels.indices(["music", "other"])
    assert (model.vectors[silent, :d] == 0).all() and (model.vectors[silent, d:] != 0).any()
    caplog.clear()
    edited = model.edit_labels(model.labels.add(["blank", "sail"], ["?!", "boat wind"]))
    assert "1 label(s)" in caplog.text and "'blank'" in caplog.text
    assert (edited.vectors[-2] == 0).all() and (edited.vectors[-1] != 0).any()
    for share in (0.0, 1.0):  # 0 is more than the scores of other labels, but a label without a vector is never found
        unlike = edited.with_settings(share=share)
        unlike.vectors = -np.abs(unlike.vectors)
        unlike.__dict__.pop("index", None)
        assert "blank" not in unlike.predict(["boat wind"], 5).keys()[0]


def test_more_mined_negatives_than_labels_are_survived():
    model = longtail.recipe("depsl", **SETTINGS["depsl"] | {"negatives": 50}).fit(topic_corpus(60), Run(device="cpu"))
    assert model.predict(["telescope planet"], 6).indices.shape == (1, 6)


def test_a_transformer_with_other_words_is_refused():
    with pytest.raises(ParameterError, match="backbone=static"):
        longtail.recipe("unidec", reader="words")


def test_a_folder_that_is_no_encoder_is_refused(tmp_path):
    (tmp_path / "readme.txt").write_text("nothing here")
    with pytest.raises(longtail.LongtailError, match=r"tokenizer\.json"):
        longtail.recipe("unidec", encoder=str(tmp_path)).fit(topic_corpus(60), Run(device="cpu"))
