"""The full layer against every ablation: which collapse, and which glue tokens."""

import numpy as np
import xarray as xr

from attnflow.experiments import Claim, observed
from attnflow.experiments.kit import Rows, lower_ends
from attnflow_gallery.weight_sharing_iterated.simulate import GLUED, NETWORK, Parameters, name

SEEN = observed("What is iterated")
HELD = observed("What holds the clusters")
ONE = 0.99
"""Mean overlap above which tokens have collapsed; fixed beforehand."""
APART = 0.7
"""Mean overlap below which they have not; fixed beforehand."""
LEAST = 0.01
"""Of a difference of shares, so that an equal ablation makes the claim fail; fixed beforehand."""
DEEP = 64
"""The depth at which ablations are asked; fixed beforehand."""
INTERVAL = "end of the interval of 99.9 % of the mean over reactions"


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """The full layer keeps clusters; ablations collapse; norms glue."""
    return [_apart(parameters, data), *_collapsed(parameters, data), _glued(parameters, data)]


def _deep(parameters: Parameters) -> list[int]:
    return [depth for depth in parameters.depths if depth >= DEEP]


def _at(part: xr.Dataset, quantity: str, depth: int) -> np.ndarray:
    return np.asarray(part[quantity].sel(depth=depth).values)


def _apart(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows, said = Rows(), []
    for depth in _deep(parameters):
        found = _at(data[NETWORK], "overlap", depth)
        rows.add(APART, -lower_ends(-found)[1], 0.0, f"depth {depth}")
        clusters = _at(data[NETWORK], "clusters", depth).mean()
        said.append(f"depth {depth}: overlap {found.mean():.3f}, {clusters:.1f} clusters")
    return rows.at_most(
        f"full layer, depth {DEEP} and more: mean overlap, far from 1",
        f"upper {INTERVAL}; {APART:g} was fixed beforehand",
        origin=SEEN,
        detail="; ".join(said),
    )


def _collapsed(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    found = []
    for case, depth, origin in (
        ("permuted", min(parameters.depths), SEEN),
        ("attention only", DEEP, SEEN),
        ("biases zero", DEEP, HELD),
    ):
        rows, values = Rows(), _at(data[name(case)], "overlap", depth)
        rows.add(ONE, lower_ends(values)[1], 0.0, case)
        found.append(
            rows.at_least(
                f"{case}, depth {depth}: mean overlap, nearly 1",
                f"lower {INTERVAL}; {ONE:g} was fixed beforehand",
                origin=origin,
                detail=f"mean {values.mean():.4f}, clusters {_at(data[name(case)], 'clusters', depth).mean():.1f}",
            )
        )
    return found


def _glued(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows, said = Rows(), []
    depth = max(parameters.depths)
    own, other = (_at(data[name(case)], "glued", depth) for case in (NETWORK, "norms only"))
    rows.add(LEAST, lower_ends(other - own)[1], 0.0, f"depth {depth}")
    said.append(f"norms only {other.mean():.3f}, full {own.mean():.3f}")
    return rows.at_least(
        f"depth {depth}: share of pairs with cosine above {GLUED:g}, norms alone less full layer",
        f"lower {INTERVAL}, paired; {LEAST:g} was fixed beforehand",
        origin=HELD,
        detail="; ".join(said),
    )
