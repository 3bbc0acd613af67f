"""One attention layer that is trained to denoise finds the inverse temperature 1/sigma^2, or its mirror image.

A query is a clean point plus Gaussian noise of size sigma; a context of clean unit tokens says where clean points are.
For a long context the best answer is the posterior mean, which is softmax attention with Q^T K = I/sigma^2 and V = I
(arXiv:2502.05164). Gradient descent from random matrices Q, K, V finds multiples of the identity with about this
inverse temperature. Where the data are symmetric under x -> -x, (-Q^T K, -V) is as good, and some seeds end there.

Shown: tr(Q^T K)/d against 1/sigma^2, the anisotropy of Q^T K and V, and the loss against the best multiples of the
identity, for contexts of four centres and of a random great sphere; the loss of the mirror image; the signs found.

Not shown: that 1/sigma^2 is exact. For finite contexts the best inverse temperature may be another one, in a flat
valley; several layers; noise in the context. The probability of each sign is not claimed. Of the paper we read the
abstract.
"""

from attnflow.experiments import from_files

PAPERS = ("smart2025context",)
__getattr__ = from_files(__name__)
