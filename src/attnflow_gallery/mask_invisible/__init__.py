"""Prompts of iid tokens move as if there were no causal mask, as densities and in the mean; their noise is larger.

In the mean field a prompt is a density at every place, and a token hears the mean over the places before it. If the
density at the start is the same at all places, every prefix has the same density as the whole prompt, so that the mask
and its ALiBi slope change nothing: f(t, sigma, x) equals the solution without a mask (ours; the causal mean field is
from arXiv:2605.09213).

Shown: densities with places under Causal with slopes 0 and 2, softmax and USA0, agree with `evolve` and do not depend
on the place. N iid tokens with and without a mask: the mean of their order parameter agrees with the density, and
the mean square of its noise agrees with noise carried by the linearised flow of N places, larger under the mask. A
prompt whose topic changes at a place does see the mask, by the amount that the placed density predicts. Not shown: the
linearised flow of the mean at second order (a bias of order 1/N is allowed for); depths at which noise is as large as
the density.

The probability that chance fails a claim is below 1e-6, by Student's test with Bonferroni's bound for the number of its
entries. Sizes were chosen on other random numbers.
"""

from attnflow.experiments import from_files

PAPERS = ("duerinckx2026kinetic",)
__getattr__ = from_files(__name__)
