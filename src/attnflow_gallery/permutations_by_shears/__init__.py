"""Permutations of cells of a square are compositions of ReLU shears; they approximate incompressible maps in L^2.

The commutator of a shift of one row and a shift of one column of cells is a 3-cycle of cells: 16 ReLU units, each of
which preserves the volume exactly. Cells are placed one at a time, by about 16 units each. arXiv:2602.08606
approximates maps together with their densities by a permutation, a gradient map and a permutation; this construction of
the permutation is ours (of the paper we could read the abstract and a summary).

Shown: in the plane, off the rims of cells: 3-cycles are exact on the cores of cells; random permutations; a smooth
swirl of the square is approached in L^2 like N^(-1/2) for N cells; and what the rims do: at a fixed width, relative to
cells, they add to the squared error an amount that does not fall with N. The width 0.03 was chosen after 0.01 had shown
too little at 16 x 16 cells; salts 21 to 23 are fresh.

Not shown: more than two dimensions, where the order is 1/d: smooth maps are built better by other means.
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2026constructive",)
__getattr__ = from_files(__name__)
