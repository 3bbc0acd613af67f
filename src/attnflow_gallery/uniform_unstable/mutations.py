"""Ways to break the simulation."""

from typing import Any

from attnflow.experiments import Mutation, scaled, with_arguments
from attnflow.meanfield import AbstractBasis, Density
from attnflow_gallery.uniform_unstable import simulate


def impure(original: Any) -> Any:
    """Adds the harmonic of twice the degree to a start."""

    def call(basis: AbstractBasis, degree: int, amplitude: float, order: int = 0) -> Density:
        start = original(basis, degree, amplitude, order)
        return start.moved(start.coefficients + 0.01 * amplitude * basis.harmonic(2 * degree, order))

    return call


MUTATIONS = (
    Mutation("beta 0.0001 % larger", simulate, "Attention", scaled("beta", 1 + 1e-6)),
    Mutation("beta 0.01 % larger", simulate, "Attention", scaled("beta", 1.0001)),
    Mutation("time 0.000001 % longer", simulate, "evolve", scaled("until", 1 + 1e-8)),
    Mutation("diffusion of 1e-8", simulate, "evolve", with_arguments(kappa=1e-8)),
    Mutation("SA runs as USA0", simulate, "Attention", with_arguments(normaliser="USA0")),
    Mutation("USA0 runs as SA", simulate, "Attention", with_arguments(normaliser="SA")),
    Mutation("start holds 1 % of degree 2k", simulate, "perturbed", impure),
)
