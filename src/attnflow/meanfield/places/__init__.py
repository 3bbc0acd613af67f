"""Densities with a place as a coordinate: the mean field of a prompt, whose places decide who sees whom."""
