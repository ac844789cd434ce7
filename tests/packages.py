"""Small installed packages that offer recipes: a module, and a `.dist-info` as pip would leave it."""

import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

from longtail.core.recipe import recipes

EXAMPLE = Path(__file__).parent.parent / "examples" / "own-recipe"

# recipes of other packages that differ from `popular` only in what a test says
HEAD = """
from dataclasses import dataclass
from longtail.core.parameters import param
from longtail.recipes.popular import Popular, PopularModel
from longtail.core.recipe import Recipe
"""


def install(folder: Path, package: str, version: str, offers: Mapping[str, str], **modules: str) -> Path:
    """Install a package that offers recipes (name → "module:Class") into a folder; returns the folder."""
    info = folder / f"{package.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    lines = [f"{name} = {place}" for name, place in offers.items()]
    (info / "entry_points.txt").write_text("\n".join(["[longtail.recipes]", *lines, ""]))
    for module, source in modules.items():
        (folder / f"{module}.py").write_text(HEAD + textwrap.dedent(source))
    return folder


def forget(folder: Path, loaded: set[str]) -> None:
    """Forget the modules below a folder that are not in `loaded`, and the packages that were installed there."""
    for name in set(sys.modules) - loaded:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
            del sys.modules[name]
    recipes.offers(again=True)
