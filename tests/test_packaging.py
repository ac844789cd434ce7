"""A wheel, built and installed in the ordinary way, works without make, torch or any extra."""

import importlib
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
import tokenizers

import longtail

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.packaging


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    build = ["-C", f"build-dir={tmp_path_factory.mktemp('build')}"]
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", str(ROOT), "-w", str(out), *build]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return next(out.glob("longtail-*.whl"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that has only the wheel and its requirements."""
    folder = tmp_path_factory.mktemp("core-only")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    command = [str(python), "-m", "pip", "install", "--quiet", "-c", str(ROOT / "constraints.txt"), str(wheel)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return python


def run(python: Path, *arguments: str, cwd: Path) -> str:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run([str(python), *arguments], capture_output=True, text=True, cwd=cwd, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_the_wheel_holds(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "longtail/data/bundled/debian-related/train.jsonl.gz" in names
    assert "longtail/py.typed" in names
    assert any(name.startswith("longtail/_native/_kernels") and name.endswith((".so", ".pyd")) for name in names)
    assert not [name for name in names if name.endswith((".cpp", ".h", ".inc")) or name.startswith("tests/")]
    assert wheel.stat().st_size < 12e6


def test_every_module_imports_with_the_core_only(python: Path, tmp_path: Path) -> None:
    script = (
        "import importlib, pkgutil, sys, longtail\n"
        "names = [m.name for m in pkgutil.walk_packages(longtail.__path__, 'longtail.')]\n"
        "extras = ('longtail.cascade', 'longtail.dual', 'longtail.scoring', 'longtail.train', 'longtail.serve')\n"
        "extras += ('longtail.sklearn',)\n"
        "parts = ('bag', 'dropout', 'encoder', 'held', 'inception', 'pretrained', 'residual', 'sequence')\n"
        "parts += ('attention', 'lstm', 'static', 'sums', 'table', 'taps', 'transformer')\n"
        "extras += tuple(f'longtail.encoders.{part}' for part in parts)\n"
        "import longtail.encoders.transformer_served\n"  # imports torch when a model is loaded
        "import longtail.encoders.taps_served, longtail.encoders.lstm_served\n"
        "import longtail.cascade.model, longtail.train.settings\n"  # bag models need no torch
        "for name in names:\n"
        "    if name != 'longtail.__main__' and not name.startswith(extras):\n"
        "        importlib.import_module(name)\n"
        "heavy = {'torch', 'transformers', 'pyarrow', 'sklearn', 'pandas'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert 'site-packages' in longtail.__file__, longtail.__file__\n"
        "print(len(names))\n"
    )
    assert int(run(python, "-c", script, cwd=tmp_path)) > 50


def test_it_trains_and_predicts(python: Path, tmp_path: Path) -> None:
    lines = [f'{{"text": "{word} number {i}", "labels": ["{word}"]}}' for i in range(20) for word in ("boat", "pawn")]
    (tmp_path / "points.jsonl").write_text("\n".join(lines))
    run(python, "-m", "longtail", "train", "points.jsonl", "--out", "model", cwd=tmp_path)
    assert '"label":"pawn"' in run(python, "-m", "longtail", "predict", "model", "a pawn", "-k", "1", cwd=tmp_path)


def test_a_static_dual_encoder_predicts(python: Path, tmp_path: Path) -> None:
    """Sub-words, label vectors, classifiers and a memory of points, without torch."""
    pytest.importorskip("torch")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece({"[UNK]": 0, "boat": 1, "pawn": 2}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    settings = {"backbone": "static", "dimension": 8, "epochs": 2, "lr": 0.05, "encoder": str(tmp_path)}
    texts = ["a boat", "a pawn"] * 20
    names = {"sea": "boat", "chess": "pawn"}
    model = longtail.fit(
        texts, [["sea"], ["chess"]] * 20, "unidec", label_texts=names, memory=True, memory_share=0.5, **settings
    )
    model.save(tmp_path / "model")
    found = run(python, "-m", "longtail", "predict", "model", "a pawn", "-k", "1", cwd=tmp_path)
    assert f'"label":"{model.predict(["a pawn"], 1).keys()[0][0]}"' in found
    more = ["memory", "add", "model", "--text", "two boats", "--label", "chess"]
    run(python, "-m", "longtail", *more, cwd=tmp_path)
    assert len(longtail.load(tmp_path / "model").memory) == len(model.memory) + 1  # type: ignore[attr-defined]
    modules = "import sys, longtail; longtail.load('model').predict(['boat']); print('torch' in sys.modules)"
    assert run(python, "-c", modules, cwd=tmp_path).strip() == "False"


def test_a_missing_extra_is_named(python: Path, tmp_path: Path) -> None:
    (tmp_path / "points.parquet").write_bytes(b"PAR1 whatever PAR1")
    done = subprocess.run(
        [str(python), "-m", "longtail", "inspect", "points.parquet"], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 1
    assert "pip install 'longtail[tables]'" in done.stderr


def test_the_bundled_corpus_is_found(python: Path, tmp_path: Path) -> None:
    script = "import longtail; c = longtail.read('debian-related'); print(len(c.train), len(c.test), len(c.labels))"
    assert run(python, "-c", script, cwd=tmp_path).split() == ["59925", "15305", "63557"]


def test_this_environment_runs_the_source_tree() -> None:
    assert Path(importlib.import_module("longtail").__file__ or "").parent == ROOT / "longtail"
