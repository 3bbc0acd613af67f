"""All equilibria of few tokens on the circle, proved: one for each cyclic arrangement of cluster sizes.

Lists of equilibria by Newton's method may miss some. Ball arithmetic cuts the configurations of n equal tokens into
cubes; a cube is done if a force is nowhere zero in it, or if it lies in a box that holds exactly one zero. What comes
out is a theorem, conditional on the arithmetic and on cited lemmas: all equilibria up to symmetry, each nondegenerate,
with its index (number of growing directions). A second program confirms every certificate (docs/proved.md).

Shown: the lists for 3 to 6 tokens at several beta, and for all beta of an interval. Above the threshold log((n-2)/2)/2
there is one equilibrium for each cyclic arrangement of cluster sizes up to reflection, with index clusters - 1; that
this holds for every n is a conjecture. Below the threshold the arrangement (n-2)+1+1 is missing. Newton's method in
floats finds the same lists. Indices of rings and regular polytopes are proved and compared with closed forms and
floats.

Not shown: lists on S^2, lists for more than 6 tokens, and beta where the list changes, which is undecided.
"""

from attnflow.experiments import from_files

PAPERS = ("polyanskiy2025synchronization", "criscitiello2024synchronization", "cohn2007universally")
__getattr__ = from_files(__name__)
