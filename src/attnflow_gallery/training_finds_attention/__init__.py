"""From random weights, in-context clustering trains Q^T K and V to multiples of the identity.

Every prompt has its own four centres, and its tokens are noisy copies of them; layers of attention with the same
matrices Q, K, V in each shall carry each token to its centre. Gradient descent on prompts finds Q^T K = beta I and
V = v I up to a few per cent, and then layers increase the energy of attention on every prompt, as the gradient flow
does. Before training they do so on few prompts only (measured here; no paper that we read states it).

Shown: the share of seeds that leave the plateau of the start, with a test loss of at most 1.1 times that of the best
isotropic flow; for those, anisotropy, symmetry, energy, clusters and the order parameter through training; for
comparison the same task with weights of its own in every layer, where V is not isotropic, and layers may repel.

The start matters: from large random weights most seeds stay on a plateau on which layers do nothing, from small ones
all of our trials left it.

Not shown: for how long seeds stay on the plateau; other tasks, dimensions and optimisers; any claim on v,
which is a flat direction (for large v the residual no longer matters: mean shift), or on language models.
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2025perspective", "smart2025context")
__getattr__ = from_files(__name__)
