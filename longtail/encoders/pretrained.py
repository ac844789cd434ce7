"""Loading a pretrained transformer and removing the parts that longtail handles itself.

Needs torch, and the library transformers, whose import takes seconds: so it is imported when an encoder is loaded.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
from torch import Tensor, nn

from longtail.core.errors import DataError, MissingExtraError, ParameterError
from longtail.encoders.attention import attend_by
from longtail.encoders.dropout import use_fast_dropout
from longtail.encoders.source import Source, check_encoder, encoder_files

Model = Any  # a module of the library transformers
DEPTH = "num_hidden_layers"
NOT_KEPT = {"_name_or_path", "transformers_version", "architectures", "id2label", "label2id"}  # no part of an encoder


def pretrained(files: Source, layers: int | None = None, dropout: float | None = None) -> tuple[Model, Tensor]:
    """The first `layers` layers of an encoder (None: all), and its word vectors (V, D).

    `dropout` replaces all rates of its settings; on a CPU it is drawn faster than torch does. The model takes word
    vectors (B, T, D) as `inputs_embeds`: its own table of them is removed, and so is the layer that some encoders put
    on the first token.
    """
    config = config_of(files, layers)
    set_dropout(config, dropout)
    _, AutoModel = classes()
    with quiet():
        try:
            model, found = AutoModel.from_pretrained(
                files.folder, config=config, local_files_only=True, use_safetensors=True, output_loading_info=True
            )
        except Exception as error:
            raise refused(files, error) from None
    missing = sorted(name for name in found["missing_keys"] if "pooler" not in name)
    if missing:
        fix = "give the folder of an encoder whose weights belong to its settings"
        raise DataError("weights are missing in this encoder's file", where=files.folder, found=missing[0], fix=fix)
    table = model.get_input_embeddings()
    if "inputs_embeds" not in inspect.signature(model.forward).parameters or config.is_encoder_decoder:
        fix = "choose an encoder such as BERT, RoBERTa, DistilBERT or MPNet"
        raise DataError("longtail cannot use models of this type", where=files.folder, found=config.model_type, fix=fix)
    model = bare(model)
    use_fast_dropout(model)
    attend_by(model)
    return model, table.weight.detach().float()


def depth_of(source: str | Path | None, layers: int | None) -> int:
    """How many layers of an encoder (`encoder_files`) are kept: the first `layers`, or all."""
    depth: int = getattr(config_of(encoder_files(source, "the default encoder"), layers), DEPTH)
    return depth


def config_of(files: Source, layers: int | None) -> Any:
    """The library's settings of an encoder, cut to its first `layers` layers."""
    check_encoder(files)
    AutoConfig, _ = classes()
    try:
        config = AutoConfig.from_pretrained(files.folder, local_files_only=True)
    except Exception as error:  # the library can raise any exception
        raise refused(files, error) from None
    set_depth(config, layers)
    return config


def blank(settings: Mapping[str, Any]) -> Model:
    """A model with these settings (`settings_of`), made to be filled by `load_state_dict`."""
    own = {name: value for name, value in settings.items() if name != "model_type"}
    own["vocab_size"] = 1 + (settings.get("pad_token_id") or 0)  # the table of word vectors is removed at once
    AutoConfig, AutoModel = classes()
    with quiet():
        config = AutoConfig.for_model(settings["model_type"], **own)
        return bare(AutoModel.from_config(config))


def settings_of(model: Model) -> dict[str, Any]:
    """The settings of a model that can be stored as JSON, without the path it was loaded from."""
    found: dict[str, Any] = orjson.loads(model.config.to_json_string(use_diff=False))
    return {name: value for name, value in found.items() if name not in NOT_KEPT}


def bare(model: Model) -> Model:
    """The model in float32, without word vectors and without a layer on the first token."""
    model.set_input_embeddings(nn.Identity())
    if getattr(model, "pooler", None) is not None:
        model.pooler = None
    return model.float()


def positions(model: Model) -> int | None:
    """The tokens that a text may have, special tokens included; None: any number."""
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding):
            unused = 0 if module.padding_idx is None else module.padding_idx + 1  # RoBERTa counts from there
            return module.num_embeddings - unused
    found: int | None = getattr(model.config, "max_position_embeddings", None)
    return found


def set_depth(config: Any, layers: int | None) -> None:
    """Keep the first `layers` layers."""
    there = getattr(config, DEPTH)
    if layers is not None and not 1 <= layers <= there:
        raise ParameterError(f"transformer: layers must be 1 to {there}, which this encoder has, but is {layers}")
    setattr(config, DEPTH, layers or there)


def set_dropout(config: Any, rate: float | None) -> None:
    """Replace all rates of dropout; None leaves them as they are."""
    if rate is None:
        return
    if not 0 <= rate < 1:
        raise ParameterError(f"transformer: dropout must be at least 0 and below 1, but is {rate}")
    for name, value in config.to_dict().items():
        if "dropout" in name and isinstance(value, int | float) and not isinstance(value, bool):
            setattr(config, name, rate)


def refused(files: Source, error: Exception) -> DataError:
    """The error for an encoder that transformers cannot load."""
    fix = "check that it is an encoder which this version of transformers knows, and that its files are whole"
    found = f"{type(error).__name__}: {error}"
    return DataError("transformers does not load this encoder", where=files.folder, found=found, fix=fix)


def classes() -> tuple[Any, Any]:
    """AutoConfig and AutoModel of transformers."""
    try:
        from transformers import AutoConfig, AutoModel
    except ImportError as error:
        raise MissingExtraError("a transformer as encoder", "deep") from error
    return AutoConfig, AutoModel


@contextmanager
def quiet() -> Iterator[None]:
    """Within this context transformers shows no progress, and does not list layers that were cut off on purpose."""
    from transformers.utils import logging

    level: int = logging.get_verbosity()
    shown: bool = logging.is_progress_bar_enabled()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]
