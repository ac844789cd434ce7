"""Static vectors distilled from a tiny random encoder, and from the installed one."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from test_subwords import PIECES, number, tokenizer_file

from longtail.core.errors import DataError, MissingExtraError, ParameterError
from longtail.core.texts import Texts
from longtail.encoders import distil, source
from longtail.encoders.distil import principal, static_vectors, vectors_of
from longtail.encoders.subwords import Subwords
from longtail.encoders.tfidf import Tfidf, TfidfParameters
from longtail.encoders.words import Words

WIDTH = 8


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random BERT of one layer with its tokenizer."""
    import torch
    from transformers import BertConfig, BertModel

    path = tmp_path_factory.mktemp("encoder")
    tokenizer_file(path)
    torch.manual_seed(0)
    sizes = {"hidden_size": WIDTH, "num_attention_heads": 2, "intermediate_size": 16, "num_hidden_layers": 1}
    BertModel(BertConfig(vocab_size=len(PIECES), initializer_range=1.0, **sizes)).save_pretrained(path)
    return path


def test_against_the_encoder_itself(folder: Path) -> None:
    import torch
    from transformers import BertModel

    model = BertModel.from_pretrained(folder).eval()
    rows = []
    with torch.no_grad():
        for piece in range(len(PIECES)):
            ids = torch.tensor([[PIECES.index("[CLS]"), piece, PIECES.index("[SEP]")]])
            rows.append(model(input_ids=ids).last_hidden_state[0].mean(0).numpy())
    X = np.array(rows) - np.mean(rows, 0)
    static = static_vectors(folder, WIDTH)
    assert static.vectors.shape == (len(PIECES), WIDTH) and static.vectors.dtype == np.float32
    scale = np.sqrt((X**2).sum(1).mean())  # all components: a rotation, so that products stay
    assert np.allclose(static.vectors @ static.vectors.T, X @ X.T / scale**2, atol=1e-4)
    assert static.about == {"source": folder.name, "dimensions": WIDTH}


def test_a_folder_of_ready_made_vectors(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    tokenizer_file(tmp_path)
    made = np.random.default_rng(0).normal(size=(len(PIECES), 6)).astype(np.float16)
    save_file({"embeddings": made, "weights": np.ones(len(PIECES), np.float32)}, tmp_path / "model.safetensors")
    static = static_vectors(tmp_path, 4)
    scale = np.sqrt((made[:, :4].astype(np.float64) ** 2).sum(1).mean())
    assert np.allclose(static.vectors, made[:, :4] / scale, rtol=1e-5)
    assert static.about == {"source": tmp_path.name, "dimensions": 4}
    save_file({"embeddings": made[1:]}, tmp_path / "model.safetensors")
    with pytest.raises(DataError, match=f"{len(PIECES) - 1} vectors, but the tokenizer has {len(PIECES)} pieces"):
        static_vectors(tmp_path, 4)
    (tmp_path / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(DataError, match="not a safetensors file"):
        static_vectors(tmp_path, 4)


def test_fewer_dimensions_are_the_first_ones(folder: Path) -> None:
    whole, few = static_vectors(folder, WIDTH).vectors, static_vectors(folder, 3).vectors
    assert np.isclose((few**2).sum(1).mean(), 1, atol=1e-5)
    ratio = np.linalg.norm(whole[:, :3]) / np.linalg.norm(few)
    assert np.allclose(few * ratio, whole[:, :3], atol=1e-5)
    for wrong in (0, WIDTH + 1):
        with pytest.raises(ParameterError, match=f"dimensions must be 1 to {WIDTH}.*but is {wrong}"):
            static_vectors(folder, wrong)


def test_principal_components() -> None:
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(200, 5)) * [1, 5, 2, 4, 3] + 7).astype(np.float32)
    found = principal(X)
    covariance = np.cov(found.T)
    assert np.allclose(covariance, np.diag(np.diag(covariance)), atol=1e-3)
    assert (np.diff(np.diag(covariance)) < 0).all() and np.allclose(found.mean(0), 0, atol=1e-4)
    assert np.allclose(np.abs(principal(-X)), np.abs(found), atol=1e-4)


def test_kept_in_the_cache_by_weights(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGTAIL_CACHE", str(tmp_path / "cache"))
    first = static_vectors(folder, 4).vectors
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    with monkeypatch.context() as patch:
        patch.setattr(distil, "encoded", lambda *_: pytest.fail("not read from the cache"))
        assert np.array_equal(static_vectors(other, 4).vectors, first)
    weights = other / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4] + b"\x00\x00\x00\x40")
    called = []
    monkeypatch.setattr(distil, "encoded", lambda *_: called.append(1) or np.eye(6, 4, dtype=np.float32))
    static_vectors(other, 4)
    assert called


def test_vectors_of_readers(folder: Path) -> None:
    static = static_vectors(folder, 4)
    subwords, _ = Subwords.fit(Texts.of(["the cats"]), folder)
    table = vectors_of(subwords, static)
    assert table.shape == (len(subwords), 4) and not table[:2].any()
    assert np.array_equal(table[number("cat")], static.vectors[PIECES.index("cat")])
    texts = Texts.of(["cats dogs the 漢漢"])
    words = Words.fit(texts)
    found = dict(zip(words.terms, vectors_of(words, static)[2:], strict=True))
    assert np.allclose(found["the"], table[number("the")], atol=1e-6) and not found["漢"].any()
    # ##s is in two of the four terms, cat in one: it weighs less
    weights = np.log(5 / np.array([2, 3])) + 1
    weights /= np.linalg.norm(weights)
    assert np.allclose(found["cats"], weights @ table[[number("cat"), number("##s")]], atol=1e-5)
    tfidf, _ = Tfidf.fit(texts)
    assert vectors_of(tfidf, static).shape == (len(tfidf), 4)


def test_refusals(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    static = static_vectors(folder, 4)
    file = tokenizer_file(tmp_path)
    file.write_text(file.read_text() + "\n")
    other, _ = Subwords.fit(Texts.of(["cat"]), file)
    with pytest.raises(ParameterError, match="cut by another tokenizer"):
        vectors_of(other, static)
    hashed, _ = Tfidf.fit(Texts.of(["cat"]), TfidfParameters(hashing=8))
    with pytest.raises(ParameterError, match="leave out `hashing`"):
        vectors_of(hashed, static)
    with pytest.raises(DataError, match="no encoder weights in this folder"):
        static_vectors(tmp_path, 4)
    with monkeypatch.context() as patch:
        patch.setattr(source, "MODULE", "no_such_package")
        with pytest.raises(MissingExtraError, match=r"distilled from an encoder needs.*longtail\[weights\]"):
            static_vectors()
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match=r"distilled from an encoder needs.*longtail\[deep\]"):
        distil.encoded(source.encoder_files(folder, "x"))


def test_the_installed_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words that are close in meaning have vectors that are close."""
    pytest.importorskip(source.MODULE)
    files = source.encoder_files(None, "x")
    reader, _ = Subwords.fit(Texts.of(["cat dog piano"]))
    rows = reader.encode(Texts.of(["cat dog piano"]), 3)[0] - 2
    monkeypatch.setattr(distil, "pieces_of", lambda _: rows.tolist())
    found = distil.encoded(files)
    unit = found / np.linalg.norm(found, axis=1, keepdims=True)
    assert unit[0] @ unit[1] > unit[0] @ unit[2] + 0.1
