"""Transformers as encoders: against the library's own model, chunks and gradients, serving, and refusals."""

import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from test_subwords import PIECES, number, tokenizer_file  # noqa: E402

from longtail.core.errors import DataError, MissingExtraError, ParameterError  # noqa: E402
from longtail.core.texts import Texts  # noqa: E402
from longtail.encoders import transformer_onnx, transformer_served  # noqa: E402
from longtail.encoders.attention import attention  # noqa: E402
from longtail.encoders.dropout import dropped  # noqa: E402
from longtail.encoders.export import Exported, served  # noqa: E402
from longtail.encoders.sequence import Sequences  # noqa: E402
from longtail.encoders.served import served_encoders  # noqa: E402
from longtail.encoders.specials import Specials, chunk_sizes  # noqa: E402
from longtail.encoders.subwords import Subwords  # noqa: E402
from longtail.encoders.transformer import TransformerEncoder  # noqa: E402
from longtail.encoders.transformer_served import TorchLayers, TransformerFeatures  # noqa: E402
from longtail.store.folder import open_folder, save_folder  # noqa: E402

WIDTH, LAYERS, PLACES = 8, 4, 40
SIZES = {"hidden_size": WIDTH, "num_attention_heads": 2, "intermediate_size": 16, "num_hidden_layers": LAYERS}
FEATURES = ("text", "cls", "cls2")


def make(path: Path, kind: str = "Bert", **settings: Any) -> Path:
    """A random encoder with its tokenizer, in the folder `path`."""
    tokenizer_file(path)
    torch.manual_seed(0)
    own = {"vocab_size": len(PIECES), "max_position_embeddings": PLACES, "initializer_range": 0.5} | SIZES | settings
    config = getattr(transformers, f"{kind}Config")(**own)
    getattr(transformers, f"{kind}Model")(config).save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("encoder"))


def some_words(texts: int = 9, W: int = 7, seed: int = 0) -> np.ndarray:
    """Numbers of sub-words of texts of all lengths, the first two empty and of unknown tokens only."""
    rng = np.random.default_rng(seed)
    words = rng.integers(number("cat"), number("sep") + 1, (texts, W))
    lengths = rng.integers(0, W + 1, texts)
    lengths[:3] = 0, 2, W
    words[np.arange(W) >= lengths[:, None]] = 0
    words[1, :2] = 1
    return words.astype(np.int32)


def literal(model: Any, words: np.ndarray, layers: int = LAYERS) -> dict[str, Any]:
    """Features text by text, without chunks and pads."""
    found: dict[str, list[Any]] = {name: [] for name in FEATURES}
    for row in words:
        pieces = [PIECES.index("[UNK]") if n == 1 else n - 2 for n in row[row > 0]]
        ids = torch.tensor([[PIECES.index("[CLS]"), *pieces, PIECES.index("[SEP]")]])
        states = model(input_ids=ids, output_hidden_states=True).hidden_states
        found["text"].append(states[layers][0].mean(0))
        found["cls"].append(states[layers][0, 0])
        found["cls2"].append(states[2][0, 0])
    return {name: torch.stack(rows) for name, rows in found.items()}


@pytest.mark.parametrize("layers", [None, 3])
@pytest.mark.parametrize("chunk", [None, 1, 20])
def test_the_features_are_those_of_transformers(folder: Path, layers: int | None, chunk: int | None) -> None:
    encoder = TransformerEncoder.load(folder, layers=layers, features=FEATURES, chunk=chunk, length=PLACES).eval()
    words = some_words()
    with torch.no_grad():
        expected = literal(transformers.BertModel.from_pretrained(folder).eval(), words, layers or LAYERS)
        found = encoder(Sequences.of(words))
    assert encoder.widths == dict.fromkeys(FEATURES, WIDTH) and encoder.pieces == PLACES - 2
    for name in FEATURES:
        assert expected[name].std() > 0.1
        assert torch.allclose(found[name], expected[name], atol=1e-5), name
    assert "cls" not in TransformerEncoder.load(folder).widths
    first = TransformerEncoder.load(folder, layers=layers, pooling="cls").eval()
    assert torch.allclose(first(Sequences.of(words))["text"], expected["cls"], atol=1e-5)


@pytest.mark.parametrize("checkpointing", [False, True])
def test_gradients_are_those_without_chunks(folder: Path, checkpointing: bool) -> None:
    words, weight = some_words(), torch.randn(9, WIDTH)
    model = transformers.BertModel.from_pretrained(
        folder, attention_probs_dropout_prob=0, hidden_dropout_prob=0
    ).train()
    expected = literal(model, words)
    ((expected["text"] + expected["cls2"]) * weight).sum().backward()
    own = dict(dropout=0.0, features=FEATURES, chunk=20, checkpointing=checkpointing)
    encoder = TransformerEncoder.load(folder, **own).train()
    found = encoder(Sequences.of(words))
    ((found["text"] + found["cls2"]) * weight).sum().backward()
    named = dict(model.named_parameters())
    for name, parameter in encoder.net.model.named_parameters():
        assert torch.allclose(parameter.grad, named[name].grad, atol=1e-4), name
    ids, grad = encoder.E.gradient()
    full = torch.zeros(len(PIECES), WIDTH).index_add_(0, ids, grad)
    assert full.abs().max() > 0.1
    assert torch.allclose(full, named["embeddings.word_embeddings.weight"].grad, atol=1e-4)


def test_dropout(folder: Path) -> None:
    words = Sequences.of(some_words())

    def trained(seed: int, **settings: Any) -> Any:
        encoder = TransformerEncoder.load(folder, chunk=20, **settings).train()
        torch.manual_seed(seed)
        return encoder(words)["text"]

    same = trained(1)
    assert torch.equal(same, trained(1)) and torch.equal(same, trained(1, checkpointing=True))
    assert not torch.equal(same, trained(2))
    assert torch.equal(trained(1, dropout=0.0), trained(2, dropout=0.0))
    rates = {m.p for m in TransformerEncoder.load(folder, dropout=0.4).modules() if isinstance(m, torch.nn.Dropout)}
    assert rates == {0.4}


def test_training_drops_attention_without_the_slow_numbers_of_torch(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = TransformerEncoder.load(folder, chunk=20, dropout=0.3)
    words = Sequences.of(some_words())

    def refuse(*given: Any, **named: Any) -> None:
        raise AssertionError("torch's own dropout")

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", refuse)
    monkeypatch.setattr(torch.nn.functional, "dropout", refuse)
    encoder.train()(words)["text"].sum().backward()
    with pytest.raises(AssertionError, match="torch's own"):  # without dropout torch's attention is the fastest
        encoder.eval()(words)


@pytest.mark.parametrize("mask", ["none", "boolean", "added"])
def test_attention_is_the_literal_formula(mask: str) -> None:
    b, h, T, d, rate = 2, 3, 5, 4, 0.25
    torch.manual_seed(0)
    query, key, value = (torch.randn(b, h, T, d) for _ in range(3))
    read = torch.arange(T) < torch.tensor([T, 3])[:, None]  # (b, T): pads come last
    least = torch.finfo(torch.float32).min
    given = {"none": None, "boolean": read[:, None, None, :], "added": (~read[:, None, None, :]).float() * least}[mask]
    torch.manual_seed(7)
    found, _ = attention(SimpleNamespace(is_causal=False), query, key, value, given, dropout=rate, scaling=0.5)
    torch.manual_seed(7)
    kept = dropped(torch.ones(b, h, T, T), rate)  # 0, or 1 / (1 − rate)
    assert 0 < (kept == 0).float().mean() < 0.6
    for text in range(b):
        length = T if mask == "none" else int(read[text].sum())
        for head in range(h):
            for place in range(T):
                powers = [float((0.5 * query[text, head, place] @ key[text, head, t]).exp()) for t in range(length)]
                shares = [power / sum(powers) * float(kept[text, head, place, t]) for t, power in enumerate(powers)]
                expected = sum(share * value[text, head, t] for t, share in enumerate(shares))
                assert torch.allclose(found[text, place, head], torch.as_tensor(expected), atol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_leaves_the_rest_to_torch(causal: bool) -> None:
    query, key, value = (torch.randn(1, 2, 4, 8) for _ in range(3))
    expected = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=causal)
    found, _ = attention(SimpleNamespace(is_causal=causal), query, key, value, None)
    assert torch.allclose(found, expected.transpose(1, 2), atol=1e-6)


def test_checkpointing_repeats_the_same_dropout(folder: Path) -> None:
    gradients = []
    for checkpointing in (False, True):
        encoder = TransformerEncoder.load(folder, chunk=20, dropout=0.3, checkpointing=checkpointing).train()
        torch.manual_seed(3)
        encoder(Sequences.of(some_words()))["text"].square().sum().backward()
        gradients.append([parameter.grad for parameter in encoder.parameters()])
    assert all(torch.allclose(one, other, atol=1e-5) for one, other in zip(*gradients, strict=True))


def test_long_texts_are_cut(folder: Path) -> None:
    words = some_words()
    short = TransformerEncoder.load(folder, length=6).eval()
    whole = TransformerEncoder.load(folder, length=PLACES).eval()
    assert short.pieces == 4
    found, expected = short(Sequences.of(words))["text"], whole(Sequences.of(words[:, :4]))["text"]
    assert torch.allclose(found, expected, atol=1e-6)
    assert not torch.allclose(found, whole(Sequences.of(words))["text"], atol=1e-2)


def test_texts_are_mixed_before_the_layers(folder: Path) -> None:
    encoder = TransformerEncoder.load(folder).eval()
    one, other = (encoder.embed(Sequences.of(some_words(seed=seed))) for seed in (0, 1))
    vectors, mask = encoder.mix(one, other, 0.75)
    assert torch.equal(mask, one[1] | other[1]) and vectors.shape == one[0].shape
    assert torch.allclose(vectors[2, 3], 0.75 * one[0][2, 3] + 0.25 * other[0][2, 3])
    assert not torch.allclose(encoder.encode((vectors, mask))["text"], encoder.encode(one)["text"], atol=0.01)
    assert not encoder.encode(one, frozenset({"text"}))["text"].requires_grad


def test_under_autocast(folder: Path) -> None:
    encoder = TransformerEncoder.load(folder, dropout=0.0, chunk=20).train()
    words = Sequences.of(some_words())
    exact = encoder(words)["text"]
    for kind in (torch.float16, torch.bfloat16):
        if kind == torch.bfloat16 and "amx" in str(getattr(torch.backends.cpu, "get_cpu_capability", str)()).lower():
            continue  # AMX kills the process on virtual machines that only announce it
        with torch.autocast("cpu", kind):
            found = encoder(words)["text"]
        assert found.dtype == torch.float32 and torch.allclose(found, exact, atol=0.3)
        found.sum().backward()
        assert all(torch.isfinite(p.grad).all() for p in encoder.parameters())


def test_empty_and_unknown_texts(folder: Path) -> None:
    encoder = TransformerEncoder.load(folder).eval()
    for words in (np.zeros((3, 4)), np.ones((2, 4)), np.zeros((2, 0))):
        found = encoder(Sequences.of(words.astype(np.int32)))["text"]
        assert torch.isfinite(found).all() and torch.allclose(found[0], found[1])
    assert encoder(Sequences.of(np.zeros((0, 4), np.int32)))["text"].shape == (0, WIDTH)


def test_placing_special_tokens() -> None:
    words = np.array([[7, 1, 9], [0, 0, 0], [4, 0, 0]])
    ids, mask = Specials([101], [102, 103], 100, 0).place(words, 99)
    assert ids.tolist() == [[101, 5, 100, 7, 102, 103], [101, 102, 103, 0, 0, 0], [101, 2, 102, 103, 0, 0]]
    assert mask.sum(1).tolist() == [6, 3, 4] and np.array_equal(mask, np.arange(6) < mask.sum(1)[:, None])
    assert Specials([101], [102, 103], 100, 0).place(words, 4)[0].tolist()[0] == [101, 5, 102, 103]
    ids, mask = Specials([], [], 3, 3).place(words, 99)
    assert ids.tolist() == [[5, 3, 7], [3, 3, 3], [2, 3, 3]] and mask.sum(1).tolist() == [3, 1, 1]
    assert Specials([], [], 3, 3).place(words[:, :0], 99)[1].tolist() == [[True]] * 3


def test_special_tokens_come_from_the_tokenizers_file(folder: Path, tmp_path: Path) -> None:
    cls, sep, unknown = (PIECES.index(piece) for piece in ("[CLS]", "[SEP]", "[UNK]"))
    file = (folder / "tokenizer.json").read_bytes()
    assert Specials.of(file, 0) == Specials([cls], [sep], unknown, 0)
    plain = json.loads(file) | {"post_processor": None}
    assert Specials.of(json.dumps(plain).encode(), None) == Specials([], [], unknown, 0)
    with pytest.raises(DataError, match="not a tokenizers file"):
        Specials.of(b"{}", 0)


def test_chunks() -> None:
    assert chunk_sizes([9, 5, 5, 4, 1, 1], 10) == [1, 2, 2, 1]
    assert chunk_sizes([20, 3, 0], 10) == [1, 2] and chunk_sizes([], 10) == []


def runners() -> list[Any]:
    installed = all(map(transformer_onnx.importlib.util.find_spec, ("onnx", "onnxruntime")))
    skipped = pytest.mark.skipif(not installed, reason="ONNX Runtime is not installed")
    return [TorchLayers, pytest.param(transformer_onnx.OnnxLayers, marks=skipped)]


@pytest.mark.parametrize("runner", runners())
@pytest.mark.parametrize("kind", ["Bert", "Roberta"])
def test_served_equal(tmp_path: Path, kind: str, runner: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = TransformerEncoder.load(make(tmp_path, kind), layers=3, features=FEATURES, length=9).eval()
    words = some_words(50, 9)
    expected = encoder(Sequences.of(words))
    exported = saved_and_opened(encoder.export(), tmp_path / "model")
    monkeypatch.setattr(transformer_served, "CHUNK", 64)
    features = TransformerFeatures(exported.arrays, exported.meta, runner(exported.arrays, exported.meta))
    found = features.features(words)
    assert list(found) == list(FEATURES)
    for name, feature in found.items():
        assert feature.dtype == np.float32 and np.allclose(feature, expected[name].detach(), atol=1e-5), name
    assert np.allclose(features.features(words[5:6])["text"], found["text"][5:6], atol=1e-5)
    assert features.features(words[:0])["text"].shape == (0, WIDTH)


def saved_and_opened(exported: Exported, path: Path) -> Exported:
    """Through the disk, as models go."""
    arrays = {name: np.ascontiguousarray(array) for name, array in exported.arrays.items()}
    save_folder(path, "model.json", "test", {"encoder": exported.meta}, arrays, overwrite=False)
    manifest, arrays = open_folder(path, "model.json", "test", True)
    assert str(path.parent) not in json.dumps(manifest), "a model does not tell where files were"
    return Exported(arrays, manifest["encoder"])


def test_what_serves_is_found_by_kind(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exported = TransformerEncoder.load(folder).export()
    monkeypatch.setattr(transformer_served, "can_run", lambda *_: False)
    features = served(served_encoders, exported.arrays, exported.meta)
    assert isinstance(features.layers, TorchLayers)
    assert features.features(some_words())["text"].shape == (9, WIDTH)
    monkeypatch.setitem(sys.modules, "longtail.encoders.transformer", None)
    with pytest.raises(MissingExtraError, match=r"a model with a transformer needs.*longtail\[deep\]"):
        served(served_encoders, exported.arrays, exported.meta)


def test_onnx_runtime_runs_what_it_can(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exported = TransformerEncoder.load(folder).export()
    there = SimpleNamespace(find_spec=lambda name: object())
    monkeypatch.setattr(transformer_onnx, "importlib", SimpleNamespace(util=there))
    assert transformer_onnx.can_run(exported.arrays, exported.meta)
    for changed in ({"hidden_act": "relu"}, {"model_type": "mpnet"}, {"is_decoder": True}):
        assert not transformer_onnx.can_run(
            exported.arrays, exported.meta | {"config": exported.meta["config"] | changed}
        )
    there.find_spec = lambda name: None if name == "onnx" else object()
    assert not transformer_onnx.can_run(exported.arrays, exported.meta)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"longtail\[onnx\]"):
        transformer_onnx.OnnxLayers(exported.arrays, exported.meta)


def test_other_types_of_encoders(tmp_path: Path) -> None:
    sizes = {"dim": WIDTH, "n_heads": 2, "hidden_dim": 16, "n_layers": LAYERS}
    encoder = TransformerEncoder.load(
        make(tmp_path, "DistilBert", **sizes), layers=2, dropout=0.0, features=FEATURES[:2]
    )
    exported = encoder.eval().export()
    assert not transformer_onnx.can_run(exported.arrays, exported.meta)
    found = TransformerFeatures.from_arrays(exported.arrays, exported.meta).features(some_words())
    assert np.allclose(found["text"], encoder(Sequences.of(some_words()))["text"].detach(), atol=1e-5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layers": 5}, "layers must be 1 to 4, which this encoder has, but is 5"),
        ({"layers": 0}, "layers must be 1 to 4"),
        ({"length": 41}, "length must be 3 to 40 tokens of a text, 2 of them special, but is 41"),
        ({"length": 2}, "length must be 3 to 40"),
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1, but is 1.0"),
        ({"features": ("cls5",)}, "feature 'cls5' is of layer 5, but the encoder has 4"),
        ({"features": ("tokens",)}, "a feature is 'text', 'cls' or .* but is 'tokens'"),
        ({"pooling": "max"}, "pooling must be 'mean' or 'cls', but is 'max'"),
        ({"chunk": 0}, "chunk must be at least 1"),
    ],
)
def test_settings_are_refused_by_name(folder: Path, settings: dict, message: str) -> None:
    with pytest.raises(ParameterError, match=f"transformer: {message}"):
        TransformerEncoder.load(folder, **settings)


def test_folders_that_hold_no_encoder(folder: Path, tmp_path: Path) -> None:
    def copy(name: str) -> Path:
        return Path(shutil.copytree(folder, tmp_path / name))

    with pytest.raises(DataError, match=r"no tokenizers file at this place.*Give a folder with a tokenizer\.json"):
        TransformerEncoder.load(tmp_path / "nothing")
    for lacks, message in (
        ("config.json", r"config\.json missing"),
        ("model.safetensors", r"\*\.safetensors missing"),
    ):
        path = copy(f"without {lacks}")
        (path / lacks).unlink()
        with pytest.raises(DataError, match=rf"{lacks}: this is not an encoder: {message}. Give a folder with"):
            TransformerEncoder.load(path)
    damaged = copy("damaged")
    (damaged / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(DataError, match="transformers does not load this encoder"):
        TransformerEncoder.load(damaged)
    unknown = copy("unknown")
    (unknown / "config.json").write_text('{"model_type": "no such type"}')
    with pytest.raises(DataError, match="transformers does not load this encoder"):
        TransformerEncoder.load(unknown)
    deeper = copy("deeper")
    config = json.loads((folder / "config.json").read_text())
    (deeper / "config.json").write_text(json.dumps(config | {"num_hidden_layers": LAYERS + 1}))
    with pytest.raises(DataError, match=r"weights are missing.*found 'encoder\.layer\.4"):
        TransformerEncoder.load(deeper)


def test_a_tokenizer_with_more_pieces_than_vectors(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"the tokenizer has {len(PIECES)} pieces, but the encoder has vectors for 9"):
        TransformerEncoder.load(make(tmp_path, vocab_size=9))


def test_reader_and_encoder_belong_together(folder: Path, tmp_path: Path) -> None:
    own, _ = Subwords.fit(Texts.of(["the cats"]), folder)
    encoder = TransformerEncoder.load(folder, reader=own).eval()
    words = own.encode(Texts.of(["the cats", "", "dogfish"]), encoder.pieces)
    assert torch.isfinite(encoder(Sequences.of(words))["text"]).all()
    file = tokenizer_file(tmp_path)
    file.write_text(file.read_text() + "\n")
    other, _ = Subwords.fit(Texts.of(["cat"]), file)
    with pytest.raises(ParameterError, match="cut by another tokenizer.*take both from the same source"):
        TransformerEncoder.load(folder, reader=other)


def test_names_of_the_hub(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    asked = []
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda name, **_: asked.append(name) or str(folder))
    encoder = TransformerEncoder.load("someone/tiny")
    assert asked == ["someone/tiny"] and encoder.about == {"source": "someone/tiny", "version": folder.name}

    def offline(name: str, **_: Any) -> str:
        raise ConnectionError("no network")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", offline)
    with pytest.raises(
        DataError, match=r"someone/tiny: there is no such folder, .* from the hub.*no network.*Check the path or the"
    ):
        TransformerEncoder.load("someone/tiny")
