"""The inverse temperature that training finds, anisotropies, losses, and the mirror image."""

import numpy as np
import xarray as xr

from attnflow.experiments import Claim, consequence, observed, reported
from attnflow.experiments.kit import LEVEL, Rows, student
from attnflow_gallery.in_context_denoising.simulate import TASKS, Parameters, weights_of

POSTERIOR = reported("smart2025context", "abstract")
MIRROR = consequence("The mirror image")
SEEN = observed("What training reaches")
LEFT = 1.1
"""A seed has left the plateau if its test loss is at most this multiple of that of the best isotropic layer."""


def products(part: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """(mark, seed, d, d): Q^T K and V."""
    query, key, value = weights_of(part)
    return np.einsum("msab,msac->msbc", query, key), value


def scale(matrix: np.ndarray) -> np.ndarray:
    """tr/d."""
    return np.asarray(np.trace(matrix, axis1=-2, axis2=-1) / matrix.shape[-1])


def anisotropy(matrix: np.ndarray) -> np.ndarray:
    """|M - (tr M/d) I| / |M|: 0 for multiples of the identity, about 1 for a random matrix."""
    rest = matrix - scale(matrix)[..., None, None] * np.eye(matrix.shape[-1])
    return np.asarray(np.linalg.norm(rest, axis=(-2, -1)) / np.linalg.norm(matrix, axis=(-2, -1)))


def flat(dim: int) -> float:
    """The largest anisotropy: half of that of I/sigma^2 where one of the coordinates is three times as noisy."""
    return float(anisotropy(np.diag(np.r_[1 / 9, np.ones(dim - 1)])) / 2)


def left(data: dict[str, xr.Dataset], name: str) -> np.ndarray:
    """Which seeds of a task have left the plateau of the start."""
    return np.asarray(data[f"train-{name}"]["test_loss"].values[-1] <= LEFT * float(data[f"grid-{name}"]["loss"].min()))


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Scale, sign, shape and loss of what every seed found; the mirror image."""
    beta, sign, shape, before = Rows(), Rows(), Rows(), Rows()
    done = {name: left(data, name) for name in TASKS}
    count = sum(int(one.sum()) for one in done.values())
    for name, sigma in zip(TASKS, parameters.noises, strict=True):
        part = data[f"train-{name}"]
        attention, value = products(part)
        for k, seed in enumerate(part["seed"].values):
            before.add(0.5, anisotropy(attention)[0, k], 0.0, f"{name}, seed {seed}")
            if count and not done[name][k]:  # without any, all are asked
                continue
            label = f"{name}, seed {seed}"
            found, v = scale(attention)[-1, k], scale(value)[-1, k]
            beta.add(1.0, abs(found) * sigma**2, parameters.far, label)
            same, positive = np.sign(found) * np.sign(v), min(np.sign(found), np.sign(v))
            sign.add(1.0, positive if name == TASKS[0] else same, 0.0, label)
            shape.add(flat(parameters.dim), max(anisotropy(attention)[-1, k], anisotropy(value)[-1, k]), 0.0, label)
    grid, other = (data[f"grid-{name}"] for name in TASKS[::-1])
    mirror = Rows()
    allowed = student(LEVEL, parameters.test, grid["loss"].size)
    mirror.add(0.0, grid["difference"].values, allowed * grid["error"].values, "a point of the grid")
    half = "half of that of the posterior mean where one coordinate is three times as noisy (derivation)"
    finite = "the valley of the loss is flat, and finite contexts move its bottom (derivation)"
    reason = f"Student's test of {parameters.test} prompts at level {LEVEL:g}, all points of the grid together"
    return [
        beta.equal("these seeds: |tr Q^T K|/d times sigma^2", finite, origin=POSTERIOR),
        sign.equal("these seeds: signs, positive for four centres, equal for a great sphere", "a sign", origin=MIRROR),
        shape.at_most("these seeds: largest anisotropy of Q^T K and V after training", half, origin=SEEN),
        before.at_least("smallest anisotropy of Q^T K before training", "Gaussian matrices: about 0.99", origin=SEEN),
        Claim.at_least(
            f"seeds of {2 * parameters.starts} that leave the plateau",
            parameters.least,
            float(count),
            0.0,
            "fixed after trials, before the salts of the record",
            origin=SEEN,
        ),
        mirror.equal("great sphere: loss of the mirror image, less the loss", reason, origin=MIRROR, level=LEVEL),
        Claim.at_least(
            "four centres: loss of the mirror image over the loss",
            2.0,
            (other["mirror"] / other["loss"]).values,
            0.0,
            "centres have no antipodes, so that the answer points away from the target",
            origin=MIRROR,
        ),
    ]
