"""A learned flow carries interleaved classes to the two sides of a line, except classes that surround one another.

A neural ODE dx/dt = W tanh(A x + b) moves labelled points for the time 1, and a linear read-out follows
(arXiv:1806.07366). Weights and read-out are fitted to 400 points, from several random initial weights. Of these fits
the one with the smallest loss on its own points is judged by 20,000 other points of the same distribution. The residual
network with the same weights, x <- x + h W tanh(A x + b) in 1/h layers, approaches the flow like h.

A flow of the plane is a homeomorphism: of two nested circles the image of the outer one surrounds the image of the
inner one, so no flow in R^2 separates the circles, it can only leave a slit. A third dimension removes the obstruction
(arXiv:1904.01681). The winding number of the image needs care: the flow stretches the circle by factors of 1000 near
the slit, so points are inserted until the image turns by less than pi/4 between neighbours, seen from every point of
the inner image. With 2048 even points it turns by more than pi for some fits, and the count is wrong.

Shown: spirals, half moons and circles, held-out points, circles without noise. Training is not convex: the number of
fits that succeed is printed with the claims. "Separated" means 99 % of the distribution; this limit, the width 16 and
the rate of Adam were chosen after first trials with the seeds of salt 0. Not shown: that training always succeeds; real
data. Fitting needs the extra `learn` (Optax).
"""

from attnflow.experiments import from_files

PAPERS = ("chen2018neural", "dupont2019augmented", "marion2022scaling")
__getattr__ = from_files(__name__)
