"""A written corpus is read back unchanged, in every format; what a format cannot store is refused."""

import gzip
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import longtail.data.write as write_module
from longtail.core.errors import DataError, ParameterError, StoreError, UnsupportedError
from longtail.core.labels import Labels, Propensity
from longtail.core.texts import Texts
from longtail.data.corpus import Corpus
from longtail.data.dataset import Dataset
from longtail.data.read import detect, read
from longtail.data.write import write
from longtail.data.writers import files

STRINGS = st.one_of(
    st.text(max_size=10),
    st.sampled_from(
        ["", " ", "\n", "a\nb", "a\r\nb", "\r", '"', "\\", "\u2028", "\x85", "\x00", "\ufeff", "->", "𝄞 é"]
    ),
)
WEIGHTS = st.floats(min_value=0, max_value=1, exclude_min=True, width=32)
VALUES = st.floats(allow_nan=False, allow_infinity=False, width=32)


def csr(rows: list[dict[int, float]], width: int, dtype=np.float32) -> sp.csr_matrix:
    """A CSR matrix from one dict of columns per row."""
    indptr = np.cumsum([0, *map(len, rows)], dtype=np.int32)
    columns = np.array([c for row in rows for c in sorted(row)], np.int32)
    data = np.array([row[c] for row in rows for c in sorted(row)], dtype)
    return sp.csr_matrix((data, columns, indptr), shape=(len(rows), width))


@st.composite
def corpora(draw, features: bool = False) -> Corpus:
    """Any corpus with one to four points per part."""
    keys = draw(st.lists(STRINGS, min_size=1, max_size=5, unique=True))
    L = len(keys)
    texts = draw(st.none() | st.lists(STRINGS, min_size=L, max_size=L))
    weights = draw(st.sampled_from([st.just(1.0), WEIGHTS]))
    grouped = not features and draw(st.booleans())
    D = draw(st.integers(1, 5))
    about = draw(st.dictionaries(st.sampled_from(["licence", "kind", "name"]), st.text(max_size=5)))
    if grouped:
        about |= draw(st.sampled_from([{}, {"group": "src"}, {"group": "text"}, {"group": "title"}]))
    propensity = draw(st.sampled_from([Propensity(), Propensity(0.6, 2.6), Propensity(0.1, 1 / 3)]))

    def part() -> Dataset:
        N = draw(st.integers(1, 4))
        many = {"min_size": N, "max_size": N}
        columns = st.dictionaries(st.integers(0, L - 1), weights)
        pairs = st.dictionaries(st.integers(0, L - 1), st.just(True), max_size=2)
        if features:
            x = csr(draw(st.lists(st.dictionaries(st.integers(0, D - 1), VALUES), **many)), D)
        else:
            x = Texts.of(draw(st.lists(STRINGS, **many)))
        Y = csr(draw(st.lists(columns, **many)), L)
        ignore = csr(draw(st.lists(pairs, **many)), L, bool) if draw(st.booleans()) else None
        return Dataset(x, Y, ignore, Texts.of(draw(st.lists(STRINGS, **many))) if grouped else None)

    train, dev, test = part(), part() if draw(st.booleans()) else None, part() if draw(st.booleans()) else None
    labels = Labels.of(keys, texts, propensity=propensity)
    return Corpus(draw(st.text(min_size=1, max_size=8)), train, labels, dev, test, about)


def assert_same(found: Corpus, given: Corpus) -> None:
    assert found.labels.digest() == given.labels.digest()
    assert list(found.labels.keys) == list(given.labels.keys)
    assert found.labels.counts.tolist() == given.labels.counts.tolist() and found.labels.points == given.labels.points
    assert found.labels.propensity == given.labels.propensity
    assert found.name == given.name
    assert [part for part, _ in found.parts()] == [part for part, _ in given.parts()]
    for (part, a), (_, b) in zip(found.parts(), given.parts(), strict=True):
        assert a.digest() == b.digest(), part
        assert (a.ignore is None) == (b.ignore is None) and (a.groups is None) == (b.groups is None)
        assert a.Y.dtype == np.float32 and a.Y.toarray().tolist() == b.Y.toarray().tolist()
    assert found.digest == given.digest


def round_trip(tmp_path_factory, corpus: Corpus, to: str) -> Corpus:
    folder = tmp_path_factory.mktemp("corpus") / "out"
    write(corpus, folder, to)
    assert detect(folder).name == to
    found = read(folder)
    assert_same(found, corpus)
    assert [path.name for path in folder.parent.iterdir()] == ["out"]
    shutil.rmtree(folder.parent, ignore_errors=True)  # what is mapped stays readable
    return found


quick = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
TEXT_CORPUS = Corpus("c", Dataset(Texts.of(["a\n\x00\u2028"]), csr([{0: 0.1}], 1)), Labels.of(["k"]))


@quick
@given(corpus=corpora())
@example(corpus=TEXT_CORPUS)
def test_texts_as_json_lines(tmp_path_factory, corpus):
    round_trip(tmp_path_factory, corpus, "jsonl")


@quick
@given(corpus=corpora())
@example(corpus=TEXT_CORPUS)
def test_texts_in_the_format_of_the_repository(tmp_path_factory, corpus):
    round_trip(tmp_path_factory, corpus, "repository")


@quick
@given(corpus=corpora(features=True))
def test_features_in_the_format_of_the_repository(tmp_path_factory, corpus):
    found = round_trip(tmp_path_factory, corpus, "repository")
    assert (found.train.features != corpus.train.features).nnz == 0


@quick
@given(corpus=st.one_of(corpora(), corpora(features=True)))
def test_natively(tmp_path_factory, corpus):
    found = round_trip(tmp_path_factory, corpus, "native")
    assert found.about == corpus.about


@pytest.fixture
def corpus() -> Corpus:
    train = Dataset(Texts.of(["one", "two"]), csr([{0: 1, 2: 1}, {1: 1}], 3), groups=Texts.of(["g", "h"]))
    labels = Labels.of(["a", "b", "c"], ["A", "B", "C"], propensity=Propensity(0.6, 2.6))
    return Corpus("small", train, labels, test=train, about={"licence": "free", "group": "src"})


@pytest.fixture
def features() -> Corpus:
    train = Dataset(csr([{0: 0.5, 3: -2}, {}], 4), csr([{0: 1, 2: 1}, {}], 3))
    return Corpus("bow", train, Labels.of(["0", "1", "2"]), test=train)


def lines(path: Path) -> list[dict]:
    return [orjson.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def test_what_json_lines_look_like(tmp_path, corpus):
    write(corpus, tmp_path / "out")
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "corpus.json",
        "labels.jsonl.gz",
        "test.jsonl.gz",
        "train.jsonl.gz",
    ]
    assert lines(tmp_path / "out" / "train.jsonl.gz")[0] == {"text": "one", "labels": [0, 2], "src": "g"}
    assert lines(tmp_path / "out" / "labels.jsonl.gz")[1] == {"id": 1, "key": "b", "text": "B"}
    about = orjson.loads((tmp_path / "out" / "corpus.json").read_bytes())
    assert about == {"licence": "free", "group": "src", "name": "small", "propensity": {"A": 0.6, "B": 2.6}}


def test_weights_are_written_short_where_that_is_exact(tmp_path):
    odd = float(np.nextafter(np.float32(0.1), np.float32(1), dtype=np.float32))
    data = Dataset(Texts.of(["x"]), csr([{0: 0.1, 1: odd, 2: 1}], 3))
    write(Corpus("w", data, Labels.of(list("abc"))), tmp_path / "out")
    assert lines(tmp_path / "out" / "train.jsonl.gz")[0]["weights"] == [0.1, odd, 1.0]


def test_what_the_repository_s_files_look_like(tmp_path, corpus, features):
    ignore = csr([{1: True}, {}], 3, bool)
    write(replace(corpus, test=replace(corpus.test, ignore=ignore)), tmp_path / "c", "repository")
    assert lines(tmp_path / "c" / "trn.json.gz")[1] == {
        "uid": "1",
        "title": "two",
        "content": "",
        "target_ind": [1],
        "target_rel": [1.0],
        "src": "h",
    }
    assert lines(tmp_path / "c" / "lbl.json.gz")[0] == {"uid": "a", "title": "A", "content": ""}
    assert (tmp_path / "c" / "filter_labels_test.txt").read_text() == "0 1\n"
    assert not (tmp_path / "c" / "filter_labels_train.txt").exists()
    write(features, tmp_path / "a", "repository")
    assert (tmp_path / "a" / "train.txt").read_text() == "2 4 3\n0,2 0:0.5 3:-2\n\n"
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == ["corpus.json", "test.txt", "train.txt"]
    soft = replace(
        features, train=replace(features.train, Y=csr([{0: 0.25}, {1: 1}], 3)), labels=Labels.of(list("xyz"))
    )
    write(soft, tmp_path / "b", "repository")
    assert (tmp_path / "b" / "trn_X_Y.txt").read_text() == "2 3\n0:0.25\n1:1\n"
    assert (tmp_path / "b" / "trn_X_Xf.txt").read_text() == "2 4\n0:0.5 3:-2\n\n"
    assert lines(tmp_path / "b" / "lbl.json.gz") == [{"uid": "x"}, {"uid": "y"}, {"uid": "z"}]


def test_the_same_corpus_gives_the_same_bytes(tmp_path, corpus):
    for name in ("one", "two"):
        write(corpus, tmp_path / name)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


@pytest.mark.parametrize("to", ["jsonl", "repository", "native"])
def test_a_folder_that_is_not_empty_is_refused(tmp_path, corpus, features, to):
    out = tmp_path / "out"
    out.mkdir()
    write(corpus, out, to)  # an empty one is fine
    before = read(out).digest
    with pytest.raises(StoreError, match=r"out: is not empty \(it holds .*overwrite"):
        write(corpus, out, to)
    other = replace(corpus, train=corpus.train.take(np.array([1])), labels=Labels.of(list("abc")), name="other")
    write(other, out, "jsonl", overwrite=True)
    assert read(out).digest != before and read(out).name == "other"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_folder_without_a_corpus_is_never_overwritten(tmp_path, corpus):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter.txt").write_text("dear")
    with pytest.raises(StoreError, match=r"it is not a corpus \(it holds 'letter.txt'"):
        write(corpus, tmp_path / "home", overwrite=True)
    with pytest.raises(StoreError, match="is a file, not a folder"):
        write(corpus, tmp_path / "home" / "letter.txt")
    assert (tmp_path / "home" / "letter.txt").read_text() == "dear"


@pytest.mark.parametrize("to", ["jsonl", "repository", "native"])
@pytest.mark.parametrize("there", [False, True])
def test_a_failure_leaves_what_was_there(tmp_path, corpus, monkeypatch, to, there):
    out = tmp_path / "sub" / "out"
    if there:
        write(corpus, out)
    written = []

    def fail(path, chunks):
        written.append(path)
        if len(written) == 2:
            raise StoreError("disk full")
        return real(path, chunks)

    real = write_module.disk.write_file
    monkeypatch.setattr(write_module.disk, "write_file", fail)
    with pytest.raises(StoreError, match="disk full"):
        write(replace(corpus, name="other"), out, to, overwrite=there)
    monkeypatch.undo()
    assert len(written) == 2
    assert [path.name for path in out.parent.iterdir()] == (["out"] if there else [])
    if there:
        assert_same(read(out), corpus)


def test_overwriting_the_folder_a_corpus_is_mapped_from(tmp_path, corpus):
    write(corpus, tmp_path / "out", "native")
    mapped = read(tmp_path / "out")
    write(mapped, tmp_path / "out", "native", overwrite=True)
    assert_same(read(tmp_path / "out"), corpus)
    assert_same(mapped, corpus)


def test_features_as_json_lines_are_refused(tmp_path, features):
    with pytest.raises(UnsupportedError, match=r"JSON lines can only store texts.*--to repository.*--to native"):
        write(features, tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_an_unknown_format_is_refused(tmp_path, corpus):
    with pytest.raises(ParameterError, match=r"unknown format 'nativ'. Did you mean 'native'\?"):
        write(corpus, tmp_path / "out", "nativ")


def no_points(corpus: Corpus) -> Corpus:
    return replace(corpus, dev=corpus.train.take(np.array([], np.int64)))


def features_test(corpus: Corpus) -> Corpus:
    return replace(corpus, test=Dataset(csr([{}], 2), csr([{}], 3), groups=Texts.of(["g"])))


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda c: replace(c, train=c.train.take(np.array([0]))), "counts come from 2 points, but train has 1"),
        (lambda c: replace(c, labels=c.labels.remove(["a"])), "cannot store removed labels; found 1"),
        (no_points, "the dev part has no points"),
        (lambda c: replace(c, test=replace(c.test, groups=None)), "some parts have group keys, others none"),
        (features_test, "some parts have texts, others features"),
        (lambda c: replace(c, labels=replace(c.labels, keys=Texts.of(["a", "a", "b"]))), "contains a key twice"),
    ],
)
@pytest.mark.parametrize("to", ["jsonl", "repository"])
def test_what_text_formats_cannot_hold_is_refused(tmp_path, corpus, to, change, message):
    with pytest.raises(DataError, match=message):
        write(change(corpus), tmp_path / "out", to)
    assert not list(tmp_path.iterdir())


def test_native_holds_what_text_formats_cannot(tmp_path, corpus):
    part = no_points(replace(corpus, train=corpus.train.take(np.array([0])), labels=corpus.labels.remove(["b"])))
    write(part, tmp_path / "out", "native")
    found = read(tmp_path / "out")
    assert_same(found, part)
    assert found.labels.removed.tolist() == [False, True, False] and found.labels.points == 2


def test_features_with_groups_or_bad_values_are_refused(tmp_path, features):
    grouped = replace(features, train=replace(features.train, groups=Texts.of(["g", "h"])), test=None)
    with pytest.raises(DataError, match="cannot store group keys"):
        write(grouped, tmp_path / "out", "repository")
    infinite = replace(features, test=replace(features.test, x=csr([{0: np.inf}, {}], 4)))
    with pytest.raises(DataError, match="a feature in test is not finite"):
        write(infinite, tmp_path / "out", "repository")
    wider = replace(features, test=replace(features.test, x=csr([{}, {}], 5)))
    with pytest.raises(DataError, match="different numbers of features"):
        write(wider, tmp_path / "out", "repository")


@pytest.mark.parametrize("to", ["jsonl", "repository", "native"])
def test_a_group_field_that_no_point_has_is_not_named(tmp_path, corpus, to):
    bare = replace(corpus.train, groups=None)
    bare = replace(corpus, train=bare, test=bare)
    write(bare, tmp_path / "out", to)
    assert_same(read(tmp_path / "out"), bare)


def test_about_that_json_cannot_hold_is_refused(tmp_path, corpus):
    with pytest.raises(ParameterError, match="`about` may only contain JSON values"):
        write(replace(corpus, about={"what": object()}), tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_many_points(tmp_path):
    N, L = 60_000, 5_000
    rng = np.random.default_rng(0)
    Y = sp.csr_matrix((np.ones(4 * N, np.float32), rng.integers(0, L, 4 * N), np.arange(N + 1) * 4), shape=(N, L))
    Y.sum_duplicates()
    Y.data[:] = 1
    texts = Texts.of([f"package-{i}: a short description of it" for i in range(N)])
    many = Corpus("many", Dataset(texts, Y), Labels.of(map(str, range(L))))
    for to in ("jsonl", "repository", "native"):
        write(many, tmp_path / to, to)
        assert read(tmp_path / to).digest == many.digest


def test_chunks_of_points_meet(tmp_path, corpus, monkeypatch):
    monkeypatch.setattr(files, "ROWS", 3)
    N = 10
    data = Dataset(Texts.of(map(str, range(N))), csr([{i % 3: 0.5} for i in range(N)], 3))
    many = Corpus("many", data, Labels.of(list("abc")))
    for to in ("jsonl", "repository"):
        write(many, tmp_path / to, to)
        assert_same(read(tmp_path / to), many)
