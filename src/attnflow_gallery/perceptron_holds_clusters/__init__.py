"""Two neurons hold two clusters apart until attention is stronger by a factor e^(beta u); then they merge.

Energy (kappa/2 beta) sum m_i m_j e^(beta (<x_i, x_j> - 1)) + sum m_i U(x_i), U = sum_j (1/2)(a_j . x)_+^2 with two unit
vectors at the angle Theta > pi/2 (arXiv:2601.21366 has this energy and shows that critical measures are generically
atoms). Two clusters of equal mass, one at each neuron, last for ever if kappa < kappa*, the maximum of
sin(Theta - theta)/g(theta) over their separation theta, g the closing speed of attention. kappa* grows like e^(beta u),
u = 1 - cos theta, and is half as large for softmax.

Shown: separations at rest of 12 tokens on S^2 on both sides of kappa*; the fold from the tokens, by bisection; rates at
the held pair against closed forms; for softmax with a perceptron the cycle product of the Jacobian at an equilibrium,
which is 1 for gradients of an energy in any metric that is diagonal in the tokens, and is not 1. Not shown: unequal
masses, limit cycles of softmax with a perceptron, which were neither found nor excluded.
"""

from attnflow.experiments import from_files

PAPERS = ("alvarez2026perceptrons",)
__getattr__ = from_files(__name__)
