"""A schedule that cuts samples of measures at certain tokens cuts other samples of the same measures wrongly.

`match_measures` carries given tokens to given atoms exactly. If a target has four atoms, the schedule cuts the cloud at
certain tokens. Attention has contracted the cloud to a radius e^(-t), while the mean of a fresh sample, around which
its cloud forms, is off by n^(-1/2): the cuts miss, and fresh tokens reach some atom, but not in the right numbers. If
the targets are single atoms there is no cut, and most fresh samples arrive, but not all: in a quarter of them some
tokens lie beyond a gate that was made for others, or are swept along by one. Neither share falls with n in the range
shown. So constructions of this kind are proofs and oracles, never learning (the remark is ours; the construction is in
the spirit of arXiv:2411.04551).

Shown: the share of fresh samples that miss, for one and for four atoms, against n; masses at wrong atoms against the
shift of a cloud over its radius; the order of that shift in n. An earlier version claimed medians of W_2, which hide
what a quarter of samples does.

Not shown: other constructions, with fewer or wider cuts, which may generalise better; training.
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2024measure",)
__getattr__ = from_files(__name__)
