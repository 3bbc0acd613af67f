"""Write the archive of kept folders: one folder or file of every kind that attnflow leaves on disk.

`python -m tests.kept.write tests/kept/4bf48d24.tar.xz` was run once, with attnflow at commit 4bf48d24, and uses the names
of that commit. Later versions open, verify, resume and extend what it wrote (`test_kept.py`); the archive is never written
again, and this file says how each folder came about. `clustered.tar.xz` was made later with the same commit: runs of its
`specification.toml`, `execute`d to the end and ended by `boundaries.boundaries` at boundary 45.
"""

import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np

EXPERIMENT = '''"""The mean of independent normal numbers is 0 up to its standard error.

Shown: means of three samples. Not shown: other distributions.
"""

import dataclasses
import os

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import attnflow as af

PAPERS = ("arXiv:2312.10794",)


@dataclasses.dataclass(frozen=True)
class Parameters(af.experiments.Salted):
    size: int = 1000


QUICK = Parameters(size=100)


def sample(parameters, index):
    if index == 2 and os.environ.get("STOP_BEFORE_LAST_PART"):
        os._exit(9)
    return xr.Dataset({"values": ("draw", parameters.rng(0, index).standard_normal(parameters.size))})


def run(parameters, study):
    return study.parts({f"sample-{index}": (sample, parameters, index) for index in range(3)})


def claims(parameters, data):
    means = [float(part["values"].mean()) for part in data.values()]
    error = parameters.size**-0.5
    return [af.experiments.Claim.equal("the mean is 0", 0.0, max(means, key=abs), 5 * error, "five standard errors")]


def draw(parameters, data):
    """Values of the first sample."""
    figure = Figure(figsize=(2, 2))
    figure.subplots().hist(data["sample-0"]["values"].values)
    return figure
'''
PLUGIN = """import attnflow as af


@af.register("mask", "neighbours")
def neighbours(reach: int = 1):
    return af.Window(reach + 1, causal=False)


@af.register("observable", "height")
@af.Observable
def height(mu, axis: int = 0):
    return mu.masses @ mu.positions[:, axis]
"""
PLUGIN_SPEC = """
name = "neighbours"
[tokens]
name = "uniform"
space = { name = "sphere", dim = 3 }
n = 6
seed = 0
[field]
name = "attention"
beta = 4.0
mask = { name = "neighbours", reach = 2 }
[solve]
until = 4.0
save = { name = "evenly", count = 4 }
[solve.observe]
height = { name = "height" }
"""
SWEPT = """
name = "swept"
[tokens]
name = "uniform"
space = { name = "sphere", dim = 3 }
n = 6
seed = 0
[field]
name = "attention"
beta = 4.0
[solve]
until = 1.0
keep = ["energy"]
save = { name = "evenly", count = 2 }
[solve.observe]
order = { name = "order-parameter" }
"""
DEAD = 9
"""Exit status of a process that ended itself in the middle of its work."""


def order(beta: float, seed: int):
    """Order parameter of eight tokens at t = 1: the function that the kept sweep over a function evaluates."""
    import attnflow as af

    flow = af.solve(af.Attention(beta), af.uniform(af.Sphere(3), n=8, seed=seed), 1.0, save=1, keep=["positions"])
    return {"order": float(af.observe.order_parameter(flow[-1]))}


def made_in_python():
    """Work that no specification describes, observed by functions of the library."""
    import attnflow as af

    tokens = af.uniform(af.Sphere(3), n=6, seed=4)
    field = af.Attention(2.0) + af.Attention(9.0, mask=af.Causal())
    observe = {"order": af.observe.order_parameter}
    return af.flows.Solve(field, tokens, 6.0, chunk=3, save=af.saving.Evenly(6), observe=observe)


def die_after(calls, function):
    """A function that does `function` and ends the process at call number `calls`, as kill -9 would."""
    count = [0]

    def called(*arguments, **keywords):
        count[0] += 1
        if count[0] == calls:
            os._exit(DEAD)
        return function(*arguments, **keywords)

    return called


def act(action, *arguments):
    """One step, in a process of its own, as several of them end by dying."""
    from attnflow import runs
    from tests.kept.write import made_in_python, order  # not of __main__: their module is part of what they are
    from tests.runs import boundaries
    from tests.runs.kinds import LATER, TEXTS

    if action == "count":  # boundaries of the run `kind` in `path`
        kind, path = arguments
        with boundaries.boundaries(path, lambda k: None) as count:
            runs.execute(runs.parse_spec(TEXTS[kind]), path)
        print(count[0])
    elif action == "killed":
        kind, path, boundary = arguments
        with boundaries.boundaries(path, lambda k: os._exit(DEAD) if k == int(boundary) else None):
            runs.execute(runs.parse_spec(TEXTS[kind]), path)
    elif action == "extended":
        kind, path = arguments
        runs.extend(path, LATER[kind])
    elif action == "killed while extending":
        kind, path, boundary = arguments
        with boundaries.boundaries(path, lambda k: os._exit(DEAD) if k == int(boundary) else None):
            runs.extend(path, LATER[kind])
    elif action == "python":
        runs.ensure(made_in_python(), arguments[0])
    elif action == "python killed":
        path, boundary = arguments
        with boundaries.boundaries(path, lambda k: os._exit(DEAD) if k == int(boundary) else None):
            runs.ensure(made_in_python(), path)
    elif action == "python count":
        with boundaries.boundaries(arguments[0], lambda k: None) as count:
            runs.ensure(made_in_python(), arguments[0])
        print(count[0])
    elif action == "sweep":
        import attnflow as af
        from attnflow.sweeps import unit

        source, path, calls = arguments
        if int(calls):
            unit.write_shard = die_after(int(calls), unit.write_shard)
        if source == "function":
            af.sweep(order, {"beta": [1.0, 4.0], "seed": range(4)}, path)
        else:
            af.sweep(source, {"field.beta": [1.0, 4.0, 9.0], "tokens.seed": range(4)}, path, width=2)
    else:
        raise ValueError(action)


def step(*words, dies=False, **environment):
    """Do one step in a process; give back what it prints."""
    command = [sys.executable, "-m", "tests.kept.write", "act", *map(str, words)]
    done = subprocess.run(command, env=os.environ | environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != (DEAD if dies else 0):
        raise SystemExit(f"{words}: exit status {done.returncode}")
    return done.stdout


def command(*words, dies=False, **environment):
    """One call of the command line."""
    done = subprocess.run(
        [sys.executable, "-m", "attnflow", *map(str, words)], env=os.environ | environment, check=False
    )
    if done.returncode != (DEAD if dies else 0):
        raise SystemExit(f"{words}: exit status {done.returncode}")


def write_runs(folder):
    """Write a finished, a killed and an extended run of every kind, and runs with a plugin, a report, made in Python."""
    from tests.runs.kinds import LATER, TEXTS

    specs, runs = folder / "specifications", folder / "runs"
    specs.mkdir(parents=True)
    for kind, text in TEXTS.items():
        (specs / f"{kind}.toml").write_text(f'name = "{kind}"\n{text}')
        count = int(step("count", kind, runs / kind / "finished"))
        step("killed", kind, runs / kind / "killed", int(0.7 * count), dies=True)
        if kind in LATER:
            shutil.copytree(runs / kind / "finished", runs / kind / "extended")
            step("extended", kind, runs / kind / "extended")
    count = int(step("count", "solve", folder / "scratch"))
    step("killed", "solve", runs / "solve" / "killed-before-first-checkpoint", int(0.25 * count), dies=True)
    shutil.copytree(runs / "solve" / "finished", runs / "solve" / "killed-while-extending")
    step("killed while extending", "solve", runs / "solve" / "killed-while-extending", 5, dies=True)
    shutil.rmtree(folder / "scratch")

    (specs / "neighbours.py").write_text(PLUGIN)
    (specs / "neighbours.toml").write_text(PLUGIN_SPEC)
    with_plugin = (specs / "neighbours.toml", "--plugin", specs / "neighbours.py")
    command("run", *with_plugin, "--out", runs / "plugin", "--no-figures")
    command("run", specs / "evolve.toml", "--out", runs / "reported", "--set", "evolve.until=0.2")

    step("python", folder / "python")
    count = int(step("python count", folder / "scratch"))
    step("python killed", folder / "python-killed", int(0.7 * count), dies=True)
    shutil.rmtree(folder / "scratch")


def write_sweeps(folder):
    """Write sweeps over a function and a specification, each finished and half done."""
    specs = folder / "specifications"
    (specs / "swept.toml").write_text(SWEPT)
    for name, source in {"function": "function", "specification": specs / "swept.toml"}.items():
        step("sweep", source, folder / "sweeps" / f"{name}-finished", 0)
        step("sweep", source, folder / "sweeps" / f"{name}-half", 3, dies=True)


def write_experiments(folder):
    """Write an experiment of a file, finished and killed, and one of the gallery."""
    file, experiments = folder / "specifications" / "normal_means.py", folder / "experiments"
    file.write_text(EXPERIMENT)
    command("reproduce", file, "--quick", "--out", experiments / "own-finished")
    command("reproduce", file, "--quick", "--out", experiments / "own-killed", dies=True, STOP_BEFORE_LAST_PART="1")
    command("reproduce", "two-clusters", "--quick", "--out", experiments / "two-clusters")


def write_files(folder):
    """Write streams of a network and certificates of every kind."""
    import attnflow as af

    rng = np.random.default_rng(0)
    hidden = [rng.standard_normal((3, n, 4)).astype(np.float32) for n in (5, 4)]
    attention = [rng.random((2, 2, n, n)) * np.tri(n) for n in (5, 4)]
    attention = [(a / a.sum(axis=-1, keepdims=True)).astype(np.float32) for a in attention]
    ids = [rng.integers(0, 3, n) for n in (5, 4)]
    labels = [[f"word{k}" for k in text] for text in ids]
    stream = af.probe.Stream(hidden, attention, ids, causal=True, labels=labels, name="kept")
    (folder / "streams").mkdir()
    stream.save(folder / "streams" / "stream.npz")
    stream.save(folder / "streams" / "stream.safetensors")

    certificates = folder / "certificates"
    certificates.mkdir()
    for file in sorted(Path("docs/certificates").glob("*.json")):
        shutil.copyfile(file, certificates / file.name)
    for name, certificate in {
        "branch": af.certify.branch(af.tokens.ring(af.Sphere(2), n=4), (1.0, 1.1)),
        "dominant-degree": af.certify.dominant_degree((5.0, 6.0), 2),
        "circle-modes": af.certify.circle_modes([0.3, 2.0, 2.9], 4.0),
        "circle-consensus": af.certify.circle_consensus([0.3, 2.0, 2.9], 2.0),
    }.items():
        certificate.save(certificates / f"{name}.json")


def write(folder):
    """Write every kind of folder and file below `folder`."""
    for part in (write_runs, write_sweeps, write_experiments, write_files):
        part(folder)


def packed(folder, archive):
    """Pack `folder` into `archive`: sorted names, no owners, one time."""
    with tarfile.open(archive, "w:xz", preset=9) as tar:
        for path in sorted(folder.rglob("*")):
            entry = tarfile.TarInfo(path.relative_to(folder).as_posix())
            entry.mtime, entry.mode = 1_795_000_000, 0o755 if path.is_dir() else 0o644
            entry.type = tarfile.DIRTYPE if path.is_dir() else tarfile.REGTYPE
            content = b"" if path.is_dir() else path.read_bytes()
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))


if __name__ == "__main__":
    if sys.argv[1] == "act":
        act(*sys.argv[2:])
    else:
        with tempfile.TemporaryDirectory() as temporary:
            folder_ = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(temporary) / "kept"
            write(folder_)
            packed(folder_, sys.argv[1])
