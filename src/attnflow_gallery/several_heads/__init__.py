"""A plateau lasts as long as the flattest of several heads allows; heads with axes of their own hold clusters for ever.

Heads that differ in beta alone mix clocks: two clusters merge in a time with the exponent min beta_h and the prefactor
1/w, w the weight of that head. One weak flat head ends a plateau. Heads that read and write one coordinate each
(Q_h = K_h = V_h = e_h e_h^T) do more if attention is unnormalised (USA): clusters on the axes are stable above a
threshold in beta, asinh 1 for a pair, sinh(beta) = beta + d - 1 for all 2 d half axes. For softmax with the same heads,
where the matrices V_h add up to I, these states are unstable at every beta.

Shown: merge times of two clusters under two heads against an integral; the prefactor; thresholds and rates from the
derivative of the field against closed forms; where random tokens on the circle end. Not shown: a list of all stable
states of USA, or a proof that softmax heads always end in consensus. The lecture notes call several stable
configurations a feature of many heads as such; here it depends on the normaliser.
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2024metastability", "geshkovski2025perspective")
__getattr__ = from_files(__name__)
