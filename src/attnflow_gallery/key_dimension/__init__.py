"""In R^d, d >= 4, nearby tokens of a cold random network meet if d_k > d - 1, and separate if d_k < d - 1.

Layers x <- N(x + sqrt(h) V m(x)) have fresh Gaussian V, Q and K; m is the softmax mean of the tokens with the logits of
Q^T K, whose factors have d_k rows (arXiv:2604.01978; d_k other than d is ours). Two tokens that lie close together have
a pair exponent, the drift of log(1 - R) of their overlap R. Where the other tokens are uniform on the sphere its sign
depends on the key dimension d_k, and for d_k < d - 1 on the temperature: there is a critical logit scale b_c. In R^3
nearby tokens meet for every d_k.

Shown: the exponent of one layer at zero temperature for d = 8 and its zero at d_k = d - 1; the exponent at finite b and
b_c; the mean cosine of Ax and Ay for A = Q^T K and for one Gaussian matrix; the drift constant c of two cold tokens,
which excludes the constants of one Gaussian matrix (3/2) and of an orthogonal one (1). Of the paper we could read the
abstract and a third-party transcription of its statements, not the text.

Not shown: finitely many tokens (uniform needs many more than e^(b sqrt d) of them), whether pairs that separate stay
apart (the collapsed state is stable at every temperature), and paths: all numbers are those of one layer.

The length of Kx is drawn with d_k - 2 degrees of freedom in place of d_k, and each pair has the weight that corrects
that: at d_k = 4 the plain mean of |dm|^2 has no finite variance, and its standard errors mean nothing.
"""

from attnflow.experiments import from_files

PAPERS = ("koubbi2026homogenized",)
__getattr__ = from_files(__name__)
