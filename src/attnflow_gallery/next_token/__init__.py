"""Collapse loses alternatives: exp(I) goes down the staircase of cluster masses, while the entropy H need not fall.

Token j has a distribution p_j over words, and the next word has p = sum_j m_j p_j. Its entropy is H = sum_j m_j H(p_j)
+ I, where I is the information that the token carries about the word. exp(I) counts alternatives: at most the number of
clusters, and exp H(M) for clusters of masses M whose distributions do not overlap. Both halves can fail.

Shown, on the sphere S^2 with 600 words that cover it evenly: flows from random tokens to consensus rest on plateaus,
and on every plateau I lies between H(M) and H(M) less the overlap of the clusters' distributions (Bhattacharyya
coefficients); at an inverse temperature of the read-out of 400 exp(I) and exp H(M) agree to three digits where clusters
are at least 0.5 apart. There the rest of H does not change, so that H falls with I. With words in high dimension it is
the other way round: orthonormal words follow a closed form, in which H rises while exp(I) falls from n to 1, and most
prompts of random words do the same.

Not shown: anything about real language models; read-outs of the last token; metastability of random words, which have
none in high dimension. The share of random prompts whose H rises is observed, not derived.
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2025perspective", "geshkovski2024metastability")
__getattr__ = from_files(__name__)
