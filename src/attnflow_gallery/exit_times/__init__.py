"""Over random starts, exit times from plateaus have the distribution of a cascade of merging pairs.

Two iid tokens on a sphere are at a random angle, and they merge in a time that is an increasing function of it: the
distribution of log T has a closed form. Of more tokens the fastest pair merges first, and so on. As long as the next
pair is much slower (a factor e^(beta gap)) each merge is that of a pair, and the exit time from every plateau is a sum
of pair times: the cascade, which is computed from the start without an integration. As beta -> infinity only
(log T)/beta remains, the largest u = 1 - cos of the merging angles so far (arXiv:2410.06833).

Shown: the distribution over seeds of log T of two tokens, of the first merge of eight tokens, and of the exit from
their last plateau, that of two clusters. Simulated seeds are compared with the cascade of *other* seeds, drawn by
another sampler, without any slack; each comparison has a level that was chosen beforehand. Besides, every merge of
every seed is compared with the cascade of its own start, where that has a small error: where other pairs may change
log T by at most 0.1, to first order. Seeds beyond that limit, which was chosen and not derived, are in all
distributions. Not shown: many tokens, for which the first plateaus are crowded.
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2024metastability", "geshkovski2025perspective")
__getattr__ = from_files(__name__)
