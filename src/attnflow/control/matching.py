"""One schedule for N measures: every input is carried to its own target."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from attnflow.checks import flag, generator, instance, number
from attnflow.control.division import equal_misfit, merged, same_measure
from attnflow.control.schedule import Schedule
from attnflow.control.search import Search, replay, schedule_of
from attnflow.control.sphere import widest
from attnflow.errors import InvalidInput
from attnflow.flows.driver import Control, Drive
from attnflow.flows.outcome import Ending, Outcome, Progress
from attnflow.flows.result import AbstractResult
from attnflow.flows.sink import AbstractSink
from attnflow.flows.work import AbstractWork, Driven
from attnflow.spaces import Sphere
from attnflow.tokens import Tokens, all_present


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Matching(AbstractResult):
    """A schedule that carries inputs[i] to targets[i] for all i, and how well.

    In `dataset`: what every try varied (`ratio` of radius and separation of clouds, on the circle the angle of a
    `boost`), its number of elements (0: no plan), `w1`, `w2`, `attention` and `separation`; once a schedule is found,
    its elements. Before that, distances are NaN and `schedule` is refused.
    """

    dataset: Any = dataclasses.field(repr=False)
    layer: float | None
    outcome: Outcome
    steps: dict[str, int] = dataclasses.field(repr=False)
    """The number of tries."""
    checkpoint: Any = dataclasses.field(default=None, repr=False)
    """From where `continued` goes on."""
    work: Any = dataclasses.field(default=None, repr=False)
    """The work that made it."""

    def _facts(self) -> dict[str, str]:
        found = {"measures": str(self.dataset.sizes["measure"]), "tries": str(self.tries)}
        if self.is_found:
            w2 = f"{self.before.max():.3g} before, {self.w2.max():.3g} after"
            found |= {"schedule": str(self.schedule), "largest W_2": w2}
        return found | {"outcome": self.outcome.message}

    @property
    def is_found(self) -> bool:
        """Whether there is a schedule."""
        return self.outcome.ending is Ending.FINISHED

    @functools.cached_property
    def schedule(self) -> Schedule:
        """Run exactly, or, where `layer` is given, by `Layers(1.0)`."""
        if not self.is_found:
            raise InvalidInput(f"there is no schedule: {self.outcome.message}")
        return schedule_of(self.dataset, self.dataset.attrs["kinds"], int(self.dataset.attrs["dim"]))

    @property
    def w1(self) -> np.ndarray:
        """(N,) distance of every measure, replayed alone, from its target."""
        return self._of_measures("w1")

    @property
    def w2(self) -> np.ndarray:
        """(N,) the same as W_2."""
        return self._of_measures("w2")

    @property
    def before(self) -> np.ndarray:
        """(N,) W_2 of inputs and targets."""
        return self._of_measures("before")

    @property
    def attention(self) -> float:
        """The time for which mean attention acts."""
        return self._last("attention")

    @property
    def separation(self) -> float:
        """Least angle between clouds after attention, over the largest radius of a cloud."""
        return self._last("separation")

    @property
    def amplification(self) -> float:
        """With `expand`: what errors of where gates deliver atoms are multiplied by at the end; 1 without."""
        return self._last("amplification") if "amplification" in self.dataset or not self.is_found else 1.0

    @property
    def tries(self) -> int:
        """Tries that were made."""
        return int(self.dataset.sizes["try"])

    def __call__(self, tokens: Tokens) -> Tokens:
        """Where the schedule, or the network, carries a measure."""
        return replay(self.schedule, self.layer, tokens)

    def _of_measures(self, name: str) -> np.ndarray:
        if not self.is_found:
            return np.full(self.dataset.sizes["measure"], np.nan)
        values: np.ndarray = self.dataset[name].values
        return values if values.ndim == 1 else values[-1]

    def _last(self, name: str) -> float:
        return float(self.dataset[name].values[-1]) if self.is_found else float("nan")


@dataclasses.dataclass(frozen=True)
class MatchMeasures(AbstractWork):
    """The search for a schedule: the work of `match_measures`, whose arguments its fields are.

    A try is one slice: work that was interrupted resumes at the start of a try. There is no end to be moved. A schedule
    that is found is whole, and the tries are a fixed list.
    """

    rows: ClassVar[str] = "try"
    end: ClassVar[str | None] = None

    inputs: Sequence[Tokens]
    targets: Sequence[Tokens]
    tol: float = 1e-3
    seed: int = 0
    layer: float | None = None
    expand: bool = False

    def checked(self) -> Self:
        inputs, targets = _checked(self.inputs, self.targets)
        tol = number("tol", self.tol, low=1e-10, high=0.1)
        generator(self.seed)
        layer = None if self.layer is None else number("layer", self.layer, low=1e-4, high=1.0)
        expand = flag("expand", self.expand)
        if expand and (layer is not None or inputs[0].dim == 2):
            raise InvalidInput(
                f"`expand` is True {'on the circle' if layer is None else f'and `layer` is {layer:g}'}; it takes exact "
                "flows back on S^2 or a higher sphere, so leave one of them out."
            )
        if inputs[0].dim == 2 and any(one.n != 1 for one in targets):
            raise InvalidInput("on the circle a target is one atom; give targets of one token, or use d of at least 3.")
        for i, (one, goal) in enumerate(zip(inputs, targets, strict=True)):
            _check_masses(i, merged(one), merged(goal), tol)
        return dataclasses.replace(
            self, inputs=tuple(inputs), targets=tuple(targets), tol=tol, layer=layer, expand=expand
        )

    def stepper(self) -> Search:
        return Search(self)

    def result(self, driven: Driven) -> Matching:
        return Matching(driven.dataset, self.layer, driven.outcome, driven.steps, driven.checkpoint, self)


def match_measures(
    inputs: Sequence[Tokens],
    targets: Sequence[Tokens],
    *,
    tol: float = 1e-3,
    seed: int = 0,
    layer: float | None = None,
    expand: bool = False,
    sink: AbstractSink | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: Callable[[], bool] | None = None,
    check: bool = True,
) -> Matching:
    """One schedule on the sphere S^(d-1) that carries N measures to N targets (arXiv:2411.04551), each seen alone.

    Targets are few atoms each; quantise others first. On S^2 and higher spheres: a boost away from a free point, mean
    attention until the measures are clouds of their own (each measure contracts towards its own mean), a boost that
    spreads the clouds; then, for every atom, a gate that cuts its mass off the cloud, and gates that carry it along a
    path on a great 2-sphere past all other tokens (paths and cuts are ours). On the circle perceptrons keep the cyclic
    order, so skew attention turns the measures by different angles first; one atom a target there.

    W_2 of the result is below `tol`, checked by replaying every measure alone. A token is never split, nor are tokens
    that coincide: masses of atoms have to be sums of masses of tokens. Such sums are looked for among the tokens near
    the border of a cap; for unequal masses tokens of one atom are then carried in several pieces. Equal inputs with
    equal targets share one plan. There are 8 tries (40 on the circle), from the second one on with the atoms in another
    order; when none succeeds, `FlowFailed` carries what they reached.

    `expand`: as in the proof of the theorem, boosts and attention also make separate clouds of the targets. Gates carry
    the atoms into these clouds, and the same elements backwards (attention with -V) carry them to their places. They
    multiply errors by `amplification`, about e^t after the time t of attention, so gates have to be as much finer.

    `layer`: None for exact flows, or the largest size of a layer of a network with normalisation, for which the plan
    is then made (0.25 is safe). `seed` sets random directions of the search. `sink`, `on_progress`, `cancel` and
    `check` are as for `solve`: progress comes after every try, Ctrl-C returns the tries that were made, and
    `continued()` goes on with the next one.

    The schedule interpolates these inputs. It does not learn: other samples of the same measures are split at other
    tokens (see the experiment interpolation-is-not-learning).
    """
    work = MatchMeasures(inputs, targets, tol, seed, layer, expand)
    found: Matching = Drive(work.checked()).run(Control(sink, on_progress, cancel, check))
    return found


def _checked(inputs: Sequence[Tokens], targets: Sequence[Tokens]) -> tuple[list[Tokens], list[Tokens]]:
    clouds, atoms = list(inputs), list(targets)
    if not clouds or len(clouds) != len(atoms):
        raise InvalidInput(f"{len(clouds)} `inputs` and {len(atoms)} `targets`; give as many of both, at least one.")
    for name, group in (("inputs", clouds), ("targets", atoms)):
        for one in group:
            instance(name, one, Tokens, "a list of Tokens on a sphere").single()
            all_present(one, "match_measures")
            if not isinstance(one.space, Sphere) or one.space != clouds[0].space:
                raise InvalidInput(f"`{name}` has tokens on {one.space}; give all on one Sphere(d).")
            if not (np.asarray(one.masses) > 0).all():
                raise InvalidInput(f"`{name}` has a token of mass 0; leave it out.")
    if clouds[0].dim < 2:
        raise InvalidInput("the sphere of R^1 is two points, between which nothing flows; give d of at least 2.")
    for i, one in enumerate(clouds):
        for k in range(i):
            if same_measure(one, clouds[k]) and not same_measure(atoms[i], atoms[k]):
                raise InvalidInput(
                    f"inputs {k} and {i} are the same measure and have different targets; no schedule separates them."
                )
    return clouds, atoms


def _check_masses(i: int, one: Tokens, goal: Tokens, tol: float) -> None:
    """What can be said of masses before the search: about equal ones all, and about fewer points than atoms."""
    short = one.n < goal.n
    off = equal_misfit(np.asarray(one.masses), np.asarray(goal.masses))
    if short or off * widest(goal) ** 2 > tol**2:
        masses = ", ".join(f"{mass:.3g}" for mass in np.asarray(goal.masses)[:6]) + (", ..." if goal.n > 6 else "")
        raise InvalidInput(
            f"inputs[{i}] has tokens at {one.n} point{'s' * (one.n > 1)}{'' if short else ' of equal mass'}, which "
            f"cannot be divided into the masses of targets[{i}] ({masses}): a token is never split, nor are tokens "
            "that coincide; give more tokens, or masses that fit."
        )
