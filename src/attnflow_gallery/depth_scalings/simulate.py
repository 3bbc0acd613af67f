"""Random layers from orthonormal tokens: networks of several step lengths, depths and numbers of heads."""

import dataclasses
from typing import Any

import numpy as np
import xarray as xr

from attnflow.axes import Along
from attnflow.experiments import Salted, Study
from attnflow.flows import Layers, solve
from attnflow.random_layers import gram_layers, random_attention
from attnflow.spaces import Sphere
from attnflow.tokens import orthonormal
from attnflow_gallery.depth_scalings import paths

BLOCK = 800
"""Networks that are followed at once; numbers of networks are multiples of it."""
Network = tuple[float, int, int, int]
"""eta, H, L, and how many of them."""
KINDS = {"diffusive": 0.0, "frozen": 0.0, "ballistic": 1.0}
"""Of networks, with v of E V = v I."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    n: int = 4
    d: int = 8
    b: float = 1.0
    diffusive: tuple[Network, ...] = (
        (0.1, 1, 100, 16_000),
        (0.25, 1, 16, 24_000),
        (0.3, 4, 44, 12_000),
        (0.5, 4, 16, 16_000),
        (1.0, 16, 16, 12_000),
    )
    """Networks with tau = 1 (0.99 for the third)."""
    paths: int = 16_000
    """Of the diffusion, for the limit of these networks."""
    path_steps: int = 16
    """To tau = 1, and twice as many."""
    frozen: tuple[Network, ...] = ((1 / 128, 1, 128, 8_000), (1 / 64, 4, 64, 16_000))
    """eta = 1/L; and with steps twice as long and the same random numbers."""
    ballistic: tuple[Network, ...] = (
        (1 / 10, 1, 10, 24_000),
        (1 / 50, 1, 50, 24_000),
        (1 / 25, 4, 25, 9_600),
        (1 / 25, 16, 25, 4_800),
        (1 / 50, 16, 50, 4_800),
    )
    """eta = 1/L and E V = I."""
    compared: Network = (0.5, 4, 16, 4_800)
    """On vectors and on Gram matrices, with the logit scale `compared_b`."""
    compared_b: float = 4.0
    moments: int = 40_000
    """Pairs of Q and K for one layer's products of softmax means, at every overlap of `levels`."""
    levels: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.62)


QUICK = Parameters(
    diffusive=((0.1, 1, 100, 3_200), (0.25, 1, 16, 6_400), (0.5, 4, 16, 3_200), (1.0, 16, 16, 1_600)),
    paths=4_000,
    frozen=((1 / 64, 1, 64, 3_200), (1 / 32, 4, 32, 6_400)),
    ballistic=((1 / 10, 1, 10, 1_600), (1 / 50, 1, 50, 3_200), (1 / 25, 16, 25, 800), (1 / 50, 16, 50, 800)),
    compared=(0.5, 4, 16, 3_200),
    moments=10_000,
    levels=(0.0, 0.2, 0.4, 0.62),
)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Mean overlaps after the last layer of every network; one layer's moments."""
    colder = dataclasses.replace(parameters, b=parameters.compared_b)
    makers: dict[str, Any] = {
        f"{kind}{index}": (overlaps, parameters, network, mean_value, 10 * number + index)
        for number, (kind, mean_value) in enumerate(KINDS.items())
        for index, network in enumerate(getattr(parameters, kind))
    }
    longer = {k: (2 * eta, heads, layers, count) for k, (eta, heads, layers, count) in enumerate(parameters.frozen)}
    makers |= {f"longer{k}": (overlaps, parameters, network, 0.0, 10 + k) for k, network in longer.items()}
    makers["diffusion"] = diffusion, parameters
    makers["gram"] = overlaps, colder, parameters.compared, 0.0, 90
    makers["vectors"] = vectors, colder, parameters.compared
    makers["moments"] = moments, parameters
    return study.parts(makers)


def overlaps(parameters: Parameters, network: Network, mean_value: float, label: int) -> xr.Dataset:
    """Overlaps after the last layer, from Gram matrices alone."""
    eta, heads, layers, replicas = network
    sizes: dict[str, Any] = {"heads": heads, "n": parameters.n, "replicas": BLOCK, "mean_value": mean_value}
    found = []
    for block in range(replicas // BLOCK):
        seed = parameters.seed(100_000 + 100 * label + block)
        path = gram_layers(0.0, parameters.b, eta, layers, parameters.d, seed=seed, **sizes)
        found.append(path.gram[:, -1])
    return _stored(np.concatenate(found))


def vectors(parameters: Parameters, network: Network) -> xr.Dataset:
    """Overlaps after the last layer, from the tokens themselves."""
    eta, heads, layers, replicas = network
    seeds = parameters.seeds(range(1000, 1000 + replicas))
    field = random_attention(parameters.d, parameters.b, heads, step=eta, seed=Along("seed", seeds))
    start = orthonormal(Sphere(parameters.d), n=parameters.n)
    flow = solve(field, start, eta * layers, method=Layers(eta), save=1)
    x = flow.dataset["positions"].isel(time=-1).transpose("seed", "token", "dim").values
    return _stored(np.einsum("rik,rjk->rij", x, x))


def diffusion(parameters: Parameters) -> xr.Dataset:
    """Estimates (step, path) of the mean overlap at tau = 1 of the diffusion, for steps of time h and h/2."""
    count = parameters.path_steps
    rows = [paths.estimates(parameters, count * 2**half, parameters.rng(8, half)) for half in range(2)]
    return xr.Dataset({"estimate": (("step", "path"), np.array(rows))})


def _stored(gram: np.ndarray) -> xr.Dataset:
    """The mean over pairs and the first pair of overlaps (replica, n, n)."""
    pairs = gram[:, *np.triu_indices(gram.shape[1], 1)]
    return xr.Dataset({"mean": ("replica", pairs.mean(axis=1)), "first": ("replica", pairs[:, 0])})


def moments(parameters: Parameters) -> xr.Dataset:
    """For tokens with one common overlap: E |m_i|^2, E <m_i, m_j>, and what makes the mean overlap fluctuate.

    The mean overlap moves by 2/(n (n-1)) sum_i <w_i, V m_i>, w_i = sum_j (x_j - R_ij x_i). Kept are the mean over Q and
    K of the variance that V brings (times d), and the variance over Q and K of the part of E V = I.
    """
    n, rows = parameters.n, []
    for index, level in enumerate(parameters.levels):
        x = np.linalg.cholesky((1 - level) * np.eye(n) + level)
        gram = x @ x.T
        w = np.sum(x, axis=0) - np.sum(gram, axis=1)[:, None] * x
        many = np.broadcast_to(x, (parameters.moments, n, n))
        m = paths.softmax_means(parameters.b, parameters.d, many, parameters.rng(7, index))
        products = np.einsum("rik,rjk->rij", m, m)
        own = np.einsum("rii->r", products) / n
        shared = (np.sum(products, axis=(1, 2)) / n - own) / (n - 1)
        share = (2 / (n * (n - 1))) ** 2
        noise = share * np.einsum("rij,ij->r", products, w @ w.T)
        push = 2 / (n * (n - 1)) * np.einsum("rik,ik->r", m, w)
        rows.append((own.mean(), shared.mean(), shared.std() / np.sqrt(len(m)), noise.mean(), push.var()))
    names = ("own", "shared", "shared_error", "noise", "push")
    columns = zip(names, np.array(rows).T, strict=True)
    return xr.Dataset({name: ("level", column) for name, column in columns}, {"level": list(parameters.levels)})
