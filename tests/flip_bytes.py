"""Changes bytes of a native corpus, one at a time, and uses it after each: run as a process that may crash.

    python flip_bytes.py FOLDER OUT SEED PLACES VERIFIED

In every file of the corpus PLACES bytes are changed and put back. After each change the corpus is inspected and
trained on through the command line; a line of JSON tells what came of it: the file, the place, and of each command
its exit code and its message. VERIFIED stands for the bytes that opening compares with checksums.
"""

import io
import json
import random
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from longtail.cli.main import main
from longtail.data.formats import native

FIXED = ["weighting=tfidf", "neighbours=5", "power=1", "label_weight=0.2"]


def commands(folder: Path, out: Path) -> list[list[str]]:
    train = ["train", str(folder), "--quiet", "--overwrite", "--out"]
    settings = [word for setting in FIXED for word in ("--set", setting)]
    return [
        ["inspect", str(folder), "--quiet", "--json"],
        [*train, str(out / "popular"), "--recipe", "popular"],
        [*train, str(out / "neighbours"), "--recipe", "neighbours", *settings],
    ]


def run(arguments: list[str]) -> tuple[int, str]:
    said = io.StringIO()
    with redirect_stderr(said), redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = main(arguments)
    return code, "\n".join(line for line in said.getvalue().splitlines() if line.startswith("longtail: "))


def flip(folder: Path, out: Path, seed: int, places: int) -> None:
    rng = random.Random(seed)
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        whole = file.read_bytes()
        for _ in range(places):
            at = rng.randrange(len(whole))
            changed = bytearray(whole)
            changed[at] ^= rng.randrange(1, 256)
            print(json.dumps({"trying": [file.name, at, changed[at]]}), flush=True)
            file.write_bytes(changed)
            found = [run(command) for command in commands(folder, out)]
            print(json.dumps({"file": file.name, "at": at, "byte": changed[at], "found": found}), flush=True)
        file.write_bytes(whole)


if __name__ == "__main__":
    folder, out, seed, places, verified = sys.argv[1:]
    native.VERIFIED = int(verified)
    flip(Path(folder), Path(out), int(seed), int(places))
