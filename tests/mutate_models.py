"""Changes arrays of a saved model, with checksums made anew, and uses what can still be loaded.

    python tests/mutate_models.py FOLDER OUT SEED TIMES

Prints a line for each change: the array, the change and what happened. The process that runs this ends by a signal if
a change has led out of an array, and a line "a bug" stands where an error is not one of longtail's.
"""

import contextlib
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import orjson

import longtail
from longtail.core.errors import LongtailError
from longtail.store import npy
from longtail.store.model import MANIFEST

WILD = (0, 1, -1, 7, 2**15, 2**30, 2**31 - 1, -(2**31), 2**40)
SLOW = 5.0  # seconds


def changed(array: np.ndarray, rng: np.random.Generator) -> tuple[str, np.ndarray]:
    """The array with one value, some values or all replaced, or cut, or made longer."""
    made = np.array(array)
    flat = made.reshape(-1)
    how = rng.choice(["one", "some", "all", "cut", "longer", "nan", "bits"])
    if not flat.size or how == "longer":
        return "longer", np.concatenate([made, made[:1]]) if made.ndim and len(made) else np.ones(3, made.dtype)
    if how == "cut":
        return "cut", made[: rng.integers(len(made))] if made.ndim else made
    if how == "bits":
        octets = flat.view(np.uint8)
        octets[rng.integers(octets.size)] ^= np.uint8(1 << rng.integers(8))
        return how, made
    value: Any = rng.choice(np.array(WILD))
    if made.dtype.kind == "f":
        value = rng.choice([np.nan, np.inf, -np.inf, 3e38, 0.0]) if how == "nan" else float(value)
    places = {"one": [rng.integers(flat.size)], "some": rng.integers(flat.size, size=5)}.get(how, slice(None))
    with np.errstate(all="ignore"):
        flat[places] = np.asarray(value).astype(made.dtype)
    return f"{how} {value}", made


def use(folder: Path, texts: list[str]) -> str:
    """Load, predict a few texts and one, explain, edit: what came of it."""
    try:
        model = longtail.load(folder)
        list(model.predict(texts, k=3).records())
        model.predict(texts[:1], k=2).keys()
        with contextlib.suppress(LongtailError):  # not every model explains
            model.explain(texts[0])
        with contextlib.suppress(LongtailError):
            model.edit_labels(model.labels.remove([model.labels.keys[0]]))
        return "used"
    except LongtailError as error:
        return f"refused: {error}"
    except Exception as error:
        return f"a bug: {type(error).__name__}: {error}"


def main() -> None:
    """Make the changes, one after another."""
    folder, out, seed, times = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    texts = ["apple banana fruit", "planet star moon", "", "unknown words here", "star"] * 20
    manifest = orjson.loads((folder / MANIFEST).read_bytes())
    rng = np.random.default_rng(seed)
    for _ in range(times):
        name = str(rng.choice(sorted(manifest["arrays"])))
        entry = manifest["arrays"][name]
        array = np.load(folder / manifest["generation"] / entry["file"])
        how, made = changed(array, rng)
        print(orjson.dumps({"array": name, "how": how}).decode(), flush=True)  # before: it may be the last line
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(folder, out)
        np.save(out / manifest["generation"] / entry["file"], made)
        arrays = manifest["arrays"] | {name: npy.entry(entry["file"].removesuffix(".npy"), made)}
        (out / MANIFEST).write_bytes(orjson.dumps(manifest | {"arrays": arrays}))
        began = time.monotonic()
        found = use(out, texts)
        seconds = time.monotonic() - began
        slow = {"slow": round(seconds, 1)} if seconds > SLOW else {}
        print(orjson.dumps({"array": name, "how": how, "found": found, **slow}).decode(), flush=True)


if __name__ == "__main__":
    main()
