"""Imports go downwards through the layers, and the core needs no extra."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "longtail"

# From bottom to top; a layer may only import layers from rows before its own.
ROWS = [
    ["_native"],
    ["core"],
    ["store"],
    ["data"],
    ["metrics"],
    ["decide"],
    ["report"],
    ["search"],
    ["labels"],
    ["encoders"],
    ["augment"],
    ["train"],
    ["linear"],
    ["scoring"],
    ["cascade", "dual"],
    ["ensemble"],
    ["recipes"],
    ["evidence", "contract"],
    ["cli", "serve", "sklearn"],
]
HEIGHT = {layer: height for height, row in enumerate(ROWS) for layer in row}
DOORS = {"__init__", "__main__"}
EXTRAS = {
    "torch",
    "transformers",
    "tokenizers",
    "safetensors",
    "accelerate",
    "pyarrow",
    "faiss",
    "sklearn",
    "fastapi",
}
LIGHT = {"train/fit.py", "train/network.py", "train/recipe.py", "train/settings.py", "train/validation.py"}  # no torch
EXTRAS |= {"uvicorn", "ray", "datasets", "onnx", "onnxruntime", "huggingface_hub"}
TORCH = {  # files of torch modules in layers that the core imports from; nothing of the core imports these
    "encoders/attention.py",
    "encoders/bag.py",
    "encoders/dropout.py",
    "encoders/encoder.py",
    "encoders/held.py",
    "encoders/inception.py",
    "encoders/inception_served.py",
    "encoders/lstm.py",
    "encoders/pretrained.py",
    "encoders/residual.py",
    "encoders/sequence.py",
    "encoders/static.py",
    "encoders/sums.py",
    "encoders/table.py",
    "encoders/taps.py",
    "encoders/transformer.py",
}


def imports(tree: ast.AST, everywhere: bool = True) -> list[tuple[int, str]]:
    """(line, module) of imports that run; those under TYPE_CHECKING do not. Without `everywhere`, only on import."""
    found: list[tuple[int, str]] = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import on line {node.lineno}"
            found += [(node.lineno, node.module or "")]
            if node.module == "longtail":
                found += [(node.lineno, f"longtail.{alias.name}") for alias in node.names]
        elif everywhere or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found += imports(node, everywhere)
    return found


def layer_of(module: str) -> str:
    return module.split(".")[1]


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_downwards(path: Path) -> None:
    own = path.relative_to(PACKAGE).with_suffix("").parts[0]
    if own in DOORS:
        return
    assert own in HEIGHT, f"{own} is not in ROWS: add it to the design and to ROWS"
    for line, module in imports(ast.parse(path.read_text(encoding="utf-8"))):
        if module.startswith("longtail."):
            target = layer_of(module)
            fine = target == own or HEIGHT[target] < HEIGHT[own]
            assert fine, f"{path.name}:{line}: {own} imports {target}, which does not stand below it"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_extras_are_imported_lazily(path: Path) -> None:
    own, name = path.relative_to(PACKAGE).with_suffix("").parts[0], path.relative_to(PACKAGE).as_posix()
    if name not in LIGHT and (own in {"cascade", "dual", "scoring", "train", "serve", "sklearn"} or name in TORCH):
        return
    for line, module in imports(ast.parse(path.read_text(encoding="utf-8")), everywhere=False):
        assert module.split(".")[0] not in EXTRAS, f"{path.name}:{line} imports {module} when it is imported"


def test_the_check_sees_an_upward_import() -> None:
    tree = ast.parse("def f():\n    from longtail.recipes import x\nif TYPE_CHECKING:\n    import longtail.cli")
    assert imports(tree) == [(2, "longtail.recipes")]
