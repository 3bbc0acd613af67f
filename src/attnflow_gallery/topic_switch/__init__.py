"""An early topic takes over the last token of a causal prompt, at the depth log(1/share) + 1/2.

The first tokens of a prompt, a share s of it, lean towards one direction, the later ones towards another. The last
token belongs to the late topic. But it hears its whole past, and what it hears has heard the beginning: in
linear theory the early topic owns the part P(N_c > N_y) of its signal, N_c and N_y independent Poisson numbers of means
c = a t and y = log(1/s), and more than a half from the depth c near log(1/s) + 1/2 on. A slope of ALiBi only makes y
larger, and the take-over later.

Shown, on the circle with softmax at beta = 1: densities with places (`evolve_placed`), whose amplitudes tend to the
closed forms as the leaning eps tends to 0, with an error of order eps^2; the depth of the take-over for several
shares, with and without a slope. Drawn and not claimed: quiet prompts of tokens (a golden-ratio sequence of
quantiles), which follow the density of the same eps the better the more they are; no error of theirs is known
beforehand (mask-invisible has a claim about tokens and a change of topic).

Not shown: iid prompts, whose noise grows as e^{2c} I_0(2c)/N and hides leanings that are this small (see causal-
correlations); topics of other degrees; long times, when everything collapses. Leanings of 0.05 and 0.1 are no longer
small at the take-over: there tokens follow the density, and not the closed form. Two claims about tokens were dropped:
a first bound on their depth of the take-over failed for 4,096 tokens at the slope 2, and a bound on their error was
taken from the errors of fewer tokens. Of the paper on causal prompts the abstract, the start of the introduction and
the authors' scripts were read, not the whole text.
"""

from attnflow.experiments import from_files

PAPERS = ("duerinckx2026kinetic",)
__getattr__ = from_files(__name__)
