"""The words of which combinations are made, how to build one with attnflow, and which of them must work."""

from typing import Any

import jax.numpy as jnp
import numpy as np

import attnflow as af
from attnflow.fields import LayerNorm, RmsNorm, Unit
from attnflow.kernels import AbstractPair, Cosine, Exponential, Gaussian, Polynomial
from attnflow.spaces import Product, Torus

BETA = 1.7
FEW, MANY, MORE = 12, 1_100, 2
WORDS = {
    "space": [
        "sphere2",
        "sphere3",
        "sphere4",
        "ellipsoid3",
        "centred4",
        "euclidean2",
        "euclidean3",
        "torus4",
        "product5",
    ],
    "wrapper": ["none", "total", "multiple", "composed", "ngpt", "pre", "peri", "scaled", "mix", "rescaled"],
    "norm": ["unit", "rms", "layer"],
    "kernel": ["exponential", "exponential", "exponential", "gaussian", "polynomial", "cosine", "pair"],
    "heads": [None, 1, 2],
    "matrices": ["none", "qk", "v", "qkv", "large v"],
    "normaliser": ["softmax", "usa0", "usa", "grad", "hardmax", "sinkhorn"],
    "mask": ["everyone", "causal", "sloped", "strict", "window", "both sides", "table"],
    "encoding": ["none", "rotary", "sinusoidal"],
    "masses": ["equal", "unequal", "zero", "tiny"],
    "sum": ["left out", "chosen", "tiled", "bounded", "dense", "circle", "harmonics", "fast", "cutoff", "fused"],
    "queries": ["tokens", "away"],
    "batch": ["one", "beta"],
    "rows": ["all", "absent", "prompts"],
    "places": ["whole", "real"],
    "dtype": ["float64", "float32"],
}
UPDATES = {
    "renormalise": af.layer_updates.Renormalise(),
    "project-renormalise": af.layer_updates.ProjectRenormalise(),
    "project": af.layer_updates.Project(),
}
LAYER_WORDS = {name: WORDS[name] for name in ("space", "wrapper", "mask", "masses", "batch", "rows", "places")} | {
    "norm": ["unit"],
    "kernel": ["exponential", "gaussian"],
    "heads": [None, 2],
    "matrices": ["none", "v"],
    "normaliser": ["softmax", "usa0"],
    "encoding": ["none"],
    "sum": ["left out", "tiled", "bounded", "circle", "harmonics", "fast", "cutoff"],
    "queries": ["tokens"],
    "dtype": ["float64"],
    "update": list(UPDATES),
}
STREAMS = ("pre", "peri", "scaled", "mix")
EXACT = ("left out", "chosen", "tiled", "dense")


def at_random(words, count, seed):
    """Cases with every word drawn independently."""
    drawn = np.random.default_rng(seed).integers([len(choices) for choices in words.values()], size=(count, len(words)))
    return [{name: choices[k] for (name, choices), k in zip(words.items(), row, strict=True)} for row in drawn.tolist()]


def case_name(words):
    return " ".join(str(choice) for choice in words.values())


def complete(words):
    """The case in numbers, for the reference: matrices, masses, positions, places."""
    rng = np.random.default_rng(sum(map(ord, case_name(words))))
    case = dict(words)
    d = int(words["space"][-1])
    kind = words["space"][:-1]
    case["d"], case["space"] = d, "sphere" if kind == "sphere" else kind
    case["gain"] = np.linspace(0.7, 1.4, d) if kind in ("ellipsoid", "centred") else np.ones(d)
    many = (
        words["sum"] == "chosen"
        and words["rows"] != "prompts"
        and words["normaliser"] != "sinkhorn"
        and words["dtype"] == "float64"
    )
    n = case["n"] = MANY if many and words["batch"] == "one" else FEW
    heads = (words["heads"],) if words["heads"] else ()

    def matrix():
        return 0.7 * rng.standard_normal((*heads, d, d))

    chosen = words["matrices"]
    case["matrices"] = {name: matrix() for name in "qkv" if name in chosen.removeprefix("large ")}
    if chosen == "large v":
        case["matrices"]["v"] = np.broadcast_to(1000 * np.eye(d), (*heads, d, d)).copy()
    if heads and chosen == "qkv":
        case["matrices"]["o"] = matrix()
    case["average"] = 1.0
    case["perceptron"] = (0.5 * rng.standard_normal((5, d)), rng.standard_normal(5), rng.standard_normal((d, 5)))
    masses = np.full(n, 1.0)
    if words["masses"] != "equal":
        masses = rng.random(n) + 0.2
    if words["masses"] == "zero":
        masses[::5] = 0.0
    if words["masses"] == "tiny":
        masses[3] = 1e-5
    case["masses"] = masses / masses.sum()
    case["mask"] = {
        "everyone": ("everyone",), "causal": ("causal", 0.0, False), "sloped": ("causal", 0.3, False),
        "strict": ("causal", 0.1, True), "window": ("window", 4, 0.2, True), "both sides": ("window", 3, 0.0, False),
        "table": ("table", None),
    }[words["mask"]]  # fmt: skip
    if words["mask"] == "table":
        case["mask"] = ("table", np.sin(np.arange((n + MORE) ** 2)).reshape(n + MORE, n + MORE))
    case["y"] = points(case, rng, n)
    case["key_place"] = rng.permutation(n)
    if words["queries"] == "tokens":
        case["x"], case["query_place"] = case["y"], case["key_place"]
    else:
        case["x"], case["query_place"] = points(case, rng, 7), rng.integers(n, size=7)
    case["other"] = (points(case, rng, n + MORE), rng.random(n + MORE) + 0.2, rng.permutation(n + MORE))
    if words["places"] == "real":
        case["key_place"], case["query_place"] = real(case["key_place"]), real(case["query_place"])
        case["other"] = (*case["other"][:2], real(case["other"][2]))
    return case


def real(place):
    return 0.7 * place + 0.1


def points(case, rng, n):
    from tests.combinations.reference import retract

    x = rng.standard_normal((n, case["d"]))
    return retract(case, x) if case["space"] != "euclidean" else 1.3 * x


def tokens(case):
    d = case["d"]
    space = {
        "sphere": af.Sphere(d), "euclidean": af.Euclidean(d),
        "ellipsoid": af.spaces.Ellipsoid(case["gain"]) if case["space"] == "ellipsoid" else None,
        "centred": af.spaces.CentredSphere(d, case["gain"]) if case["space"] == "centred" else None,
        "torus": Torus(2), "product": Product(af.Sphere(3), Torus(1)),
    }[case["space"]]  # fmt: skip
    if case["rows"] == "prompts":
        systems = [af.Tokens(y, m, space=space, place=p) for y, m, p in (own(case), case["other"])]
        return af.stack("prompt", ["this", "other"], systems).astype(case["dtype"])
    if case["rows"] == "absent":
        # what absent rows are given is of no consequence
        y, m, place = (np.insert(a, (0, 3, 3, len(a)), -7, axis=0) for a in own(case))
        return af.Tokens(y, np.abs(m), space=space, place=place, present=m >= 0, dtype=case["dtype"])
    return af.Tokens(case["y"], case["masses"], space=space, place=case["key_place"], dtype=case["dtype"])


def own(case):
    return case["y"], case["masses"], case["key_place"]


def present(case, values, tokens):
    """The rows of one system that are tokens; `values` with members first, and a row for each of the queries."""
    if case["rows"] == "prompts":
        values = values[..., 0, :, :]
    if case["queries"] == "away" or case["rows"] == "all":
        return values
    return values[..., : case["n"], :] if case["rows"] == "prompts" else values[..., tokens.present, :]


def given_sum(case):
    return {
        "left out": lambda: None, "chosen": lambda: None, "tiled": lambda: af.sums.Tiled(5, 4),
        "bounded": lambda: af.sums.Tiled(bounded=True), "dense": lambda: af.sums.Dense(), "circle": lambda: af.sums.Circle(1e-7, 48),
        "harmonics": lambda: af.sums.Harmonics(1e-3, 16, 3 if case["d"] == 2 else case["d"]),
        "fast": lambda: af.sums.FastSphere(1e-7, 48), "cutoff": lambda: af.sums.Cutoff(1e-7), "fused": lambda: af.sums.Fused(),
    }[case["sum"]]()  # fmt: skip


class Laplace(AbstractPair):
    """exp(-sqrt(1 + beta^2 |q - k|^2)), as an outsider would write it: for one pair."""

    beta: Any
    is_isotropic = True
    is_signed = False

    def pair(self, query, key):
        return -jnp.sqrt(1 + self.beta**2 * jnp.sum((query - key) ** 2))


KERNELS = {
    "exponential": Exponential, "gaussian": Gaussian, "polynomial": lambda beta: Polynomial(3, beta),
    "cosine": lambda beta: Cosine(), "pair": Laplace,
}  # fmt: skip
SIGNED = ("polynomial", "cosine")


def field(case, beta=BETA):
    """The field of attnflow; raises InvalidInput where its parts do not fit."""
    kind, *numbers = case["mask"]
    mask = {"everyone": af.masks.Everyone, "causal": af.Causal, "window": af.Window, "table": af.masks.Table}[kind](
        *numbers
    )
    normaliser = {
        "softmax": af.Softmax, "usa0": af.Unnormalised, "usa": lambda: af.Unnormalised("USA"),
        "grad": lambda: af.Unnormalised("grad"), "hardmax": af.Hardmax, "sinkhorn": af.Sinkhorn,
    }[case["normaliser"]]()  # fmt: skip
    encoding = {"none": None, "rotary": af.encodings.Rotary(), "sinusoidal": af.encodings.Sinusoidal(0.7)}[
        case["encoding"]
    ]
    names = {"q": "query", "k": "key", "v": "value", "o": "output"}
    parts = {names[name]: matrix for name, matrix in case["matrices"].items()}
    parts |= {"normaliser": normaliser, "mask": mask, "encoding": encoding, "sum": given_sum(case)}
    inner = af.Attention(kernel=KERNELS[case["kernel"]](beta), **parts)
    perceptron = af.Perceptron(*case["perceptron"], activation="tanh")
    norm = {"unit": Unit(), "rms": RmsNorm(np.linspace(0.8, 1.3, case["d"])), "layer": LayerNorm()}[case["norm"]]
    return {
        "none": lambda: inner, "total": lambda: inner + perceptron, "multiple": lambda: -1.5 * inner,
        "composed": lambda: af.Composed(perceptron, inner),
        "ngpt": lambda: af.norms.Ngpt(inner, 0.7), "rescaled": lambda: af.Rescaled(inner), "pre": lambda: af.norms.Pre(inner, norm),
        "peri": lambda: af.norms.Peri(inner, norm), "scaled": lambda: af.norms.Scaled(inner, norm),
        "mix": lambda: af.norms.Mix(inner, 0.25, norm),
    }[case["wrapper"]]()  # fmt: skip


def makes_sense(words):
    """Whether the mathematics is defined, whatever the sum: written without looking at the package."""
    space, wrapper = words["space"][:-1], words["wrapper"]
    if wrapper in (*STREAMS, "rescaled") and space != "euclidean":
        return False
    if wrapper == "ngpt" and space != "sphere":
        return False
    if wrapper == "rescaled" and (
        words["normaliser"] != "softmax" or words["encoding"] == "sinusoidal" or words["heads"] is not None
    ):
        return False
    kernel = words["kernel"]
    if kernel != "exponential" and (words["normaliser"] in ("usa", "grad") or wrapper == "rescaled"):
        return False
    if kernel in SIGNED and words["normaliser"] != "usa0":
        return False
    if kernel == "pair" and words["normaliser"] == "hardmax":
        return False
    if words["mask"] == "table" and words["places"] == "real":
        return False
    if words["encoding"] == "rotary" and int(words["space"][-1]) % 2:
        return False
    return not (words["normaliser"] == "sinkhorn" and words["mask"] != "everyone")


def must_work(words):
    """Whether a refusal would be a defect."""
    if not makes_sense(words):
        return False
    made, mask, d = words["sum"], words["mask"], int(words["space"][-1])
    if made in EXACT:
        return True
    streams = words["wrapper"] in STREAMS and words["norm"] == "unit"
    round_ = words["space"].startswith("sphere") or streams
    plain = "q" not in words["matrices"] and words["encoding"] == "none"
    positive = words["masses"] != "zero"
    kernel = words["kernel"]
    if made == "bounded":
        bounded = kernel == "gaussian" or (kernel == "exponential" and round_)
        return bounded and plain and positive and mask not in ("strict", "table")
    if kernel == "pair" or (kernel != "exponential" and made in ("cutoff", "fused")):
        return False
    if not (round_ and plain and words["normaliser"] in ("softmax", "usa0", "usa", "grad")):
        return False
    if mask in ("causal", "sloped"):
        return made == ("circle" if d == 2 else "harmonics")
    fits = {"circle": d == 2, "harmonics": d > 2, "fast": d == 3, "cutoff": positive}
    return mask == "everyone" and fits.get(made, False)


def stays(words):
    """Whether the field is evaluated on the space: after `Project` it is not, but in R^d nothing can be left."""
    return words["update"] != "project" or words["space"].startswith("euclidean") or words["wrapper"] == "mix"


def layers_must_work(words):
    """Whether a refusal of these layers would be a defect: where the space is left, only sums for all of R^d do."""
    if stays(words):
        return must_work(words)
    return makes_sense(words) and words["sum"] in ("left out", "tiled")
