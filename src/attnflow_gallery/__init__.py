"""The published results, one module each.

A module defines `PAPERS`, the frozen dataclass `Parameters` (defaults: the full version), `QUICK`, and the functions
`run(parameters, study)`, `claims(parameters, data)` and `draw(parameters, data)`; its docstring begins with the
statement, and that of `draw` is the caption of the figure. It is found by its file name.
"""
