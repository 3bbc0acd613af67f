"""Tokens on the line without layer norm: random starts, and exactly soluble ones of two clusters and a token at 0."""

import dataclasses
import functools
import itertools
from collections.abc import Iterable

import numpy as np
import xarray as xr

from attnflow.axes import Along
from attnflow.experiments import Salted, Study
from attnflow.experiments.kit import Frames, frames
from attnflow.fields import Attention, Rescaled
from attnflow.observe import attention_matrix
from attnflow.spaces import Euclidean
from attnflow.tokens import Tokens, stack

LINE = (-1.3, -0.4, -0.05, 0.2, 0.7, 1.9)
"""The example."""
SHOWN = 8.0
"""Until when the attention matrices of the example are kept."""
LARGEST = 40.0
"""Exact starts are looked at in the last frame at which u = QK x^2 of the outer tokens is below this number."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    sizes: tuple[int, ...] = (6, 24)
    """Numbers of tokens of random starts."""
    starts: int = 120
    """Random ones of each size, Gaussian, V = QK = 1 (units of time and length); every third has all tokens > 0."""
    radii: tuple[float, ...] = (0.7, 1.0, 1.6)
    """a of the exact starts, tokens at -a, 0 and a."""
    values: tuple[float, ...] = (0.5, 1.0, 2.0)
    products: tuple[float, ...] = (0.5, 2.0)
    """QK of the exact starts."""
    middles: tuple[float, ...] = (0.0, 0.5)
    """Mass of the token at 0 over that of the two others together."""
    until: float = 16.0
    legs: int = 128
    steps: int = 12
    """Per leg; half as long ones are taken for comparison."""
    look: float = 6.0
    span: float = 0.5
    """When the decay of weights is looked at, and for how long."""


QUICK = Parameters(
    sizes=(6,), starts=12, radii=(0.7,), values=(0.5, 2.0), products=(2.0,), until=14.0, legs=112, steps=4
)


def exact(parameters: Parameters) -> list[tuple[float, float, float, float]]:
    """a, V, QK and the mass in the middle of the exact starts."""
    return list(itertools.product(parameters.radii, parameters.values, parameters.products, parameters.middles))


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Frames and attention matrices: random starts for each number of tokens, and exact starts."""
    count = len(parameters.sizes) + 1
    found = {
        f"n{n}": study.part(f"n{n}", functools.partial(_random, parameters, study, n, k / count, 1 / count))
        for k, n in enumerate(parameters.sizes)
    }
    return found | {
        "exact": study.part("exact", functools.partial(_exact, parameters, study, 1 - 1 / count, 1 / count))
    }


def _random(parameters: Parameters, study: Study, n: int, done: float, part: float) -> xr.Dataset:
    x = parameters.rng(2, n).standard_normal((parameters.starts, n))
    x[::3] = np.abs(x[::3])
    if n == len(LINE):
        x[1] = LINE
    x, ones = np.sort(x, axis=1), np.ones(parameters.starts)
    tokens = [Tokens(one[:, None], space=Euclidean(1)) for one in x]
    found = _follow(parameters, study, f"{len(x)} starts of {n} tokens", done, part, tokens, ones, ones)
    later, last = (int(np.argmin(np.abs(found.time - t))) for t in (parameters.look + parameters.span, SHOWN))
    made = _dataset(found)
    made["end"] = ("start", "query", "key"), _matrices(found, tokens, [(-1, k) for k in range(len(x))], ones, ones)
    made["later"] = ("start", "query", "key"), _matrices(found, tokens, [(later, k) for k in range(len(x))], ones, ones)
    made["story"] = ("early", "query", "key"), _matrices(found, tokens, [(f, 1) for f in range(last + 1)], ones, ones)
    return made


def _exact(parameters: Parameters, study: Study, done: float, part: float) -> xr.Dataset:
    known = exact(parameters)
    value, product = (np.array([one[k] for one in known]) for k in (1, 2))
    tokens = [Tokens(*triple(a, mass), space=Euclidean(1)) for a, _, _, mass in known]
    found = _follow(parameters, study, f"{len(known)} exact starts", done, part, tokens, value, product)
    made = _dataset(found)
    square = product * (np.exp(np.outer(found.time, value)) * found.fine[:, :, -1, 0]) ** 2
    frame = np.array([np.flatnonzero(one < LARGEST)[-1] for one in square.T])
    made["look"] = "start", frame
    made["matrix"] = (
        ("start", "query", "key"),
        _matrices(found, tokens, zip(frame, range(len(known)), strict=True), value, product),
    )
    return made


def triple(radius: float, middle: float) -> tuple[np.ndarray, np.ndarray]:
    """Positions and masses of tokens at -a, 0 and a."""
    return np.array([[-radius], [0.0], [radius]]), np.array([1.0, 2 * middle, 1.0])


def _follow(parameters: Parameters, study: Study, words: str, done: float, part: float, tokens: list[Tokens],
            value: np.ndarray, product: np.ndarray) -> Frames:  # fmt: skip
    field = Rescaled(
        Attention(1.0, query=Along("start", product[:, None, None]), value=Along("start", value[:, None, None]))
    )
    return frames(
        field, stack("start", range(len(tokens)), tokens), parameters.until, parameters.legs, parameters.steps,
        lambda share: study.progress(words, done + part * share),
    )  # fmt: skip


def _dataset(found: Frames) -> xr.Dataset:
    return xr.Dataset(
        {
            "fine": (("frame", "start", "token"), found.fine[..., 0]),
            "coarse": (("frame", "start", "token"), found.coarse[..., 0]),
            "error": (("frame", "start"), found.error),
            "time": (("frame",), found.time),
        }
    )


def _matrices(found: Frames, tokens: list[Tokens], chosen: Iterable[tuple[int, int]], value: np.ndarray,
              product: np.ndarray) -> np.ndarray:  # fmt: skip
    """Attention matrices at some (frame, start), x = e^(Vt) z."""
    made = []
    for frame, k in chosen:
        grown = np.exp(min(value[k] * found.time[frame], 300.0)) * found.fine[frame, k]
        raw = Tokens(grown, tokens[k].masses, space=Euclidean(1))
        made.append(np.asarray(attention_matrix(Attention(product[k]), raw)))
    return np.array(made)
