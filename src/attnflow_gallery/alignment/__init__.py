"""The update by attention of a trained network points a little along the velocity of theory, and explains little of it.

Attention adds an update to every token. Theory has a velocity for the same tokens: softmax attention with Q = K = V = I
at the fitted beta. Their mean cosine is the alignment; its square, about, is the share of an update that theory
explains.

Shown: for the median layer, the mean alignment over texts is above that of any draw of the same network with permuted
weights. It is no mark of training by itself: in rxnmapper, which applies one layer twelve times, networks with fresh
weights align better than the trained one in the mean; in MiniLM, whose layers differ, they do not align. And how little
it is: the velocity explains 15 % of the squared update at most, layer by layer, and one step of one ODE for all layers
no more.

Not shown: that layers are steps of the flow; the numbers say that they are not. Whether alignment rises in training, as
no checkpoints are looked at. Why fresh weights align in rxnmapper: the two networks differ in more than the sharing of
weights. That every fresh network of its shape aligns better: the claim is about their mean. Both networks are encoders;
no decoder is asked. The quick version, which CI runs, has rxnmapper alone.
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2025perspective",)
__getattr__ = from_files(__name__)
