"""The layers of BERT and RoBERTa in ONNX Runtime: a model is served without torch, and a single text faster.

The graph is made from the model's arrays when it is loaded, which takes a fraction of a second. So nothing has to be
exported when a model is saved, and its weights are stored once. Attention, the sum with its normalisation, and GELU are
operators of the runtime's own (domain com.microsoft), each one pass over memory.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._native import get_threads
from longtail.core.errors import MissingExtraError
from longtail.encoders.export import Arrays, arrays_under

Floats = NDArray[np.float32]
OWN = "com.microsoft"
OPSET, IR = 17, 8  # of ONNX; those of 2022, which every runtime with the operators below reads
AFTER_PAD = {"bert": False, "roberta": True, "xlm-roberta": True}  # whether places count from after the pad's number
LARGEST = 2**31 - 2**24  # bytes of a graph: a limit of its file format


def can_run(arrays: Arrays, meta: Mapping[str, Any]) -> bool:
    """Whether ONNX Runtime is installed and the model is of a type for which there is a graph here."""
    config = meta["config"]
    if config["model_type"] not in AFTER_PAD or config["hidden_act"] != "gelu" or config.get("is_decoder", False):
        return False
    if config.get("position_embedding_type", "absolute") != "absolute":
        return False
    small = sum(array.nbytes for array in arrays_under("net", arrays).values()) < LARGEST
    return small and all(importlib.util.find_spec(name) for name in ("onnx", "onnxruntime"))


class OnnxLayers:
    """Runs the layers; see `encoders.transformer_served.Layers`. The threads are those of longtail when it was made."""

    def __init__(self, arrays: Arrays, meta: Mapping[str, Any]):
        config, weights = meta["config"], arrays_under("net", arrays)
        first = 1 + (config["pad_token_id"] or 0) if AFTER_PAD[config["model_type"]] else 0
        self.places = weights["embeddings.position_embeddings.weight"][first:]  # (P, D)
        self.places = self.places + weights["embeddings.token_type_embeddings.weight"][0]
        self.pooling, depth = meta["pooling"], config["num_hidden_layers"]
        self.layers = {name: int(name.removeprefix("text").removeprefix("cls") or depth) for name in meta["features"]}
        self.outputs = sorted(set(self.layers.values()))
        graph = Graph(weights, config)
        self.session = session(graph.finish(self.outputs), get_threads())

    def __call__(self, vectors: Floats, mask: NDArray[np.bool_]) -> dict[str, Floats]:
        """Word vectors (b, T, D) → features (b, d)."""
        x = vectors + self.places[: vectors.shape[1]]
        states = dict(zip(self.outputs, self.session.run(None, {"x": x, "mask": mask.astype(np.int32)}), strict=True))
        found = {}
        for name, layer in self.layers.items():
            hidden = states[layer]  # (b, T, d)
            if name == "text" and self.pooling == "mean":
                found[name] = (hidden * mask[:, :, None]).sum(1) / mask.sum(1, dtype=np.float32)[:, None]
            else:
                found[name] = hidden[:, 0]
        return found


class Graph:
    """The layers as a graph of ONNX: nodes in order, and their weights."""

    def __init__(self, weights: Arrays, config: Mapping[str, Any]):
        try:
            import onnx
        except ImportError as error:
            raise MissingExtraError("serving a transformer by ONNX Runtime", "onnx") from error
        self.onnx, self.weights, self.config = onnx, weights, config
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        state = self.node("LayerNormalization", ["x", *self.norm("embeddings.LayerNorm")], axis=-1, epsilon=self.eps)
        self.states = [state]  # the names of the states after 0, 1, … layers, (b, T, d) each
        for layer in range(config["num_hidden_layers"]):
            self.states.append(self.layer(self.states[-1], f"encoder.layer.{layer}"))

    @property
    def eps(self) -> float:
        """ε of all layer normalisations."""
        return float(self.config["layer_norm_eps"])

    def layer(self, x: str, name: str) -> str:
        """Self-attention and two dense layers, each added to what it reads and normalised."""
        parts = [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
        W = np.concatenate([self.weights[f"{part}.weight"] for part in parts]).T  # (D, 3D)
        b = np.concatenate([self.weights[f"{part}.bias"] for part in parts])
        heads = int(self.config["num_attention_heads"])
        inputs = [x, self.array(f"{name}.qkv", W), self.array(f"{name}.qkv.bias", b), "mask"]
        seen = self.node("Attention", inputs, OWN, num_heads=heads)
        x = self.added(self.product(seen, f"{name}.attention.output.dense"), x, f"{name}.attention.output")
        inner = [self.product(x, f"{name}.intermediate.dense"), self.stored(f"{name}.intermediate.dense.bias")]
        return self.added(self.product(self.node("BiasGelu", inner, OWN), f"{name}.output.dense"), x, f"{name}.output")

    def product(self, x: str, name: str) -> str:
        """x Wᵀ, without the bias."""
        return self.node("MatMul", [x, self.array(f"{name}.weight", self.weights[f"{name}.weight"].T)])

    def added(self, change: str, x: str, name: str) -> str:
        """The sum of both and of a bias, normalised."""
        inputs = [change, x, *self.norm(f"{name}.LayerNorm"), self.stored(f"{name}.dense.bias")]
        return self.node("SkipLayerNormalization", inputs, OWN, epsilon=self.eps)

    def norm(self, name: str) -> list[str]:
        """Scale and shift of a normalisation."""
        return [self.stored(f"{name}.weight"), self.stored(f"{name}.bias")]

    def stored(self, name: str) -> str:
        """One of the model's arrays."""
        return self.array(name, self.weights[name])

    def array(self, name: str, values: NDArray[Any]) -> str:
        """Weights with a name."""
        made = self.onnx.numpy_helper.from_array(np.ascontiguousarray(values, np.float32), name)
        self.initializers.append(made)
        return name

    def node(self, operator: str, inputs: list[str], domain: str = "", **settings: Any) -> str:
        """One operation; returns the name of its result."""
        result = f"{operator}.{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, inputs, [result], domain=domain, **settings))
        return result

    def finish(self, layers: list[int]) -> bytes:
        """The graph as the content of an ONNX file; it gives the states after these layers, (b, T, d) each."""
        helper, kind, D = self.onnx.helper, self.onnx.TensorProto, self.config["hidden_size"]
        inputs = [("x", kind.FLOAT, ["b", "T", D]), ("mask", kind.INT32, ["b", "T"])]
        outputs = [(self.states[layer], kind.FLOAT, ["b", "T", D]) for layer in layers]
        ends = [[helper.make_tensor_value_info(*one) for one in some] for some in (inputs, outputs)]
        graph = helper.make_graph(self.nodes, "layers", *ends, self.initializers)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(OWN, 1)]
        content: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=IR).SerializeToString()
        return content


def session(content: bytes, threads: int) -> Any:
    """ONNX Runtime's object that runs a graph on the CPU."""
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingExtraError("serving a transformer by ONNX Runtime", "onnx") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3  # errors only
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
