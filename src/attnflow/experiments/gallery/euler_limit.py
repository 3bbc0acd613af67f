"""Residual networks and attention layers are Euler's method: they reach their ODE at order 1, Runge-Kutta at order 4.

A network x <- x + h f(x, kh), h = T/L, is off by h E_1(T) + O(h^2), where E_1 solves the variational equation
E_1' = Df E_1 + g - (Df f + df/dt)/2 and h^2 g is what one layer adds to x + h f: nothing for a residual network,
-|PA|^2 x/2 for attention layers N(x + h PA), and -<x, A> PA more for N(x + h A) (arXiv:2312.10794, section 2). Layers
need not share weights; weights smooth in depth are enough. If every layer draws its own instead, W_k = W + s N(0, 1),
the network reaches the ODE of the mean at order 1/2 only, with the covariance of the linear noise equation.

Shown: order and size of the error of the three networks, the order of RK4 with a return to the sphere after every step,
and order and size of the fluctuation of networks with independent layers (full version). ODE and E_1 are solved
outside the library, by DOP853 to 1e-12. Not shown: long times; T is fixed, and the error may grow like e^(Lipschitz T).
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from attnflow.axes import Along
from attnflow.experiments.claim import Claim
from attnflow.experiments.study import Study
from attnflow.fields import AbstractField, Attention, Perceptron, Random
from attnflow.flows import Fixed, Layers, ProjectRenormalise, Renormalise, advance
from attnflow.plots.style import COLOURS, GREY, INK, PAGE, styled
from attnflow.precision import double
from attnflow.spaces import Euclidean, Sphere
from attnflow.tokens import Tokens, uniform

PAPERS = ("arXiv:2312.10794", "arXiv:1806.07366")

RULES = {"N(x + hA)": Renormalise(), "N(x + hPA)": ProjectRenormalise()}
NETWORK = "x + hf"
NAMES = (*RULES, NETWORK)
ERRORS = 4.0
"""Standard errors that a random number may be off."""
REFERENCE = 1e-12
"""Tolerance of DOP853."""
EPS = float(np.finfo(float).eps)


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What is simulated."""

    n: int = 12
    d: int = 4
    beta: float = 3.0
    until: float = 2.0
    layers: tuple[int, ...] = (25, 50, 100, 200, 400, 800, 1600)
    """Numbers of layers; each must be twice the one before."""
    steps: tuple[int, ...] = (8, 16, 32, 64, 128)
    """Numbers of Runge-Kutta steps; likewise."""
    random_layers: tuple[int, ...] = (50, 100, 200, 400, 800)
    """Of networks with independent layers; empty: none are run."""
    seeds: int = 400
    scale: float = 0.5
    """Standard deviation of the entries of their weights."""
    seed: int = 0


QUICK = Parameters(layers=(50, 100, 200, 400), steps=(8, 16, 32, 64), random_layers=())


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Errors against the ODE for every number of layers, the first terms of their expansions, and fluctuations."""
    study.progress("the ODEs and their variational equations", 0.0)
    found = {"limit": study.part("limit", functools.partial(limits, parameters))}
    for k, name in enumerate(("layers", "steps")):
        make = functools.partial(_errors, parameters, found["limit"], name, study, k)
        found[name] = study.part(name, make)
    if parameters.random_layers:
        found["random"] = study.part("random", functools.partial(_random, parameters, found["limit"], study))
    return found


def weights(parameters: Parameters) -> dict[str, np.ndarray]:
    """Of the residual network W tanh((A + B sin t) x + b)."""
    rng, d = np.random.default_rng([parameters.seed, 1]), parameters.d
    return {name: rng.standard_normal((d, d)) / np.sqrt(d) for name in "ABW"} | {"b": rng.standard_normal(d)}


def fields(parameters: Parameters) -> dict[str, tuple[AbstractField, Tokens]]:
    """The two simulated fields with their tokens."""
    tokens = uniform(Sphere(parameters.d), n=parameters.n, seed=parameters.seed)
    w = weights(parameters)
    network = Perceptron(lambda t: jnp.asarray(w["A"]) + jnp.asarray(w["B"]) * jnp.sin(t), w["b"], w["W"], "tanh")
    free = Tokens(tokens.positions, space=Euclidean(parameters.d))
    return {"attention": (Attention(parameters.beta), tokens), "network": (network, free)}


def _errors(parameters: Parameters, limit: xr.Dataset, kind: str, study: Study, place: int) -> xr.Dataset:
    """Root of the sum of squares of x_L - x(T), by the simulator; one compiled program serves all L."""
    made, counts = fields(parameters), getattr(parameters, kind)
    names = NAMES if kind == "layers" else ("attention", "network")
    rows = []
    for k, name in enumerate(names):
        study.progress(f"{kind}, {name}", (place + k / len(names)) / 3)
        which = "network" if name in (NETWORK, "network") else "attention"
        rule = RULES.get(name, Renormalise())
        end = double(jax.jit(functools.partial(_end, *made[which], parameters.until, kind, rule)))
        ends = np.array([end(parameters.until / count) for count in counts])
        rows.append(np.linalg.norm(ends - limit[f"x_{which}"].values, axis=(1, 2)))
    return xr.Dataset({"error": (("name", "count"), np.array(rows))}, {"name": list(names), "count": list(counts)})


def _end(field: AbstractField, tokens: Tokens, until: float, kind: str, rule: Any, step: Any) -> Any:
    return advance(field, tokens, 0.0, until, Layers(step, rule) if kind == "layers" else Fixed(step)).positions


def _random(parameters: Parameters, limit: xr.Dataset, study: Study) -> xr.Dataset:
    """Per network with independent layers the sum of squares of x_L - x(T); every L has networks of its own."""
    w, seeds, squares = weights(parameters), parameters.seeds, []
    _, tokens = fields(parameters)["network"]
    for k, count in enumerate(parameters.random_layers):
        study.progress(f"{seeds} networks of {count} independent layers", 2 / 3 + k / len(parameters.random_layers) / 3)
        step = parameters.until / count
        own = Along("seed", np.arange(k * seeds, (k + 1) * seeds))
        outer = Random((parameters.d, parameters.d), seed=own, step=step, scale=parameters.scale, mean=w["W"])
        end = advance(Perceptron(w["A"], w["b"], outer, "tanh"), tokens, 0.0, parameters.until, Layers(step))
        squares.append(np.sum((np.asarray(end.positions) - limit["x_mean"].values) ** 2, axis=(1, 2)))
    return xr.Dataset({"square": (("count", "seed"), np.array(squares))}, {"count": list(parameters.random_layers)})


# the same networks once more, in NumPy: what the theory says about them


def limits(parameters: Parameters) -> xr.Dataset:
    """x(T) of the ODEs, |E_1(T)| of every rule, and the variance of networks with independent layers over h."""
    x = np.asarray(fields(parameters)["attention"][1].positions)
    w, shape = weights(parameters), ("token", "dim")
    found: dict[str, Any] = {}

    def attention(t: complex, x: np.ndarray) -> np.ndarray:
        pull = softmax_average(x, parameters.beta)
        return pull - np.sum(x * pull, axis=1, keepdims=True) * x

    def bend(rule: str, x: np.ndarray) -> np.ndarray:
        pull, speed = softmax_average(x, parameters.beta), attention(0.0, x)
        along = np.sum(x * pull, axis=1, keepdims=True) * speed if rule == "N(x + hA)" else 0.0
        return -along - np.sum(speed**2, axis=1, keepdims=True) * x / 2

    def network(t: complex, x: np.ndarray) -> np.ndarray:
        return np.tanh(x @ (w["A"] + w["B"] * np.sin(t)).T + w["b"]) @ w["W"].T

    for rule in RULES:
        end, first = first_error(attention, functools.partial(bend, rule), x, parameters.until)
        found |= {"x_attention": (shape, end), rule: np.linalg.norm(first)}
    end, first = first_error(network, np.zeros_like, x, parameters.until)
    found |= {"x_network": (shape, end), NETWORK: np.linalg.norm(first)}
    end, variance = linear_noise(parameters, w, x)
    return xr.Dataset(found | {"x_mean": (shape, end), "variance": variance})


def softmax_average(x: np.ndarray, beta: float) -> np.ndarray:
    """Sum_j A_ij x_j for equal masses; analytic in x, so that complex steps differentiate it."""
    kernel = np.exp(beta * (x @ x.T))
    return np.asarray(kernel @ x / np.sum(kernel, axis=1, keepdims=True))


def along(field: Any, t: float, x: np.ndarray, v: np.ndarray, dt: float = 0.0) -> np.ndarray:
    """Df v + dt df/dt, by a complex step: exact to rounding."""
    tiny = 1e-30
    return np.asarray(np.imag(field(t + 1j * tiny * dt, x + 1j * tiny * v)) / tiny)


def first_error(field: Any, bend: Any, x: np.ndarray, until: float) -> tuple[np.ndarray, np.ndarray]:
    """x(T) and E_1(T) of x <- x + h f + h^2 bend."""

    def slope(t: float, state: np.ndarray) -> np.ndarray:
        x, error = state
        speed = field(t, x)
        return np.stack([speed, along(field, t, x, error) + bend(x) - along(field, t, x, speed, 1.0) / 2])

    end, error = _integrate(slope, np.stack([x, np.zeros_like(x)]), until)
    return end, error


def linear_noise(parameters: Parameters, w: dict[str, np.ndarray], x: np.ndarray) -> tuple[np.ndarray, float]:
    """x(T) of the averaged network W tanh(A x + b), and the limit of E|x_L - x(T)|^2/h.

    A layer adds h s |tanh| times a standard Gaussian vector: C' = Df C + C Df^T + s^2 |tanh|^2 I for every token.
    """
    n, d = x.shape

    def slope(t: float, state: np.ndarray) -> np.ndarray:
        x, covariance = state[:, 0], state[:, 1:]
        hidden = np.tanh(x @ w["A"].T + w["b"])
        tangent = np.einsum("ab,nb,bc->nac", w["W"], 1 - hidden**2, w["A"]) @ covariance
        source = parameters.scale**2 * np.sum(hidden**2, axis=1)[:, None, None] * np.eye(d)
        return np.concatenate([(hidden @ w["W"].T)[:, None], tangent + np.swapaxes(tangent, 1, 2) + source], axis=1)

    end = _integrate(slope, np.concatenate([x[:, None], np.zeros((n, d, d))], axis=1), parameters.until)
    return end[:, 0], float(np.trace(end[:, 1:], axis1=1, axis2=2).sum())


def _integrate(slope: Any, start: np.ndarray, until: float) -> np.ndarray:
    from scipy.integrate import solve_ivp

    def flat(t: float, state: np.ndarray) -> np.ndarray:
        return np.asarray(slope(t, state.reshape(start.shape))).ravel()

    end = solve_ivp(flat, (0.0, until), start.ravel(), "DOP853", rtol=REFERENCE, atol=REFERENCE)
    return np.asarray(end.y[:, -1].reshape(start.shape))


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Orders from halvings, and the first term of the error from the variational equation."""
    made = []
    for kind, order in (("layers", 1.0), ("steps", 4.0)):
        for name in data[kind]["name"].values:
            words = f"layers {name}" if kind == "layers" else f"RK4, {name}"
            slopes = orders(data[kind].sel(name=name)["error"].values)
            # an order found at h is off by c h + ..., so the next one by half of that, which is their difference
            made.append(
                Claim.equal(f"{words}: order of convergence", order, slopes[-1], 2 * abs(slopes[-1] - slopes[-2]),
                            "twice the change of the order at the last halving, which is what is left of O(h)")
            )  # fmt: skip
    for name in NAMES:
        ratio = data["layers"].sel(name=name)["error"].values * np.array(parameters.layers) / parameters.until
        better = 2 * ratio[1:] - ratio[:-1]
        predicted = float(data["limit"][name])
        made.append(
            Claim.equal(f"layers {name}: limit of error/h against |E₁(T)| of the variational equation",
                        predicted, better[-1], abs(better[-1] - better[-2]),
                        "change of the extrapolated value at the last halving, three times what is left of O(h²)")
        )  # fmt: skip
    if "random" in data:
        made += _random_claims(parameters, data)
    return made


def orders(errors: np.ndarray) -> np.ndarray:
    """Log2 of the ratio of errors at h and h/2."""
    return np.asarray(np.log2(errors[:-1] / errors[1:]))


def _random_claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    count, mean, error = fluctuation(data["random"])
    variance, step = float(data["limit"]["variance"]), parameters.until / count
    logs, spread = np.log(step), error / mean
    slope, matrix = np.polyfit(logs, np.log(mean) / 2, 1, w=2 / spread, cov="unscaled")
    return [
        Claim.equal("independent layers: order of the root mean square of x_L - x(T)", 0.5, slope[0],
                    ERRORS * float(np.sqrt(matrix[0, 0])),
                    f"{ERRORS:g} standard errors, {parameters.seeds} networks for each L"),
        Claim.equal(f"independent layers: mean square over h at L = {count[-1]} against the linear noise equation",
                    variance, mean[-1] / step[-1], ERRORS * error[-1] / step[-1],
                    f"{ERRORS:g} standard errors, {parameters.seeds} networks"),
    ]  # fmt: skip


def fluctuation(random: xr.Dataset) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers of layers, mean squares over networks, and their standard errors."""
    squares = random["square"].values
    return random["count"].values, squares.mean(axis=1), squares.std(axis=1, ddof=1) / np.sqrt(squares.shape[1])


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """How far networks of L layers are from their ODE at T.

    (a) Errors of layers (full marks) with their predicted first terms h |E_1| (lines), errors of RK4 (open marks; the
    grey line falls like L^-4), and the root mean square of networks with independent layers with the linear noise
    equation (dashed; bars of four standard errors). (b) The same over the predicted first term; it tends to 1.
    """
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 2.9))
        left, right = fig.subplots(1, 2, width_ratios=(1.25, 1))
        for one in (left, right):
            one.set_xscale("log")
        _draw_errors(left, parameters, data)
        _draw_ratios(right, parameters, data)
        for letter, one in zip("ab", (left, right), strict=True):
            one.set_title(f"({letter})", loc="left", fontweight="bold")
        return fig


LABELS = {"N(x + hA)": r"$x \leftarrow N(x + hA)$", "N(x + hPA)": r"$x \leftarrow N(x + hPA)$",
          NETWORK: r"$x \leftarrow x + hf$"}  # fmt: skip
MARKS = {"N(x + hA)": "o", "N(x + hPA)": "s", NETWORK: "^"}


def _draw_errors(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    counts = np.array(parameters.layers)
    for name, colour in zip(NAMES, COLOURS, strict=False):
        axes.plot(counts, float(data["limit"][name]) * parameters.until / counts, color=colour, lw=0.9)
        axes.plot(counts, data["layers"].sel(name=name)["error"], MARKS[name], color=colour, ms=3.5, label=LABELS[name])
    if "random" in data:
        count, mean, error = fluctuation(data["random"])
        axes.plot(
            count, np.sqrt(float(data["limit"]["variance"]) * parameters.until / count), "--", color=COLOURS[3], lw=0.9
        )
        bars = ERRORS * error / (2 * np.sqrt(mean))
        axes.errorbar(count, np.sqrt(mean), bars, fmt="d", color=COLOURS[3], ms=3.5, lw=0.8, label="independent layers")
    steps = np.array(parameters.steps)
    for (name, mark), words in zip((("attention", "o"), ("network", "^")), ("attention", "network"), strict=True):
        error = data["steps"].sel(name=name)["error"].values
        axes.plot(steps, error, mark, mfc="white", mec=INK, mew=0.8, ms=3.5, label=f"RK4, {words}")
    axes.plot(steps, error[-1] * (steps[-1] / steps) ** 4.0, color=GREY, lw=0.7, zorder=0)
    axes.set_yscale("log")
    axes.set_xlabel("layers, or steps, $L$")
    axes.set_ylabel(r"$\|x_L - x(T)\|$")
    axes.set_xlim(right=40 * max(parameters.layers))
    axes.legend(loc="upper right", handletextpad=0.2)


def _draw_ratios(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    counts = np.array(parameters.layers)
    for name, colour in zip(NAMES, COLOURS, strict=False):
        ratio = data["layers"].sel(name=name)["error"] * counts / parameters.until / float(data["limit"][name])
        axes.plot(counts, ratio, MARKS[name] + "-", color=colour, ms=3.5, lw=0.8)
    if "random" in data:
        count, mean, error = fluctuation(data["random"])
        over = np.sqrt(mean * count / parameters.until / float(data["limit"]["variance"]))
        axes.errorbar(count, over, over * ERRORS * error / (2 * mean), fmt="d", color=COLOURS[3], ms=3.5, lw=0.8)
    axes.axhline(1.0, color=INK, lw=0.7)
    axes.set_xlabel("layers $L$")
    axes.set_ylabel("error over its first term")
