"""Every field at extreme beta, n and d: what comes out is finite, or is refused in one sentence."""

import numpy as np

import attnflow as af
from attnflow.errors import AttnflowError, NotFinite
from attnflow.fields import LayerNorm, RmsNorm, Unit
from attnflow.kernels import Cosine, Gaussian, Polynomial
from tests.fuzz import Finding, sentence

BETAS = (0.0, 5e-324, 1e-8, 1.0, 30.0, 700.0, 1e4)
LONGEST = 10.0
"""Seconds that one evaluation may be expected to take."""
MOST_PAIRS = 5e8
"""Products of coordinates that a sum over all pairs may take in one example."""


def on_sphere(make):
    return lambda beta, d: (af.Sphere(d), make(beta, d))


def on_plane(make):
    return lambda beta, d: (af.Euclidean(d), make(beta, d))


def turning(d):
    """A matrix with 1s beside the diagonal, in two heads."""
    return np.stack([np.roll(np.eye(d), 1, axis=0), -np.eye(d)])


FIELDS = {
    "softmax": on_sphere(lambda beta, d: af.Attention(beta)),
    "repulsive": on_sphere(lambda beta, d: af.Attention(-beta)),
    "causal": on_sphere(lambda beta, d: af.Attention(beta, mask=af.Causal(slope=0.1))),
    "strict": on_sphere(lambda beta, d: af.Attention(beta, mask=af.Causal(slope=50.0, strict=True))),
    "window": on_sphere(lambda beta, d: af.Attention(beta, mask=af.Window(2))),
    "USA0": on_sphere(lambda beta, d: af.Attention(beta, normaliser=af.Unnormalised())),
    "USA": on_sphere(lambda beta, d: af.Attention(beta, normaliser=af.Unnormalised("USA"))),
    "grad": on_sphere(lambda beta, d: af.Attention(beta, normaliser=af.Unnormalised("grad"))),
    "hardmax": on_sphere(lambda beta, d: af.Attention(beta, normaliser=af.Hardmax())),
    "sinkhorn": on_sphere(lambda beta, d: af.Attention(beta, normaliser=af.Sinkhorn())),
    "gaussian": on_sphere(lambda beta, d: af.Attention(kernel=Gaussian(beta))),
    "polynomial": on_sphere(lambda beta, d: af.Attention(kernel=Polynomial(3, beta), normaliser=af.Unnormalised())),
    "cosine": on_sphere(lambda beta, d: af.Attention(kernel=Cosine(), normaliser=af.Unnormalised())),
    "heads": on_sphere(lambda beta, d: af.Attention(beta, query=turning(d), value=turning(d))),
    "rotary": on_sphere(lambda beta, d: af.Attention(beta, encoding=af.encodings.Rotary())),
    "perceptron": on_sphere(lambda beta, d: af.Perceptron(beta * np.eye(d), np.ones(d), np.eye(d), activation="gelu")),
    "total": on_sphere(lambda beta, d: af.Attention(beta) + af.Perceptron(np.eye(d), np.ones(d), -beta * np.eye(d))),
    "multiple": on_sphere(lambda beta, d: beta * af.Attention(beta)),
    "ngpt": on_sphere(lambda beta, d: af.norms.Ngpt(af.Attention(beta), 0.5)),
    "plane": on_plane(lambda beta, d: af.Attention(beta)),
    "rescaled": on_plane(lambda beta, d: af.Rescaled(af.Attention(beta, value=np.eye(d)))),
    "pre": on_plane(lambda beta, d: af.norms.Pre(af.Attention(beta), Unit())),
    "peri": on_plane(lambda beta, d: af.norms.Peri(af.Attention(beta), RmsNorm(np.ones(d)))),
    "scaled": on_plane(lambda beta, d: af.norms.Scaled(af.Attention(beta), LayerNorm())),
    "mix": on_plane(lambda beta, d: af.norms.Mix(af.Attention(beta), 0.5, Unit())),
}
NOT_FINITE = {"sinkhorn": (30.0, 700.0, 1e4)}
"""Where an evaluation may end in NaN, which is refused: the iteration of Sinkhorn slows down like e^(-beta)."""
LARGE = ("heads", "perceptron", "total", "rescaled")
"""Fields with matrices of d x d, for which n d^2 is counted instead of n d."""
FAST = ("softmax", "USA0", "causal")
"""Fields that have sums without pairs on the circle and on S^2."""


def is_affordable(name, beta, n, d):
    """Whether an example ends soon: few pairs, or a series; ten million tokens at two temperatures."""
    if (n > 10**5 and beta not in (0.0, 1.0)) or (name == "sinkhorn" and n > 300):  # thousands of iterations
        return False
    if name in LARGE and (d > 512 or n * d * d > MOST_PAIRS):
        return False
    return n * n * d <= MOST_PAIRS or (name in FAST and d <= 3 and n <= 10**7)


def check(name, beta, n, d, seed=0):
    """Evaluate one field: "finite", "refused" with a sentence, "not finite" where that is known, or "left out"."""
    where = f"{name}, beta = {beta:g}, n = {n}, d = {d}"
    try:
        space, field = FIELDS[name](beta, d)
        tokens = af.uniform(space, n=n, seed=seed)
        if n > 10**4:
            offers = field.choice(tokens, 1e-6).options
            if min(offer.seconds for offer in offers if not offer.why_not) > LONGEST:
                return "left out"
            field = field.prepare(tokens, 1e-6)
        found = np.asarray(field.velocity(tokens))
    except NotFinite as error:
        if beta not in NOT_FINITE.get(name, ()):
            raise Finding(f"{where}: {error}") from error
        return "not finite"
    except AttnflowError as error:
        sentence(str(error))
        return "refused"
    except Exception as error:
        raise Finding(f"{where}: {type(error).__name__}: {str(error)[:200]}") from error
    if found.shape != (n, d) or not np.isfinite(found).all():
        raise Finding(f"{where}: {np.sum(~np.isfinite(found))} entries of the velocity are not finite")
    return "finite"
