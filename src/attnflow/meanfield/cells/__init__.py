"""Finite volumes: masses of cells of the circle, or of the polar angle, through concentration into clusters."""
