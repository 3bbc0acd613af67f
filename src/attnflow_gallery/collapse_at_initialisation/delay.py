"""Without logits: by how much the mean over networks collapses later than ln(n + 1), to first order in 1/d."""

import math

import numpy as np


def limit(n: int) -> float:
    """c_n for short steps: the mean overlap passes 1/2 at ln(n + 1) + c_n/d + O(1/d^2)."""
    depth = math.log(n + 1)
    drift = 2 * depth + (n * math.log(2) - depth) / (n - 1)
    return drift + 4 * (depth * (n + 1) / (2 * n) - math.log(2))


def of_layers(n: int, h: float) -> float:
    """The same for layers of time h, on the clock on which a layer takes the time log(1 + h)."""
    u, variance, mean = 1 / n, 0.0, 0.0
    depth, clock = math.log(n + 1), math.log1p(h)
    layers = math.ceil(depth / clock) + 2
    found = []
    for _ in range(layers):
        found.append(-mean / (u * (1 - u)))  # how late the mean is, times d
        push, gamma = h * u, (n * u - 1) / (n - 1)
        size = 1 + push
        bent = (gamma + push) * (3 + gamma + 2 * push) / size - 2 * (1 + gamma + push)
        slope, curve = (1 + h) / size**2, -2 * h * (1 + h) / size**3
        mean = slope * mean + curve / 2 * variance + (n - 1) / n * push / size**2 * bent
        variance = slope**2 * variance + h * (4 + 2 * h) * (u * (1 - u)) ** 2 / size**4
        u = (1 + h) * u / size
    return float(np.interp(depth, clock * np.arange(layers), found))
