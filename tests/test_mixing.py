"""MixUp and Label-MixUp: word vectors, targets and ignored pairs of a batch, against written-out formulas."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from corpora import feature_corpus, topic_corpus

import longtail
import longtail.recipes
from longtail.augment import Augmentation, augment
from longtail.core.errors import ParameterError, UnsupportedError
from longtail.core.recipe import recipes
from longtail.core.run import Run
from longtail.metrics import evaluate

torch = pytest.importorskip("torch")
from longtail.cascade.cascade import Cascade  # noqa: E402
from longtail.cascade.mixing import LEAST, Mixing, one_of_each  # noqa: E402
from longtail.encoders.bag import BagEncoder, Bags  # noqa: E402
from longtail.encoders.inception import Inception  # noqa: E402
from longtail.encoders.sequence import SequenceEncoder, Sequences  # noqa: E402
from longtail.encoders.table import Table  # noqa: E402
from longtail.scoring.points import Points  # noqa: E402
from longtail.scoring.targets import Targets  # noqa: E402
from longtail.train.phase import Phase  # noqa: E402

N, L, V, T, D = 12, 7, 20, 6, 64
DEEP = ("astec", "decaf", "eclare", "inceptionxml", "inceptionxml-lf")
QUICK = {"dimension": 64, "min_steps": 60, "surrogate_epochs": 1, "epochs": 1, "detached": 0}


META, LABELS = 0, 1  # the levels


def random_csr(rng: np.random.Generator, shape: tuple[int, int], density: float) -> sp.csr_matrix:
    dense = (rng.random(shape) < density) * rng.random(shape).astype(np.float32)
    return sp.csr_matrix(dense, dtype=np.float32)


def network(kind: str, seed: int) -> Cascade:
    """Points of bags or of sequences; the last point has no label, and label 2 no text."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    Y = random_csr(rng, (N, L), 0.4).tolil()
    Y[N - 1] = 0
    Y = sp.csr_matrix(Y, dtype=np.float32)
    ignore = sp.csr_matrix((random_csr(rng, (N, L), 0.2) > 0) > (Y > 0), dtype=np.float32)
    encoder: Any
    if kind == "bag":
        texts = random_csr(rng, (L, V), 0.3).tolil()
        texts[2] = 0
        tokens, own = Bags.of(random_csr(rng, (N, V), 0.3)), Bags.of(sp.csr_matrix(texts, dtype=np.float32))
        known = own.ptr.diff() > 0
        encoder = BagEncoder(Table.random(V, D, 0.1), ("meta", "label"), "decaf", 0.0)
    else:
        lengths = rng.integers(1, T + 1, N + L)
        words = np.where(np.arange(T) < lengths[:, None], rng.integers(2, V, (N + L, T)), 0)
        words[N + 2] = 0
        tokens, own = (Sequences(torch.from_numpy(part)) for part in (words[:N], words[N:]))
        known = (own.words > 0).any(1)
        encoder = SequenceEncoder(Table.random(V, D, 0.1), Inception(D, T))
    own_rows = sp.diags(known.numpy().astype(np.float32)).tocsr()  # says which labels have a text
    own_rows.eliminate_zeros()
    points = Points(None, tokens, sp.csr_matrix((N, V)), Y, ignore, own, own_rows)  # type: ignore[arg-type]
    made = Cascade(points, encoder, [Phase("both", 1, (), (META, LABELS))])
    made.set_tree({"order": np.arange(L, dtype=np.int32), "level0": np.array([0, 3, 5, L])})
    return made


def vectors(made: Cascade, tokens: Any, row: int) -> Any:
    """The word vectors of one text, read word by word: (D,) of a bag, (T, D) of a sequence with 0 for no word."""
    E = made.encoder.E.weight.numpy()
    if isinstance(tokens, Bags):
        at = range(int(tokens.ptr[row]), int(tokens.ptr[row + 1]))
        return sum((float(tokens.weights[i]) * E[int(tokens.words[i])] for i in at), np.zeros(D))
    return np.stack([E[int(w)] if w > 0 else np.zeros(D) for w in tokens.words[row]])


def seen(embedded: Any) -> Any:
    """The network's input made from word vectors."""
    if len(embedded) == 1:
        return embedded[0].detach().numpy()
    return (embedded[0] * embedded[1].unsqueeze(2)).detach().numpy()


def mixed(made: Cascade, mixing: Mixing, points: Any, seed: int) -> tuple[Any, dict[int, Any], Any]:
    """The result of mixing these points; the seed is set before it draws."""
    truths = {t: made.targets(t).of(points) for t in (META, LABELS)}
    embedded = made.encoder.embed(made.tokens.value.take(points))
    ignored = {t: made.ignored(t, points) for t in (META, LABELS)}
    torch.manual_seed(seed)
    return mixing.apply(made, points, embedded, truths, ignored)


def drawn_share(alpha: float) -> float:
    return float(np.clip(float(torch.distributions.Beta(alpha, alpha).sample()), LEAST, 1 - LEAST))


def above(made: Cascade, row: Any) -> Any:
    """The targets of clusters: the largest of their labels'."""
    return np.array([row[0:3].max(), row[3:5].max(), row[5:].max()])


@pytest.mark.parametrize("kind", ["bag", "sequence"])
@pytest.mark.parametrize("seed", range(4))
def test_mixup_is_what_it_says(kind: str, seed: int) -> None:
    made, points = network(kind, seed), torch.tensor([3, 0, N - 1, 7, 5])
    embedded, truths, ignored = mixed(made, Mixing("mixup", 0.6), points, seed)
    torch.manual_seed(seed)
    share, partner = drawn_share(0.6), torch.randperm(len(points)).tolist()
    Y, hidden = made.data.Y.toarray(), made.data.ignore.toarray()
    for row, (a, b) in enumerate(zip(points.tolist(), points[partner].tolist(), strict=True)):
        expected = share * vectors(made, made.data.tokens, a) + (1 - share) * vectors(made, made.data.tokens, b)
        np.testing.assert_allclose(seen(embedded)[row], expected, atol=1e-5)
        np.testing.assert_allclose(truths[LABELS].dense()[row], share * Y[a] + (1 - share) * Y[b], atol=1e-6)
        clusters = share * above(made, Y[a]) + (1 - share) * above(made, Y[b])
        np.testing.assert_allclose(truths[META].dense()[row], clusters, atol=1e-6)
        assert np.array_equal(ignored[LABELS].dense()[row] > 0, (hidden[a] > 0) | (hidden[b] > 0))
        whole = [-above(made, -hidden[i]) > 0 for i in (a, b)]  # the least of a cluster's labels
        assert np.array_equal(ignored[META].dense()[row] > 0, whole[0] | whole[1])


@pytest.mark.parametrize("kind", ["bag", "sequence"])
@pytest.mark.parametrize("seed", range(4))
def test_label_mixup_is_what_it_says(kind: str, seed: int) -> None:
    made, points = network(kind, seed), torch.arange(N)
    embedded, truths, ignored = mixed(made, Mixing("label-mixup", 0.6), points, seed)
    torch.manual_seed(seed)
    share = drawn_share(0.6)
    drawn = one_of_each(made.targets(LABELS).of(points)).tolist()
    Y = made.data.Y.toarray()
    assert drawn[-1] == -1 and 2 in Y.nonzero()[1]
    for a, label in enumerate(drawn):
        assert label < 0 or Y[a, label] > 0
        own, text = vectors(made, made.data.tokens, a), vectors(made, made.data.label_tokens, label)
        apart = label < 0 or label == 2  # no label, or one without a text: as it was
        part = 1.0 if apart else share
        one = np.arange(L) == label
        np.testing.assert_allclose(seen(embedded)[a], part * own + (1 - part) * text, atol=1e-5)
        np.testing.assert_allclose(truths[LABELS].dense()[a], part * Y[a] + (1 - part) * one, atol=1e-6)
        clusters = part * above(made, Y[a]) + (1 - part) * above(made, one)
        np.testing.assert_allclose(truths[META].dense()[a], clusters, atol=1e-6)
    assert np.array_equal(ignored[LABELS].dense(), made.data.ignore.toarray())
    if kind == "sequence":  # no word is seen where neither has one
        words = made.data.tokens.words > 0
        assert torch.equal(embedded[1][-1], words[-1]) and bool((embedded[1] >= words).all())


def test_labels_are_drawn_evenly() -> None:
    truth = Targets(sp.csr_matrix(np.array([[1, 0, 1, 1], [0, 0, 0, 0], [0, 1, 0, 0]], np.float32))).of(torch.arange(3))
    torch.manual_seed(0)
    draws = torch.stack([one_of_each(truth) for _ in range(3000)])
    assert set(draws[:, 1].tolist()) == {-1} and set(draws[:, 2].tolist()) == {1}
    counts = torch.bincount(draws[:, 0], minlength=4).tolist()
    assert counts[1] == 0 and all(900 < counts[label] < 1100 for label in (0, 2, 3))


@pytest.mark.parametrize("method", ["mixup", "label-mixup"])
def test_a_batch_without_labels_and_the_smallest_alpha(method: Any) -> None:
    """What is true of one of the two points stays above 0, however unequal the shares."""
    made = network("bag", 0)
    for seed in range(5):
        _, truths, _ = mixed(made, Mixing(method, 1e-3), torch.tensor([N - 1]), seed)
        assert not len(truths[LABELS].rows)
        _, truths, _ = mixed(made, Mixing(method, 1e-3), torch.arange(N), seed)
        assert float(truths[LABELS].values.min()) > 0 and float(truths[LABELS].values.max()) <= 1 + 1e-6


@pytest.mark.parametrize("method", ["mixup", "label-mixup"])
@pytest.mark.parametrize("name", ["decaf", "inceptionxml"])
def test_recipes_learn_with_it(name: str, method: str, tmp_path: Any) -> None:
    corpus = topic_corpus(ignore=True)
    settings = {key: value for key, value in QUICK.items() if key in recipes[name].names()}
    plain = longtail.recipe(name, **settings).fit(corpus, Run(seed=1))
    model = longtail.recipe(name, augment=method, **settings).fit(corpus, Run(seed=1))
    assert corpus.test is not None
    assert evaluate(model.predict(corpus.test.x, 5), corpus.test.Y)["P@1"] >= 90
    losses = [m.about["training"][-1]["loss"] for m in (plain, model)]
    assert losses[0] != losses[1]
    model.save(tmp_path / "model")
    again = longtail.load(tmp_path / "model")
    assert again.recipe.changed()["augment"] == method
    assert np.array_equal(again.predict(corpus.test.x, 5).scores, model.predict(corpus.test.x, 5).scores)


@pytest.mark.parametrize("name", DEEP)
def test_all_deep_recipes_pass_it_on(name: str) -> None:
    made: Any = longtail.recipe(name, augment="mixup", **{"augment.mix": 0.7}, dimension=64)
    assert made.mixing() == Mixing("mixup", 0.7) and longtail.recipe(name).mixing() is None  # type: ignore[attr-defined]
    corpus = topic_corpus(60)
    prepared = made.read(corpus.train, corpus.labels, Run())
    assert made.network(prepared, 0).mixing == Mixing("mixup", 0.7)


def test_the_points_stay_as_they_are() -> None:
    corpus = topic_corpus(60)
    for method in ("mixup", "label-mixup"):
        assert augment(corpus.train, corpus.labels, Augmentation(method)) is corpus.train  # type: ignore[arg-type]


def test_recipes_without_a_network_say_which_have_one() -> None:
    mixing = [name for name in recipes if getattr(recipes[name], "mixes", False)]
    assert {*DEEP, "attentionxml"} <= set(mixing)
    able = ", ".join(mixing)
    for name in recipes:
        if name in mixing:
            longtail.recipe(name, augment="label-mixup")
            continue
        with pytest.raises(UnsupportedError, match=f"recipe '{name}' mixes no embeddings.*augment=.*for {able}"):
            longtail.recipe(name, augment="mixup")


def test_what_it_needs() -> None:
    bare = topic_corpus(label_text=False)
    with pytest.raises(UnsupportedError, match=r"'inceptionxml'.*label-mixup mixes training points with label texts"):
        longtail.recipe("inceptionxml", augment="label-mixup").fit(bare)
    with pytest.raises(UnsupportedError, match="needs texts"):
        longtail.recipe("inceptionxml", augment="mixup").fit(feature_corpus())
    with pytest.raises(ParameterError, match="mix must be above 0"):
        longtail.recipe("decaf", augment="mixup", **{"augment.mix": 0})
    with pytest.raises(ParameterError, match="augment=gandalf does not use mix"):
        longtail.recipe("decaf", augment="gandalf", **{"augment.mix": 0.3})
    with pytest.raises(ParameterError, match="augment=mixup does not use delta; it takes mix"):
        longtail.recipe("decaf", augment="mixup", **{"augment.delta": 0.3})
