"""Densities by their harmonics: bases, densities, attention as an equation for them, and `evolve`.

The ground floor of `meanfield`: cells and places are made of these densities and of this model.
"""
