"""Every public formula against an oracle that shares no step with it, at the ends of its domain.

`points.py` draws arguments from the domain that a formula declares; `uniform.py`, `merging.py`, ... have an oracle for
every formula of a room, mostly mpmath at 50 digits; `tables/` has their values, written by `python -m
tests.formulas.write ROOM`.
"""
