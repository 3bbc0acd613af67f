"""Places do not average out: rotary attention has growing modes of its own and equilibria that are not consensus.

Additive places change the start alone. If words and places are orthonormal, tokens x = N(word + s place) follow two
numbers, the overlaps within and across words: places delay the gathering of copies and advance the merging of words.
Rotary places turn queries and keys and leave values alone. On the circle with places that go once round, the mode
cos(k theta + (k-1) omega p) on top of the uniform measure grows at the rate (k/2) I_{k-1}/I_0, without a bound as beta
grows, though the kernel averaged over places has the mode k = 1 alone. Consensus is approached at the rate 1 - I_1/I_0.

Shown: the two overlaps against tokens; rates of modes and of the approach to consensus; random starts that come to rest
in other states. Not shown: a list of these states, several frequencies (d >= 4), prompts whose places do not go round a
whole number of times. If values are rotated too, the model is the plain one in the turned angles and sees no places.
"""

from attnflow.experiments import from_files

PAPERS = ("su2021roformer", "geshkovski2025perspective")
__getattr__ = from_files(__name__)
