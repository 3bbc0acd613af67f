"""Given the heads the density of tokens is carried, not spread: tokens with the same heads follow it at n^(-1/2).

In random deep attention every layer and head has fresh Gaussian weights, which all tokens share. In the limit of small
steps tokens follow an equation with common noise, and infinitely many of them have a random density that depends on the
heads alone (arXiv:2604.01978). Each layer carries this density by one map, so that nothing diffuses; only the average
over heads looks like diffusion. At infinite temperature on the circle the density stays a Poisson kernel whose mean w
moves at random, and log|w|^2 is a martingale, although |w| tends to 1 on almost every path (derived here).

Shown on the circle: n iid tokens with the heads of the density approach it like n^(-1/2), with the constant of the
linearised layers, and tokens with other heads do not; points carried by boosts keep their masses in the Poisson kernel
to rounding, and layers of time h leave these kernels like sqrt(h), with its constant; E log|w|^2 and E|w|^2 (a method
of Heun, which evaluates the noise inside the step, follows another equation); a uniform start stays antipodally
symmetric on every path, so that it ends in antipodal pairs at best; the decay of E<x(tau), x(0)>.

Not shown: higher dimensions (except for single tokens), heads of finite number or values with a mean, rates in the step
for b > 0, the times at which tokens collapse (see collapse-at-initialisation). A true statistical claim fails by chance
with probability 1e-6 at most. Of the paper we read the abstract and a third-party transcription of its statements.
"""

from attnflow.experiments import from_files

PAPERS = ("koubbi2026homogenized",)
__getattr__ = from_files(__name__)
