"""What can be said about densities and their equation: stability, stationary states, distances to tokens, chaos."""
