"""Whether results are bit by bit what they were: hashes of the arrays of all presets and of 40 calls.

    python benchmarks/bitwise.py [--only PATTERN] [--write]

Prints every case whose hash differs from `bitwise.json`; `--write` writes the hashes anew. The hash of a result is the
sha256 of names, dtypes, shapes and bytes of its arrays. The compiler and the vector units decide the last digits, so
hashes are comparable on one machine with one version of JAX and one set of XLA flags; the file says which. Presets
whose full size takes more than ten seconds are run smaller, as `PRESETS` says.
"""

import argparse
import dataclasses
import fnmatch
import hashlib
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

import attnflow as af

FILE = Path(__file__).with_suffix(".json")
PRESETS: dict[str, list[str]] = {
    "density": [],
    "mean-shift": [],
    "metastability": [
        "tokens.n=16",
        "field.beta=10",
        "solve_long.method.frames=200",
    ],  # of n = 200, beta = 25, 4000 frames
    "million": ["tokens.n=1000", "solve.until=1.0"],  # of a million, to 5.0
    "spirals": ["fit.steps=60"],  # of 250
    "torus": ["tokens.n=60"],  # of 150
}
"""Changes that make a preset small enough; none where it is run as it is."""
CHANGING = ("match, gates", "exact, gates on the sphere")
"""Cases with `ReluUnit` on the sphere, whose closed form was corrected: their hashes may differ."""

RNG = np.random.default_rng(7)
MATRICES = RNG.standard_normal((6, 3, 3))
ROWS = RNG.standard_normal((5, 3))


def tokens(n: int = 12, dim: int = 3, **given: Any) -> Any:
    return af.uniform(af.Sphere(dim), n=n, seed=given.pop("seed", 0), **given)


def solve(field: Any, mu: Any | None = None, until: float = 2.0, **given: Any) -> Any:
    given.setdefault("save", 8)
    return af.solve(field, tokens() if mu is None else mu, until, **given)


def single() -> Any:
    """Tokens of float32."""
    return af.from_array(np.asarray(tokens().positions, np.float32))


def clouds(count: int, seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    drawn = [af.Sphere(3).sample(rng, 1) + 0.8 * rng.standard_normal((30, 3)) for _ in range(count)]
    return [af.Tokens(x / np.linalg.norm(x, axis=1, keepdims=True)) for x in drawn]


def match(layer: float | None = None) -> Any:
    targets = [af.Tokens(af.Sphere(3).sample(np.random.default_rng(50 + k), 1)) for k in range(2)]
    found = af.control.match_measures(clouds(2, 5), targets, layer=layer)
    names = ("layer", "w1", "w2", "before", "attention", "separation", "tries")
    made = dataclasses.make_dataclass("Matching", names)(*(getattr(found, name) for name in names))
    return made, found.schedule.field, found.schedule.durations


def fit(steps: int, **given: Any) -> Any:
    start = af.learn.Classifier(af.learn.residual_network(2, 8, 5, seed=0), np.eye(2), method=af.Layers(1 / 5))
    return af.learn.fit(start, *af.learn.interleaved_classes(60, "moons", seed=0), steps=steps, **given)


def order(t: Any, mu: Any) -> Any:
    return jnp.linalg.norm(mu.masses @ mu.positions)


def evolve(field: Any, degree: int = 32, **given: Any) -> Any:
    mf = af.meanfield
    return mf.evolve(field, mf.perturbed(mf.CircleBasis(degree), 1, 0.3), 1.0, save=6, **given)


def sphere_density() -> Any:
    mf = af.meanfield
    return mf.evolve(af.Attention(3.0), mf.perturbed(mf.SphereBasis(12), 2, 0.2), 0.5, kappa=0.05, save=4)


def continued() -> Any:
    return solve(af.Attention(4.0), until=1.0, save=4).continued(2.0)


def torus() -> Any:
    return af.uniform(af.Torus(2), n=12, seed=1)


def line() -> Any:
    return af.from_array(np.linspace(-1, 1, 9)[:, None] * [1.0, 0.5], space=af.Euclidean(2))


def decoder() -> Any:
    field = af.Attention(2.0, mask=af.Causal())
    found = af.decoders.retrieval_profile(field, n=16, until=0.5, d=3, prompts=64, bins=4)
    names = ("edges", "mean", "standard_error", "plain_error", "n", "d", "degree", "until", "prompts")
    return dataclasses.make_dataclass("Estimates", names)(*(getattr(found, name) for name in names))


CALLS: dict[str, Callable[[], Any]] = {
    "adaptive": lambda: solve(af.Attention(9.0), tokens(32), 20.0, save=None),
    "adaptive, unnormalised": lambda: solve(af.Attention(4.0, normaliser=af.Unnormalised())),
    "adaptive, sinkhorn": lambda: solve(af.Attention(2.0, normaliser=af.Sinkhorn())),
    "adaptive, matrices": lambda: solve(af.Attention(1.0, query=MATRICES[0], key=MATRICES[1], value=MATRICES[2])),
    "adaptive, heads": lambda: solve(af.Attention(1.0, query=MATRICES[:2], key=MATRICES[2:4], value=MATRICES[4:])),
    "adaptive, polynomial kernel": lambda: solve(
        af.Attention(kernel=af.kernels.Polynomial(2, 1.0), normaliser=af.Unnormalised())
    ),
    "adaptive, gaussian kernel on the plane": lambda: solve(af.Attention(kernel=af.kernels.Gaussian(2.0)), line()),
    "adaptive, causal mask": lambda: solve(af.Attention(4.0, mask=af.Causal(0.1))),
    "adaptive, window": lambda: solve(af.Attention(4.0, mask=af.Window(3))),
    "adaptive, table of a mask": lambda: solve(af.Attention(4.0, mask=af.masks.Table(np.tri(12)))),
    "adaptive, torus": lambda: solve(af.Attention(3.0), torus()),
    "adaptive, total with a perceptron": lambda: solve(
        af.fields.Total([af.Attention(3.0), af.Perceptron(ROWS, np.ones(5), ROWS.T, "tanh")])
    ),
    "adaptive, potential": lambda: solve(af.Potential(ROWS, np.zeros(5), np.ones(5), "relu")),
    "adaptive, pieces of weights": lambda: solve(af.Attention(2.0, value=af.weights.Pieces([0.0, 0.7], MATRICES[:2]))),
    "adaptive, batch of seeds and beta": lambda: solve(
        af.Attention(af.Along("beta", [1.0, 6.0])), tokens(seed=range(3))
    ),
    "adaptive, stop at consensus": lambda: solve(
        af.Attention(1.0), tokens(seed=range(2)), 50.0, save=50, stop=af.stopping.Consensus(1e-3)
    ),
    "adaptive, observables only": lambda: solve(af.Attention(4.0), observe={"order": order}, keep=()),
    "adaptive, masses": lambda: solve(af.Attention(4.0), af.Tokens(tokens().positions, masses=np.arange(1.0, 13) / 78)),
    "adaptive, log-spaced frames, chunks of 3": lambda: solve(
        af.Attention(4.0), save=af.saving.LogSpaced(10, first=1e-3), chunk=3
    ),
    "adaptive, continued": continued,
    "adaptive, series on the circle": lambda: solve(
        af.Attention(20.0, sum=af.sums.Circle(1e-8, 40)), tokens(300, 2), 0.5
    ),
    "adaptive, dense sum, 200 tokens on S^7": lambda: solve(af.Attention(9.0, sum=af.sums.Dense()), tokens(200, 8)),
    "adaptive, tiled sum, 600 tokens": lambda: solve(af.Attention(9.0, sum=af.sums.Tiled()), tokens(600), 1.0),
    "adaptive, tolerance, 3,000 tokens on S^1": lambda: solve(af.Attention(30.0), tokens(3000, 2), 0.5, tol=1e-8),
    "fixed": lambda: solve(af.Attention(9.0), method=af.Fixed(0.1), stop=af.stopping.Still(1e-3)),
    "fixed, float32": lambda: solve(af.Attention(4.0), single(), method=af.Fixed(0.1)),
    "fixed, euler, hardmax": lambda: solve(
        af.Attention(4.0, normaliser=af.Hardmax()), method=af.Fixed(0.05, af.step_rules.Euler())
    ),
    "layers, rotary, pre-norm": lambda: solve(
        af.norms.Pre(af.Attention(3.0, mask=af.Causal(), encoding=af.encodings.Rotary())),
        af.from_array(tokens(12, 4).positions, space=af.Euclidean(4)),
        method=af.Layers(0.1), save=af.saving.EveryLayer(),
    ),
    "layers, float32, random weights": lambda: solve(
        af.Attention(1.0, value=af.weights.Random((3, 3), seed=1, step=0.1)), single(), method=af.Layers(0.1)
    ),
    "exact, drift and affine": lambda: solve(
        af.fields.InTurn([af.fields.Drift([0.0, 0.0, 1.0]), af.fields.MeanAttention(np.eye(3))], [1.0, 1.0]),
        method=af.Exact(),
    ),
    "exact, gates on the sphere": lambda: solve(
        af.fields.ReluUnit([1.0, 0.5, 0.0], [0.0, 1.0, 0.2], 0.1), method=af.Exact()
    ),
    "noise, brownian, batch": lambda: solve(af.Attention(4.0), noise=af.Brownian(0.05, seed=af.Along("path", [0, 1]))),
    "noise, heun": lambda: solve(af.Attention(4.0), noise=af.Brownian(0.05), method=af.Heun(0.05)),
    "long": lambda: af.solve_long(af.Attention(10.0), tokens(8)),
    "long, unnormalised, finite": lambda: af.solve_long(
        af.Attention(6.0, normaliser=af.Unnormalised()), tokens(8, 2), 1e6
    ),
    "evolve, circle": lambda: evolve(af.Attention(4.0), kappa=0.1),
    "evolve, sphere": sphere_density,
    "fit": lambda: fit(20),
    "match, gates": match,
    "decoder": decoder,
}  # fmt: skip
"""40 calls, by name."""


def preset(name: str) -> Callable[[], Any]:
    def call() -> Any:
        spec = af.runs.load_spec(name, PRESETS[name])
        return af.flows.Drive(spec.work.checked()).run()

    return call


def arrays(result: Any, name: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """The named arrays of a result, in an order of their own."""
    if isinstance(result, xr.Dataset):
        yield from ((f"{name}/{key}", result[key].values) for key in sorted(result.variables, key=str))
    elif isinstance(result, np.ndarray | np.generic | jax.Array | bool | int | float | complex):
        yield name, np.asarray(result)
    elif hasattr(result, "dataset"):
        yield from arrays(result.dataset, name)
    elif dataclasses.is_dataclass(result):
        for field in dataclasses.fields(result):
            yield from arrays(getattr(result, field.name, None), f"{name}/{field.name}")
    elif isinstance(result, Mapping):
        for key in sorted(result, key=str):
            yield from arrays(result[key], f"{name}/{key}")
    elif isinstance(result, tuple | list):
        for k, one in enumerate(result):
            yield from arrays(one, f"{name}/{k}")


def digest(result: Any) -> str:
    """sha256 of the arrays of a result."""
    total, count = hashlib.sha256(), 0
    for name, array in arrays(result):
        if array.dtype == object:
            raise TypeError(f"{name} is an array of objects")
        array = np.ascontiguousarray(array)
        total.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        total.update(array.tobytes())
        count += 1
    if not count:
        raise TypeError(f"a {type(result).__name__} without arrays")
    return total.hexdigest()


def machine() -> dict[str, str]:
    """What the last digits depend on."""
    model = platform.processor()
    if (facts := Path("/proc/cpuinfo")).exists():
        names = [line.split(":", 1)[1].strip() for line in facts.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    return {
        "cpu": model,
        "python": platform.python_version(),
        "jax": jax.__version__,
        "numpy": np.__version__,
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
        "device": jax.default_backend(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="*", help="cases whose name matches this pattern, as in 'adaptive*'")
    parser.add_argument("--write", action="store_true", help="write the hashes of these cases to the file")
    options = parser.parse_args()
    cases = {f"preset {name}": preset(name) for name in PRESETS} | CALLS
    chosen = [name for name in cases if fnmatch.fnmatch(name, options.only)]
    stored = json.loads(FILE.read_text()) if FILE.exists() else {"machine": {}, "hashes": {}}
    here, print_ = machine(), lambda text: print(text, flush=True)
    print_(f"attnflow of {Path(af.__file__).parent}")
    for key, value in here.items():
        if not options.write and stored["machine"].get(key) != value:
            was = stored["machine"].get(key)
            print_(f"{key} is {value!r} and was {was!r}: hashes are comparable only on one machine, set up alike")
    found, different, spent = {}, 0, time.process_time()
    for name in chosen:
        began, cpu = time.perf_counter(), time.process_time()
        found[name] = digest(cases[name]())
        times = f"{time.perf_counter() - began:5.1f} s, {time.process_time() - cpu:5.1f} s of CPU"
        was = stored["hashes"].get(name)
        verdict = "same" if was == found[name] else "new" if was is None else "DIFFERS"
        if verdict == "DIFFERS" and name in CHANGING:
            verdict = "differs, as expected"
        different += verdict in ("DIFFERS", "new")
        print_(f"{verdict:8} {name:44} {times}")
    print_(f"{len(chosen)} cases, {different} of them differ; {time.process_time() - spent:.0f} s of CPU")
    if options.write:
        hashes = {name: (stored["hashes"] | found).get(name) for name in cases if name in stored["hashes"] | found}
        made = {"machine": here, "expected_to_change": list(CHANGING), "hashes": hashes}
        FILE.write_text(json.dumps(made, indent=2) + "\n")
        return 0
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
