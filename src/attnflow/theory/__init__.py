"""Theory: what closed forms predict, in five rooms.

`uniform` (growth from the uniform measure, equiangular tokens), `merging` (clusters that merge), `landscape` (energies,
equilibria, modes), `causal` (prompts with a causal mask) and `random_layers` (networks at initialisation);
`predict_particles` puts the first three together. Of attnflow, theory imports `special` (functions), `errors`
(refusals) and `lazy` (names) alone, so agreement with a simulation is evidence.

Every function states its formula, model and conditions, refuses what lies outside them, and stays in float range from
beta = 0 to 1e4; `log_` variants go where plain numbers cannot. Models are "SA", "USA0" and "USA".
"""

from typing import TYPE_CHECKING

from attnflow.lazy import loader

if TYPE_CHECKING:
    from attnflow.theory import causal, landscape, merging, random_layers, uniform
    from attnflow.theory.predictions import Prediction, predict_particles

__all__ = ["Prediction", "causal", "landscape", "merging", "predict_particles", "random_layers", "uniform"]
_HOME = {"attnflow.theory.predictions": ["Prediction", "predict_particles"]}
_ROOMS = {room: f"attnflow.theory.{room}" for room in ("causal", "landscape", "merging", "random_layers", "uniform")}
__getattr__, __dir__ = loader(__name__, _HOME, _ROOMS)
