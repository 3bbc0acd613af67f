"""Densities with an axis on S^(d-1), d = 2 to 64, grow and condense at the rates of theory.

A density that is symmetric about an axis stays so, and its continuity equation has one variable, the overlap s = <x,
axis>, in every dimension. Degree k of a perturbed uniform measure grows at the rate lambda_k = k (k+d-2)
I_(k+d/2-1)(beta)/(beta I_(d/2-1)(beta)) under softmax attention (arXiv:2410.23228; Funk and Hecke).

Shown: growth of small harmonics by the nonlinear equation; the time in which a density of small mean overlap condenses,
which grows by log 10 over the first rate when the overlap is divided by ten; tokens on S^7 against the density, within
the standard error that the linearised flow carries. Not shown: perturbations that break the symmetry, which other modes
would amplify; unnormalised attention, whose rates near the uniform measure differ by its clock.
"""

from attnflow.experiments import from_files

PAPERS = ("bruno2024emergence", "geshkovski2025perspective")
__getattr__ = from_files(__name__)
