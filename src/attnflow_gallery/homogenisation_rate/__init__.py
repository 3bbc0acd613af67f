"""Halving the step of random layers halves the error of their limit, with a constant that vanishes in dimension 4.

Layers with fresh random weights follow a diffusion on the clock tau = eta^2 L/H, and an ODE where V has the mean v I.
How far off is a network of finite steps? One token has an exact answer: E <x_L, x_0> is the power of a closed mean
cosine, and its first error is (d-1)(d-4)/(4 d^2) tau eta^2/H of the limit: networks of d < 4 forget more than the
limit, those of d > 4 less. Two tokens with E V = v I deviate from their ODE by eta (C_E + C_N/H), Euler's error and
that of the noise, which may cancel. If E V is not a multiple of I the consensus is not free: it goes to the leading
eigenvector, power iteration, and fluctuates around it with a closed variance.

Shown: one token in several dimensions and steps; two tokens by their Gram matrices; the fluctuation for E V = diag(1,
1/2, 0). The limits are those of arXiv:2604.01978, the errors are derived here. Not shown: several tokens at a finite
temperature, for which no constant is known.

The probability that chance fails a claim is below 1e-6, by Student's test with Bonferroni's bound.
"""

from attnflow.experiments import from_files

PAPERS = ("koubbi2026homogenized",)
__getattr__ = from_files(__name__)
