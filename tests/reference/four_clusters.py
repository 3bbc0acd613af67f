"""Merge times of four clusters on the circle by SciPy alone: `python -m tests.reference.four_clusters`.

Clusters at the angles 0, 0.9, 2.3, 3.9 with masses 0.1, 0.2, 0.3, 0.4 move at beta = 12 by
    USA0: theta_i' = sum_j m_j e^(-beta (1 - cos(theta_j - theta_i))) sin(theta_j - theta_i),
    SA: the same, divided by sum_j m_j e^(-beta (1 - cos(theta_j - theta_i))), j = i included.
Two clusters become one, at the mean of their angles weighted by their masses, when they are 1e-3 beta^(-1/2) apart.
Explicit Runge-Kutta of order 8 (DOP853) in plain time, from one merge to the next; nothing of the library is imported.
Digits: the times of the relative tolerances 1e-10 and 1e-13 differ by less than 2e-8 of them.
"""

import numpy as np
from scipy.integrate import solve_ivp

BETA = 12.0
ANGLES, MASSES = (0.0, 0.9, 2.3, 3.9), (0.1, 0.2, 0.3, 0.4)
END = 1e-3 / BETA**0.5


def velocity(theta, masses, model):
    """Angular velocities."""
    apart = theta[None, :] - theta[:, None]
    weight = masses * np.exp(-2 * BETA * np.sin(apart / 2) ** 2)
    moved = np.sum(weight * np.sin(apart), axis=1)
    return moved / np.sum(weight, axis=1) if model == "SA" else moved


def merge_times(model, rtol=1e-13):
    """Times of the three merges, and the masses of what merges."""
    theta, masses, time, found = np.array(ANGLES), np.array(MASSES), 0.0, []
    while len(masses) > 1:
        met = [  # neighbours on the circle; the last and the first are neighbours as well
            lambda t, x, k=k: np.abs(np.angle(np.exp(1j * (x[(k + 1) % len(x)] - x[k])))) - END
            for k in range(len(masses) if len(masses) > 2 else 1)
        ]
        for one in met:
            one.terminal = True
        way = solve_ivp(
            lambda t, x, m=masses: velocity(x, m, model),
            (0.0, 1e12),
            theta,
            "DOP853",
            rtol=rtol,
            atol=1e-16,
            events=met,
        )
        k = next(k for k, times in enumerate(way.t_events) if len(times))
        theta, other = way.y_events[k][0], (k + 1) % len(masses)
        time += way.t_events[k][0]
        found.append((time, (masses[k], masses[other])))
        step = np.angle(np.exp(1j * (theta[other] - theta[k])))
        theta[k] += step * masses[other] / (masses[k] + masses[other])
        masses[k] += masses[other]
        theta, masses = np.delete(theta, other), np.delete(masses, other)
    return [t for t, _ in found], [pair for _, pair in found]


if __name__ == "__main__":
    for name in ("USA0", "SA"):
        coarse, _ = merge_times(name, 1e-10)
        for k, (t, pair, rough) in enumerate(zip(*merge_times(name), coarse, strict=True)):
            print(
                f"{name} merge {k + 1}: t = {t:.10g}, masses {pair[0]:.1f} + {pair[1]:.1f}, change {rough / t - 1:.1e}"
            )
