"""Attention of trained networks prefers similar tokens, as with an inverse temperature above 0; that of nulls does not.

The theory has attention with weights e^(beta cos). In a trained network beta is the slope of log-attention on cosines
within rows, fitted head by head; it comes with a correlation sign(beta) R, which says how much the slope means and
stays bounded where tokens have collapsed and slopes have any size.

Shown: for the median head of the median layer, the mean over texts of beta is above that of any draw of the same
network with permuted and with fresh weights, over layers that have not collapsed. The correlation is above that of any
draw of permuted weights, and more heads have beta > 0. And how little this is: cosines explain a quarter of the
variance of log-attention at most.

Not shown: that heads are those of the theory. Most of the variance of log-attention is not explained, Q and K differ,
and layers disagree (the last claim lists them). That the correlation is above that of every fresh network: in
rxnmapper, one layer of eight heads, the trained network is only three to four standard deviations of such draws above
their mean. "Permuted" keeps the biases and gains of norms, "init" resets them: neither is the only null. The texts are
few and of two kinds: reactions for rxnmapper, help texts of Python for MiniLM. Both are encoders; no decoder is asked.
The quick version, which CI runs, has rxnmapper alone.
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2025perspective",)
__getattr__ = from_files(__name__)
