"""Groups of tokens stay apart at least as long as two point masses at the edges of their caps: proved and simulated.

Each group lies in a cap around a fixed direction. A token at the edge of its cap is pulled inwards by its own group,
and outwards at most as by point masses at the least gap between caps. So the caps grow no faster than a scalar law
says, and a lower bound on the lifetime of a plateau follows, a number with a certificate (`certify.stay_apart`). It
holds for any number of tokens, dimension, masses and shapes. Validated flows (`certify.circle_flow`) give where a start
on the circle is at a time T with a proved error, and `certify.circle_consensus` that all starts in a ball converge.

Shown: the bound against simulated lifetimes of planted groups (softmax attention SA and its gradient-flow variant USA0)
and of the plateaus of iid starts; that the bound is sharp for two point masses; flows in floats inside their tubes;
starts in a ball whose consensus is proved. The bound is about exact starts: that an iid start reaches the plateau where
its bound begins is computed, not proved.

Not shown: proved collapse inside the caps, and plateaus of groups that are not separated by caps.
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2024metastability", "geshkovski2025perspective")
__getattr__ = from_files(__name__)
