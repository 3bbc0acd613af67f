"""USA closes the energy balance of gradient flows in W_2; softmax misses it by a known integral.

A curve of measures with the metric speed |mu'| and an energy E with the slope |dE| satisfy dE/dt <= |mu'|^2/2 +
|dE|^2/2, with equality for gradient flows in W_2 alone. Unnormalised attention (USA0) is such a flow. Softmax attention
divides the velocity by Z, and misses the equality by (1/2) sum_i m_i (1 - Z_i)^2 |v_i|^2. It closes the balance in the
metric that is weighted by Z.

Shown for random tokens on S^2: the balance at every frame against plain formulas, to rounding; the same integrated in
time, against the rise of the energy along the flow; the cosine between velocity and gradient, which no clock changes.
Not shown: merged tokens, where the metric speed is smaller than the mean square of the velocities. How straight the
paths are (W_2 of the ends over the length) is drawn and not claimed.
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2025perspective", "rigollet2025meanfield")
__getattr__ = from_files(__name__)
