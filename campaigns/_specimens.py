"""Folders and files that campaigns/strangers.py kills and damages: how each is made, carried on, and read in full."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Numbers = dict[str, np.ndarray]
"""Everything that a folder says in numbers and texts, by name."""
SWEPT = {"a": "range(4)", "b": ["x", "y"]}
WIDER = {"a": "range(6)", "b": ["x", "y", "z"]}
MARKUP = "</script><img src=x onerror=alert(5150)>"
"""What a stranger writes in place of a word; no page may hold it as it is."""
LABELLED = """
name = "labelled"
[field]
name = "attention"
beta = 4.0
[tokens]
name = "array"
positions = [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]
labels = ["MARKUP", "b", "c"]
[solve]
until = 1.0
save = { name = "evenly", count = 4 }
method = { name = "fixed", step = 0.25 }
"""


def texts() -> dict[str, str]:
    """Specifications of runs by kind, small ones."""
    from tests.runs.kinds import TEXTS

    kinds = ("solve", "solve_long", "evolve", "train", "probe")
    chosen = {kind: TEXTS[kind] for kind in kinds} | {"fit": TEXTS["fit"].replace("steps = 60", "steps = 12")}
    return chosen | {"labelled": LABELLED.replace("MARKUP", MARKUP)}


LATER = {"solve": 10.0, "solve_long": 50.0, "evolve": 0.9, "train": 57, "probe": ["question whether"], "fit": 20}
"""To where runs are extended."""
TWINS = {"solve": "seed = 1", "solve_long": "seed = 1", "train": "seeds = [2, 3]"}
"""What makes another folder of the same kind: the line with this key is replaced."""


def spec(kind: str, twin: bool = False) -> Any:
    """The specification of a kind of run; `twin` asks for one of the same shape with other numbers."""
    from attnflow.runs import parse_spec

    text = texts()[kind]
    if twin and kind in TWINS:
        key = TWINS[kind].partition(" ")[0]
        text = "\n".join(TWINS[kind] if line.startswith(f"{key} =") else line for line in text.splitlines())
    elif twin:
        text = text.replace("beta = 4.0", "beta = 3.0").replace("random-albert", "random-bert")
        text = text.replace("batch = 8", "batch = 4")
    return parse_spec(text)


def read_run(path: Path) -> Numbers:
    """All variables of a run, as `open_run` gives them."""
    import attnflow as af

    dataset = af.open_run(path).dataset.load()
    return {str(name): dataset[name].values for name in dataset.variables}


def read_sweep(path: Path) -> Numbers:
    """All variables of the dataset of a sweep; numbers of tasks that are not done are left out by `is_right`."""
    import attnflow as af

    dataset = af.open_sweep(path).dataset.load()
    return {str(name): dataset[name].values for name in sorted(map(str, dataset.variables))}


def read_experiment(path: Path) -> Numbers:
    """All variables of all parts of an experiment, and its claims."""
    from attnflow.experiments import look_up, read_claims
    from attnflow.experiments.parts import read_part
    from attnflow.experiments.settings import parse_settings
    from attnflow.runs import Run

    run, numbers = Run.open(path), {}
    if run.manifest()["status"] == "finished":
        run.verify()
    settings = run.read_spec(lambda text: parse_settings(text, look_up(tiny_file()))).hash
    for file in sorted((path / "parts").glob("*.npz")):
        dataset = read_part(run.folder.inside("parts"), file.name, settings)
        numbers |= {f"{file.stem}/{name}": dataset[name].values for name in dataset.variables}
    claims = [claim.to_json() for claim in read_claims(run)]
    return numbers | ({"claims": np.array(json.dumps(claims))} if claims else {})


def read_stream(path: Path) -> Numbers:
    """All arrays and texts of a stream."""
    from attnflow.probe import open_stream

    stream = open_stream(path)
    parts = ("hidden", "attention", "after_attention", "ids", "labels")
    numbers = {f"{part}.{k}": array for part in parts for k, array in enumerate(getattr(stream, part) or ())}
    rest = {"causal": stream.causal, "name": stream.name, "facts": stream.facts}
    return numbers | {"rest": np.array(json.dumps(rest, sort_keys=True, default=str))}


def read_certificate(path: Path) -> Numbers:
    """Nothing but that the checker confirms it: what it confirms is what it has proved."""
    from attnflow import certify
    from attnflow.errors import InvalidInput

    verdict = certify.check(path)
    if not verdict.confirmed:
        raise InvalidInput(f"the checker rejects the certificate: {verdict.reason.rstrip('.')}.")
    return {"confirmed": np.array(True)}


READERS: dict[str, Callable[[Path], Numbers]] = {
    "run": read_run, "sweep": read_sweep, "experiment": read_experiment, "stream": read_stream,
    "certificate": read_certificate,
}  # fmt: skip


def is_right(numbers: Numbers, *references: Numbers, partial: bool = False) -> bool:
    """True if all numbers are those of one of the references, bit for bit.

    Arguments:
        numbers: what was read.
        references: what may be read.
        partial: True if fewer rows and fewer variables may be there; those that are must be right.
    """
    return any(_agrees(numbers, reference, partial) for reference in references)


def _agrees(numbers: Numbers, reference: Numbers, partial: bool) -> bool:
    done = numbers.get("done") if "error" in numbers else None
    if not set(numbers) <= set(reference) or not (partial or set(numbers) == set(reference)):
        return False
    for name, array in numbers.items():
        whole = reference[name]
        if partial and array.size == 0:
            continue
        if partial and done is not None and name not in ("done", "error", "a", "b"):
            kept = done if array.shape[: done.ndim] == done.shape else None
            if kept is None or whole.shape[: done.ndim] != done.shape or array.ndim != whole.ndim:
                continue  # an axis that the sweep does not have yet
            array = array[kept]
            whole = whole[tuple(slice(0, n) for n in done.shape)][kept]
            whole = whole[tuple(slice(0, n) for n in array.shape)]
        elif partial and name == "error":
            array, whole = array[done], whole[: array.shape[0], : array.shape[1]][done]
        elif partial and name == "done":
            continue
        elif (
            partial and array.ndim == whole.ndim and all(a <= b for a, b in zip(array.shape, whole.shape, strict=True))
        ):
            whole = whole[tuple(slice(0, n) for n in array.shape)]
        same_kind = array.dtype == whole.dtype or array.dtype.kind == whole.dtype.kind == "U"
        if not same_kind or array.shape != whole.shape or not _same_bits(array, whole):
            return False
    return True


def _same_bits(array: np.ndarray, whole: np.ndarray) -> bool:
    if array.dtype.kind in "UOT":
        return bool((array == whole).all())
    return np.ascontiguousarray(array).tobytes() == np.ascontiguousarray(whole).tobytes()


@dataclass(frozen=True)
class Activity:
    """Something that makes or changes a folder or a file, may be killed, and is then carried on.

    Arguments:
        family: which of `READERS` reads it.
        kind: what the counts of the record call it.
        carry_on: begins, or goes on with whatever a death left.
        before: the specimen that it begins with, by name; empty for an empty place.
        suffix: how the name of a file ends; empty for a folder.
    """

    family: str
    kind: str
    carry_on: Callable[[Path], None]
    before: str = ""
    suffix: str = ""


def _run(kind: str, drawn: bool = False) -> Callable[[Path], None]:
    def carry_on(path: Path) -> None:
        from attnflow.plots import draw_run
        from attnflow.runs import execute, resume

        draw = draw_run if drawn else None
        if (path / "manifest.json").exists():
            resume(path, draw=draw)
        else:
            execute(spec(kind), path, draw=draw)

    return carry_on


def _extended(kind: str) -> Callable[[Path], None]:
    def carry_on(path: Path) -> None:
        from attnflow.runs import Run, extend, resume

        resume(path)
        if Run.open(path).manifest()["spec_hash"] == spec(kind).hash:
            extend(path, LATER[kind])

    return carry_on


def _redrawn(path: Path) -> None:
    from attnflow.plots import draw_run
    from attnflow.runs import redraw, resume

    resume(path, draw=draw_run)
    redraw(path, draw=draw_run)


def _swept(over: dict[str, Any]) -> Callable[[Path], None]:
    def carry_on(path: Path) -> None:
        from tests.sweeps.tasks import unequal

        import attnflow as af

        af.sweep(unequal, over, path, workers=2, patience=1.0)

    return carry_on


def tiny_file() -> Path:
    """The Python file of a tiny experiment."""
    from tests.experiments.tiny import SOURCE

    file = Path(os.environ["STRANGERS"]) / "tiny_mean.py"
    if not file.exists():
        file.write_text(SOURCE, encoding="utf-8")
    return file


def _reproduced(path: Path) -> None:
    from attnflow import experiments

    if (path / "manifest.json").exists():
        experiments.resume(path, plugins=[tiny_file()])
    else:
        experiments.reproduce(tiny_file(), path, quick=True)


def stream(seed: int = 0) -> Any:
    """A stream of two texts with attention, ids and labels."""
    import attnflow as af

    rng = np.random.default_rng(seed)
    hidden = [rng.standard_normal((3, n, 4)) for n in (5, 7)]
    attention = [rng.random((2, 2, n, n)) for n in (5, 7)]
    attention = [table / table.sum(axis=-1, keepdims=True) for table in attention]
    ids, labels = [np.arange(n) for n in (5, 7)], [[f"word {seed} {k}" for k in range(n)] for n in (5, 7)]
    return af.probe.Stream(hidden, attention, ids, labels=labels, name=f"net {seed}", facts={"seed": seed})


def _saved_stream(path: Path) -> None:
    stream(1).save(path)


def _saved_certificate(path: Path) -> None:
    from attnflow import certify

    path.unlink(missing_ok=True)
    certify.unstable_modes(9.0, 3, 0.01).save(path)


ACTIVITIES: dict[str, Activity] = {
    **{f"run {kind}": Activity("run", kind, _run(kind)) for kind in LATER},
    **{
        f"extend {kind}": Activity("run", kind, _extended(kind), before=f"run {kind}")
        for kind in LATER
    },
    "report solve": Activity("run", "solve with figures", _redrawn, before="run solve"),
    "sweep": Activity("sweep", "sweep", _swept(SWEPT)),
    "sweep wider": Activity("sweep", "sweep", _swept(WIDER), before="sweep"),
    "experiment": Activity("experiment", "experiment", _reproduced),
    **{
        f"stream {form}": Activity("stream", "stream", _saved_stream, before=f"stream {form}", suffix=f".{form}")
        for form in ("npz", "safetensors")
    },
    "certificate": Activity("certificate", "certificate", _saved_certificate, suffix=".json"),
}  # fmt: skip
"""What is killed, by name."""


def copy(source: Path, target: Path) -> Path:
    """A copy of a folder or of a file, with its links and times."""
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
    return target
