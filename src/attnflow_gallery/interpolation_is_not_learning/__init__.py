"""A schedule that carries samples of measures to targets fails for other samples of the same measures.

`match_measures` carries given tokens to given atoms exactly. If the targets are single atoms, fresh samples of the same
input distributions arrive as well: clouds are far apart, and gates are wider than clouds. If a target has four atoms,
the schedule cuts the cloud at certain tokens. Attention has contracted the cloud to a radius e^(-t), while the mean of
a fresh sample, around which its cloud forms, is off by n^(-1/2): the cuts miss, and fresh tokens reach some atom, but
not in the right numbers. The distance does not vanish with n in the range shown. So constructions of this kind are
proofs and oracles, never learning (the remark is ours; the construction is in the spirit of arXiv:2411.04551).

Shown: W_2 of the tokens that were given and of fresh ones, for one and for four atoms, against n; the shift of the
clouds' centres.

Not shown: other constructions, with fewer or wider cuts, which may generalise better; training.
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2024measure",)
__getattr__ = from_files(__name__)
