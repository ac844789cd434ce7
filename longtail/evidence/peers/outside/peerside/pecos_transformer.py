"""PECOS: XR-Transformer, fine-tuned from an encoder that comes in a package."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

from peerside.driver import TOP, OnMatrices, lines
from peerside.pecos import labels_of

NEVER = 1_000_000_000  # steps


def packaged(module: str) -> str:
    """Return the folder of the encoder in an installed package."""
    found = importlib.util.find_spec(module)
    if found is None or found.origin is None:
        raise ModuleNotFoundError(f"the package {module} is not installed")
    return str(Path(found.origin).parent / "model")


def change(parameters: Any, values: dict[str, Any]) -> None:
    """Set some parameters; one that does not exist is an error, not ignored."""
    for name, value in values.items():
        if not hasattr(parameters, name):
            raise AttributeError(f"{type(parameters).__qualname__} has no {name}")
        setattr(parameters, name, value)


class XRTransformer(OnMatrices):
    """libpecos' XTransformer on texts and features. All settings go through `train_params`, which reads no others."""

    def load(self, folder: Path) -> None:
        super().load(folder)
        import torch
        from pecos.xmc.xtransformer.model import XTransformer
        from pecos.xmc.xtransformer.module import MLProblemWithText

        torch.set_num_threads(self.threads)
        torch.manual_seed(self.seed)
        np.random.seed(self.seed)
        self.kind = XTransformer
        self.problem = MLProblemWithText(lines(folder, "train.texts"), self.Y, X_feat=self.X)

    def train(self) -> None:
        s = self.settings
        tree = {"nr_splits": s["branching"], "min_codes": s["coarsest"], "max_leaf_size": s["leaf_size"]}
        tree |= {"seed": self.seed, "threads": self.threads}
        matcher = {
            "model_shortcut": packaged(s["encoder"]),
            "batch_size": s["batch_size"],
            "batch_gen_workers": self.threads,  # with 0 its native code divides by zero (SIGFPE)
            "learning_rate": s["learning_rate"],
            "num_train_epochs": s["epochs"],
            "save_steps": NEVER,  # it keeps the last weights of each level
            "logging_steps": NEVER,
            "negative_sampling": "tfn+man",
            "use_gpu": False,
        }
        params = self.kind.TrainParams.from_dict({}, recursive=True)  # all defaults, which are then changed
        params.max_match_clusters = s["finest"]
        change(params.preliminary_indexer_params, tree)
        change(params.refined_indexer_params, tree)
        change(params.matcher_params_chain, matcher)
        change(params.ranker_params.hlm_args.model_chain, {"threads": self.threads})
        queries = self.kind.PredParams.from_dict({}, recursive=True)
        change(queries.matcher_params_chain, {"truncate_length": s["tokens"]})
        self.model = self.kind.train(self.problem, train_params=params, pred_params=queries, threads=self.threads)

    def save(self, folder: Path) -> None:
        self.model.save(str(folder))

    def points(self, folder: Path) -> Any:
        return Points(lines(folder, "test.texts"), super().points(folder))

    def batch(self, points: Points, k: int) -> np.ndarray:
        found = self.model.predict(
            points.texts,
            points.X,
            only_topk=k,
            beam_size=self.settings["beam"],
            batch_size=self.settings["batch_size"],
            batch_gen_workers=self.threads,
            use_gpu=False,
            threads=self.threads,
        )
        return labels_of(found, k)

    def one(self, x: Points) -> Any:
        return self.batch(x, TOP)


class Points:
    """Texts with the features of each."""

    def __init__(self, texts: list[str], X: Any):
        self.texts, self.X = texts, X

    def __getitem__(self, rows: int | slice) -> Points:
        part = slice(rows, rows + 1) if isinstance(rows, int) else rows
        return Points(self.texts[part], self.X[part])
