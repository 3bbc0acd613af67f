"""Seeds that leave the plateau, and what they found: isotropic, symmetric matrices under which the energy rises."""

import numpy as np
import xarray as xr

from attnflow.experiments import Claim, observed
from attnflow.experiments.kit import LEVEL, Rows, averaged, share_of, student
from attnflow_gallery.training_finds_attention.simulate import Parameters, weights_of

PLATEAU = observed("The plateau")
ISOTROPIC = observed("Isotropic weights")
ENERGY = observed("The energy")
LAYERS = observed("Weights of each layer")
LEFT = 1.1
"""A seed has left the plateau if its test loss is at most this multiple of the best isotropic flow's."""
ROUNDING = 1e-9
"""By how much the logarithm of the energy may fall in a layer without that being called a fall."""


def products(part: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """(mark, seed, ..., d, d): Q^T K and V."""
    query, key, value = weights_of(part)
    return np.einsum("...ab,...ac->...bc", query, key), value


def scale(matrix: np.ndarray) -> np.ndarray:
    """tr/d."""
    return np.asarray(np.trace(matrix, axis1=-2, axis2=-1) / matrix.shape[-1])


def anisotropy(matrix: np.ndarray) -> np.ndarray:
    """|M - (tr M/d) I| / |M|: 0 for multiples of the identity, about 1 for a random matrix."""
    rest = matrix - scale(matrix)[..., None, None] * np.eye(matrix.shape[-1])
    return np.asarray(np.linalg.norm(rest, axis=(-2, -1)) / np.linalg.norm(matrix, axis=(-2, -1)))


def skewness(matrix: np.ndarray) -> np.ndarray:
    """|M - M^T| / 2|M|: 0 for symmetric matrices, about 0.7 for a random one."""
    skew = (matrix - np.swapaxes(matrix, -1, -2)) / 2
    return np.asarray(np.linalg.norm(skew, axis=(-2, -1)) / np.linalg.norm(matrix, axis=(-2, -1)))


def left(data: dict[str, xr.Dataset], name: str = "shared") -> np.ndarray:
    """Which seeds of a training have left the plateau at the end."""
    return np.asarray(data[name]["test_loss"].values[-1] <= LEFT * float(data["grid"]["loss"].min()))


def rises(seen: xr.Dataset) -> np.ndarray:
    """(mark, seed), (start): the share of prompts on which the energy falls in no layer."""
    return np.asarray((seen["gain"].values >= -ROUNDING).all(axis=-1).mean(axis=-1))


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """How many seeds leave the plateau; of those, shape, symmetry and energy; weights of each layer."""
    found = left(data)
    told = found if found.any() else np.ones_like(found)  # without any, all are asked
    attention, value = products(data["shared"])
    share, seeds = rises(data["shared-seen"]), data["shared"]["seed"].values
    shape, skew, energy, count = Rows(), Rows(), Rows(), Rows()
    number = data["shared-seen"]["clusters"].values.mean(axis=2)
    for k in np.flatnonzero(told):
        for words, matrix in (("Q^T K", attention), ("V", value)):
            shape.add(parameters.flat, anisotropy(matrix)[-1, k], 0.0, f"{words} of seed {seeds[k]}")
            skew.add(parameters.flat, skewness(matrix)[-1, k], 0.0, f"{words} of seed {seeds[k]}")
        energy.add(1.0, share[-1, k], 0.0, f"seed {seeds[k]}")
        count.add(0.5, number[-1, k, -1] / number[-1, k, 0], 0.0, f"seed {seeds[k]}")
    own = anisotropy(products(data["own"])[1])[-1].max(axis=-1)
    mean, error = averaged(rises(data["before"]))
    most = parameters.larger[-1]
    name = f"start-{most:g}"
    large = data[name]["test_loss"].values[-1].mean()
    same = list(data["shared"]["mark_step"].values).index(data[name]["mark_step"].values[-1])
    fixed = "fixed after runs with salt 0, before those with the salts of the record"
    every = f"all {parameters.prompts} prompts, all {parameters.layers} layers"
    return [
        Claim.at_least(
            f"seeds of {parameters.starts} that leave the plateau",
            parameters.least,
            float(found.sum()),
            0.0,
            fixed,
            origin=PLATEAU,
            detail=share_of(found),
        ),
        Claim.at_least(
            f"a start of {most:g} in place of {parameters.start:g}: mean test loss after {parameters.larger_steps} "
            "steps, over that of the smaller start",
            1.2,
            float(large / data["shared"]["test_loss"].values[same].mean()),
            0.0,
            fixed,
            origin=PLATEAU,
            detail=f"{share_of(left(data, name))} seeds have left the plateau",
        ),
        shape.at_most("these seeds: anisotropy of Q^T K and V", fixed, origin=ISOTROPIC),
        skew.at_most("these seeds: antisymmetric share of Q^T K and V", fixed, origin=ISOTROPIC),
        energy.at_least("these seeds: share of prompts on which the energy falls in no layer", every, origin=ENERGY),
        Claim.at_most(
            "before training: mean share of such prompts",
            0.5,
            float(mean),
            float(student(LEVEL, parameters.before) * error),
            f"{fixed}; Student's test of {parameters.before} starts at level {LEVEL:g}",
            origin=ENERGY,
            level=LEVEL,
        ),
        count.at_most("these seeds: clusters after the last layer over those before the first", fixed, origin=ENERGY),
        Claim.at_least(
            "weights of each layer: largest anisotropy of V, least over seeds",
            0.2,
            own,
            0.0,
            fixed,
            origin=LAYERS,
        ),
    ]
