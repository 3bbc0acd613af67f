"""Proofs by machine: statements about attention, enclosed in balls, with certificates that another program checks.

`equilibrium` and `branch` are about configurations that floats found, `circle_equilibria` lists all equilibria of 3
to 6 tokens on the circle. A proof gives a `Certificate` or `Undecided`, never a truth value. `check` confirms a saved
certificate with mpmath.iv and none of the code that found it. "Proved" means computer-assisted: conditional on FLINT
(or mpmath) and on the lemmas that the certificate names (docs/proved.md). Proofs need the extra `certify`; nothing
here is called by solvers.
"""

from attnflow.lazy import loader

_HOME = {
    "attnflow.certify.balls": ["Ball"],
    "attnflow.certify.cap_bounds": ["stay_apart"],
    "attnflow.certify.certificates": ["Certificate", "Undecided"],
    "attnflow.certify.checking": ["Verdict", "check"],
    "attnflow.certify.circle_lists": ["circle_equilibria"],
    "attnflow.certify.closed_forms": [
        "dominant_degree",
        "expected_modes",
        "jump_threshold",
        "merge_time",
        "switching_threshold",
        "unstable_modes",
    ],
    "attnflow.certify.mode_counts": ["circle_modes"],
    "attnflow.certify.orbits": ["branch", "equilibrium"],
}
__all__ = sorted(name for names in _HOME.values() for name in names)
__getattr__, __dir__ = loader(__name__, _HOME)
