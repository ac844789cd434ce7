"""Sub-word tokens: numbers, bags against their definition, saving, and where the tokenizer comes from."""

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("tokenizers")

import tokenizers

from longtail.core.errors import DataError, MissingExtraError, ParameterError, StoreError
from longtail.core.texts import Texts
from longtail.encoders import source
from longtail.encoders.subwords import Subwords

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat", "dog", "##s", "##fish", "the", "[", "]", "pad", "sep"]


def tokenizer_file(path: Path) -> Path:
    """A small WordPiece tokenizer with special tokens, padding and truncation, as encoders are saved with."""
    made = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({piece: i for i, piece in enumerate(PIECES)}, unk_token="[UNK]")
    )
    made.normalizer = tokenizers.normalizers.BertNormalizer()
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    made.add_special_tokens(PIECES[:4])
    made.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    made.enable_padding(length=8)
    made.enable_truncation(8)
    file = path / "tokenizer.json"
    made.save(str(file))
    return file


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tokenizer_file(tmp_path_factory.mktemp("tokenizer"))


def number(piece: str) -> int:
    return PIECES.index(piece) + 2


def test_numbers_padding_and_unknown(file: Path) -> None:
    reader, _ = Subwords.fit(Texts.of(["the cats"]), file)
    assert len(reader) == len(PIECES) + 2
    found = reader.encode(Texts.of(["The CATS, dogfish", "", "漢"]), 5)
    cats = [number("the"), number("cat"), number("##s"), 1, number("dog")]  # the comma is unknown; cut at five
    assert found.dtype == np.int32 and found.tolist() == [cats, [0] * 5, [1, 0, 0, 0, 0]]
    assert reader.encode(Texts.of([]), 4).shape == (0, 4)
    assert reader.names([0, 1, number("##fish")]) == ["", "", "##fish"]


def test_no_text_spells_a_special_token(file: Path) -> None:
    reader, counts = Subwords.fit(Texts.of(["[PAD] [SEP] cat"]), file)
    expected = ["[", "pad", "]", "[", "sep", "]", "cat"]
    assert reader.encode(Texts.of(["[PAD] [SEP] cat"]), 9).tolist() == [[number(p) for p in expected] + [0, 0]]
    assert counts[0, number("[")] == 2 and not counts[:, [number(piece) for piece in PIECES[:4]]].nnz


@given(st.lists(st.lists(st.sampled_from(["cat", "cats", "dog", "the", "zebra", "🙂"]), max_size=12), min_size=1))
def test_bags_against_the_definition(documents: list[list[str]]) -> None:
    file = test_bags_against_the_definition.file  # type: ignore[attr-defined]
    pieces = {"cat": ["cat"], "cats": ["cat", "##s"], "dog": ["dog"], "the": ["the"]}
    cut = [[piece for word in document for piece in pieces.get(word, [])] for document in documents]
    texts = Texts.of([" ".join(document) for document in documents])
    if not any(cut):
        with pytest.raises(DataError, match="no known token"):
            Subwords.fit(texts, file)
        return
    reader, counts = Subwords.fit(texts, file)
    df = Counter(piece for document in cut for piece in set(document))
    expected = np.zeros((len(documents), len(reader)))
    for row, document in enumerate(cut):
        for piece, count in Counter(document).items():
            idf = math.log((1 + len(documents)) / (1 + df[piece])) + 1
            expected[row, number(piece)] = (1 + math.log(count)) * idf
        expected[row] /= np.linalg.norm(expected[row]) or 1
    found = reader.bags(texts)
    assert found.dtype == np.float32 and np.allclose(found.toarray(), expected, atol=1e-6)
    assert np.array_equal(reader.weigh(counts).toarray(), found.toarray())


@pytest.fixture(autouse=True)
def _file_for_hypothesis(file: Path) -> None:
    test_bags_against_the_definition.file = file  # type: ignore[attr-defined]


def test_any_text_has_rows(file: Path) -> None:
    reader, _ = Subwords.fit(Texts.of(["the cat"]), file)
    strange = Texts.of(["\x00", "\ud800", "e\u0301", "x" * 1000, "🙂" * 40, " "])
    assert reader.encode(strange, 4).max() <= 1 and not reader.bags(strange).nnz


def test_saved_and_loaded(file: Path) -> None:
    texts = Texts.of(["the cats", "dogfish the the", "?"])
    reader, _ = Subwords.fit(texts, file)
    arrays, meta = reader.state()
    assert all(array.dtype.kind in "iu" for array in arrays.values())
    again = Subwords.from_state(arrays, meta)
    assert np.array_equal(again.encode(texts, 4), reader.encode(texts, 4)) and again.about == reader.about
    assert np.array_equal(again.bags(texts).toarray(), reader.bags(texts).toarray())
    with pytest.raises(StoreError, match="'subwords.file' is not in this folder"):
        Subwords.from_state({"subwords.texts": arrays["subwords.texts"]}, meta)
    with pytest.raises(StoreError, match="digest has changed"):
        Subwords.from_state(arrays | {"subwords.file": arrays["subwords.file"][:-1]}, meta)
    with pytest.raises(StoreError, match=r"must have shape \(15,\), but has \(14,\)"):
        Subwords.from_state(arrays | {"subwords.texts": arrays["subwords.texts"][1:]}, meta)
    with pytest.raises(StoreError, match="the subwords were cut by version 0"):
        Subwords.from_state(arrays, meta | {"version": 0})


def test_the_cache_is_read(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGTAIL_CACHE", str(tmp_path))
    texts = Texts.of(["the cats", "dogfish"])
    reader, _ = Subwords.fit(texts, file)
    first = reader.encode(texts, 3, cached=True)
    monkeypatch.setattr(Subwords, "_encode", lambda *_: pytest.fail("not read from the cache"))
    assert np.array_equal(reader.encode(texts, 3, cached=True), first)


def test_unigram_models_have_an_unknown_token_too(tmp_path: Path) -> None:
    made = tokenizers.Tokenizer(tokenizers.models.Unigram([("a", -1.0), ("<unk>", -9.0), ("b", -2.0)], unk_id=1))
    made.save(str(tmp_path / "tokenizer.json"))
    reader, _ = Subwords.fit(Texts.of(["ab"]), tmp_path)
    assert reader.encode(Texts.of(["abz"]), 4).tolist() == [[2, 4, 1, 0]]


def test_bad_files_and_missing_packages(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = Texts.of(["the cat"])
    with pytest.raises(DataError, match=r"no tokenizers file at this place.*Give a folder with a tokenizer\.json"):
        Subwords.fit(texts, tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(DataError, match="not a tokenizers file"):
        Subwords.fit(texts, tmp_path)
    reader, _ = Subwords.fit(texts, file)
    with pytest.raises(ParameterError, match="subwords: length must be at least 1, but is 0"):
        reader.encode(texts, 0)
    monkeypatch.setattr(source, "MODULE", "no_such_package")
    with pytest.raises(MissingExtraError, match=r"default tokenizer needs.*longtail\[weights\]"):
        Subwords.fit(texts)


def test_a_folder_tells_its_licence(file: Path, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(file.read_bytes())
    (tmp_path / "README.md").write_text("---\nlanguage: en\nlicense: cc0-1.0\n---\n# A model\n")
    assert Subwords.fit(Texts.of(["cat"]), tmp_path)[0].about == {"source": tmp_path.name, "card_licence": "cc0-1.0"}


def test_the_installed_encoder() -> None:
    pytest.importorskip(source.MODULE)
    reader, _ = Subwords.fit(Texts.of(["a piano plays"]))
    assert len(reader) == 30524
    assert reader.names(reader.encode(Texts.of(["Pianos [CLS]"]), 5)[0]) == ["pianos", "[", "cl", "##s", "]"]
    assert {"source", "version", "licence", "card_licence"} <= set(reader.about)
