"""The parts of trained layers meet every other part: biases, gates, epsilons and rotary encodings against plain NumPy.

The cases hold every two words together that go together, as those of `covering.txt` do; they are drawn here, since the
words are few.
"""

import numpy as np
import pytest
from scipy.special import expit

import attnflow as af
from attnflow.errors import AttnflowError
from attnflow.fields import Biased, GatedPerceptron, LayerNorm, RmsNorm
from tests.combinations import reference
from tests.combinations.cases import at_random, case_name
from tests.combinations.covering import covering
from tests.marks import graded

N, BETA, T = 12, 1.3, 0.1
WORDS = {
    "space": ["sphere4", "euclidean2", "euclidean4", "torus4"],
    "wrapper": ["none", "gated", "pre rms", "pre layer", "peri rms", "post rms", "post layer"],
    "heads": [None, 2],
    "biased": ["q", "qk", "v", "qkv", "qkvo"],
    "rows": [2, 6],
    "normaliser": ["softmax", "usa0", "hardmax", "sinkhorn"],
    "mask": ["everyone", "sloped", "window", "table"],
    "encoding": ["none", "halves", "part", "none turned"],
    "sum": ["left out", "tiled", "circle"],
    "batch": ["one", "bias"],
    "present": ["all", "absent"],
    "dtype": ["float64", "float32"],
}
MASKS = {
    "everyone": ("everyone",), "sloped": ("causal", 0.3, False), "window": ("window", 4, 0.2, True),
    "table": ("table", np.sin(np.arange(N * N)).reshape(N, N)),
}  # fmt: skip
ROTARY = {"none": None, "halves": (None, "halves"), "part": (2, "neighbours"), "none turned": (0, "halves")}


def makes_sense(words):
    """Whether the mathematics is defined and the sum is for it: one that is cut is for unit vectors without Q and K."""
    if words["wrapper"].startswith(("pre", "peri", "post")) and not words["space"].startswith("euclidean"):
        return False
    if words["wrapper"] in ("pre layer", "post layer") and words["space"].endswith("2"):
        return False  # in two dimensions only signs are left, and rounding decides between them
    if words["normaliser"] == "sinkhorn" and words["mask"] != "everyone":
        return False
    if words["normaliser"] == "hardmax" and words["dtype"] == "float32":
        return False  # near ties: tests/combinations/test_combinations.py
    return words["sum"] != "circle"


CASES = [words for words in at_random(WORDS, 4_000, seed=5) if makes_sense(words)]
REFUSED = [words for words in at_random(WORDS, 60, seed=6) if not makes_sense(words)][:12]


def numbers(words):
    """Everything random of a case; matrices are (matrix, bias) and have the head first."""
    rng = np.random.default_rng(sum(map(ord, case_name(words))))
    d, rows, heads = int(words["space"][-1]), words["rows"], words["heads"] or 1

    def linear(*shape):
        return 0.6 * rng.standard_normal((heads, *shape)), rng.standard_normal((heads, shape[0]))

    # the value has its rows too, and the output leads back
    maps = {"q": linear(rows, d), "k": linear(rows, d), "v": linear(rows, d), "o": linear(d, rows)}
    maps["o"] = (maps["o"][0], maps["o"][1][0])
    gate = [(0.6 * rng.standard_normal((5, d)), rng.standard_normal(5)) for _ in range(2)]
    gate.append((0.6 * rng.standard_normal((d, 5)), rng.standard_normal(d)))
    x, masses = 1.3 * rng.standard_normal((N, d)), rng.random(N) + 0.2
    if not words["space"].startswith("euclidean"):
        x = reference.retract({"space": words["space"][:-1], "gain": np.ones(d)}, x)
    gain, bias = rng.random(d) + 0.5, rng.standard_normal(d)
    return {
        "d": d, "maps": maps, "gate": gate, "x": x, "m": masses / masses.sum(), "place": rng.permutation(N),
        "gain": gain, "bias": bias,
    }  # fmt: skip


def tokens(words, made):
    space = {"s": af.Sphere, "e": af.Euclidean, "t": lambda d: af.Torus(d // 2)}[words["space"][0]](made["d"])
    x, m, place = made["x"], made["m"], made["place"]
    if words["present"] == "all":
        return af.Tokens(x, m, space=space, place=place, dtype=words["dtype"])
    x, m, place = (np.insert(a, (0, 5, N), -7, axis=0) for a in (x, m, place))
    place = np.where(m < 0, 0, place)
    return af.Tokens(x, np.abs(m), space=space, place=place, present=m >= 0, dtype=words["dtype"])


def field(words, made):
    """The field of attnflow; with a batch of biases of the values, or of the queries, the second member is the case."""
    one = words["heads"] is None
    batched = words["biased"][-1] if words["biased"] != "qkvo" else "v"

    def linear(name):
        matrix, bias = made["maps"][name]
        if one:
            matrix, bias = matrix[0], bias if name == "o" else bias[0]
        if name not in words["biased"]:
            return matrix
        many = words["batch"] == "bias" and name == batched
        return Biased(matrix, af.Along("bias", np.stack([0 * bias, bias])) if many else bias)

    kind, *rest = MASKS[words["mask"]]
    mask = {"everyone": af.masks.Everyone, "causal": af.Causal, "window": af.Window, "table": af.masks.Table}[kind](
        *rest
    )
    normaliser = {"softmax": af.Softmax, "usa0": af.Unnormalised, "hardmax": af.Hardmax, "sinkhorn": af.Sinkhorn}
    turned = ROTARY[words["encoding"]]
    inner = af.Attention(
        BETA, query=linear("q"), key=linear("k"), value=linear("v"), output=linear("o"), average="sum", mask=mask,
        normaliser=normaliser[words["normaliser"]](),
        encoding=None if turned is None else af.encodings.Rotary(100.0, turned[1], turned[0]),
        sum={"left out": None, "tiled": af.sums.Tiled(5, 4), "circle": af.sums.Circle(1e-7, 48)}[words["sum"]],
    )  # fmt: skip
    rms, layer = RmsNorm(made["gain"], made["bias"], 1e-2), LayerNorm(made["gain"], made["bias"], 1e-2)
    return {
        "none": lambda: inner, "gated": lambda: inner + GatedPerceptron(*(Biased(*pair) for pair in made["gate"])),
        "pre rms": lambda: af.norms.Pre(inner, rms), "pre layer": lambda: af.norms.Pre(inner, layer),
        "peri rms": lambda: af.norms.Peri(inner, rms),
        "post rms": lambda: af.norms.Post(inner, rms), "post layer": lambda: af.norms.Post(inner, layer),
    }[words["wrapper"]]()  # fmt: skip


def turn(words, x, place):
    how = ROTARY[words["encoding"]]
    if how is None:
        return x
    r = x.shape[1] if how[0] is None else how[0]
    pairs = [(i, i + r // 2) if how[1] == "halves" else (2 * i, 2 * i + 1) for i in range(r // 2)]
    x = x.copy()
    for i, (a, b) in enumerate(pairs):
        z = (x[:, a] + 1j * x[:, b]) * np.exp(1j * place * 100.0 ** (-2 * i / r))
        x[:, a], x[:, b] = z.real, z.imag
    return x


def in_numpy(words, made, x):
    case = {
        "kernel": "exponential",
        "normaliser": words["normaliser"],
        "mask": MASKS[words["mask"]],
        "encoding": "none",
    }
    y, total = x, 0.0

    def normed(z):
        z = z - z.mean(axis=1, keepdims=True) if words["wrapper"].endswith("layer") else z
        return made["gain"] * z / np.sqrt((z**2).mean(axis=1, keepdims=True) + 1e-2) + made["bias"]

    if words["wrapper"].startswith(("pre", "peri")):
        y = normed(x)
    for h in range(words["heads"] or 1):
        q, k, v = (
            y @ matrix[h].T + (bias[h] if name in words["biased"] else 0.0)
            for name, (matrix, bias) in list(made["maps"].items())[:3]
        )
        q, k = turn(words, q, made["place"]), turn(words, k, made["place"])
        # features side by side, so that the reference takes q, k and v for matrices that pick their own
        side, (r, c) = np.concatenate([q, k, v], axis=1), q.shape
        pick = [np.eye(3 * c)[i * c : (i + 1) * c] for i in range(3)]
        said = reference.head(case, BETA, *pick, side, side, made["m"], made["place"], made["place"])
        assert said.shape == (r, c)
        total = total + said @ made["maps"]["o"][0][h].T
    if "o" in words["biased"]:
        total = total + made["maps"]["o"][1]
    if words["wrapper"] == "gated":
        (g, a), (u, b), (w, c) = made["gate"]
        z = x @ g.T + a
        total = total + (z * expit(z) * (x @ u.T + b)) @ w.T + c
    if words["wrapper"] == "peri rms":
        total = reference.unit(total)
    if words["wrapper"].startswith("post"):
        total = normed(x + total) - x
    return reference.tangent({"space": words["space"][:-1], "gain": np.ones(made["d"])}, x, total)


def look(words):
    made = numbers(words)
    mu = tokens(words, made)
    refusal = None
    try:
        found = field(words, made).velocity(mu, T)
    except AttnflowError as error:
        refusal = str(error)
    if refusal is not None:
        assert not makes_sense(words), refusal
        assert refusal.endswith(".")
        return
    assert words["sum"] != "circle", "a sum for unit vectors was taken after Q and K"
    if not makes_sense(words):
        return
    found = found[-1] if words["batch"] == "bias" else found
    found = found if words["present"] == "all" else found[mu.present]
    x = made["x"] if words["dtype"] == "float64" else np.float32(made["x"]).astype(float)
    want = in_numpy(words, made, x)
    # rounding of logits as large as 40, times values of size 5; Sinkhorn stops at 1e-10, and contracts slowly here
    unit = 2_000 * np.finfo(words["dtype"]).eps * max(1.0, np.abs(want).max())
    unit += 1e-5 * max(1.0, np.abs(want).max()) if words["normaliser"] == "sinkhorn" else 0.0
    np.testing.assert_allclose(found, want, rtol=0, atol=unit)


COVERING = covering(CASES)


@graded("words", COVERING[::4], ids=case_name, fast=1)
def test_parts_of_trained_layers(words):
    look(words)


@graded("part", [1, 2, 3], slow=1)
def test_the_whole_covering_set(part):
    for words in COVERING[part::4]:
        look(words)


@pytest.mark.slow
def test_what_does_not_go_together_is_refused_or_right():
    for words in REFUSED:
        look(words)
