"""Attention of fresh encoders raises the overlap of tokens as random layers should; one layer repeated is far faster.

At initialisation the matrices of a layer are random and the theory of random layers has no free parameter: in a layer
with matrices of deviation s, d coordinates and heads of d_k rows, tau = s^4 d_k H d is the time, b = s^2 d the logit
scale, and the mean overlap changes by tau times the mean drift over pairs of tokens.

Shown: in fresh networks of the shapes of MiniLM and, with weights of its own for every layer, of rxnmapper, the change
of the mean overlap by attention, summed over layers, is the predicted one. rxnmapper itself applies one layer twelve
times. Its first application does what is predicted, and all of them together raise the overlap more than three times as
much: the updates are no longer independent of the tokens, so that they add up.

Not shown: whole layers; the theory has no perceptron, so that the drift of each layer is predicted from the tokens
that enter it. Decoders: before the first layers of a fresh pre-norm network tokens are short, one step is far from
small, and the prediction does not apply. Nothing here is trained, and no network is fetched: words and chemical signs
are numbered.
"""

from attnflow.experiments import from_files

PAPERS = ("koubbi2026homogenized",)
__getattr__ = from_files(__name__)
