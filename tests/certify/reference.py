"""Flows on the circle at 50 digits by extrapolation of the midpoint rule (Gragg, Bulirsch, Stoer): no Taylor series."""

import mpmath


def velocity(beta, masses, softmax):
    shares = [mpmath.mpf(m) / mpmath.fsum(masses) for m in masses]

    def field(theta):
        found = []
        for x in theta:
            weights = [m * mpmath.exp(beta * (mpmath.cos(y - x) - 1)) for m, y in zip(shares, theta, strict=True)]
            force = mpmath.fsum(w * mpmath.sin(y - x) for w, y in zip(weights, theta, strict=True))
            found.append(force / mpmath.fsum(weights) if softmax else force)
        return found

    return field


def midpoints(field, start, length, half):
    """2 half substeps of the midpoint rule, smoothed: its error is a series in the square of the substep."""
    h = length / (2 * half)
    before, now = start, [x + h * v for x, v in zip(start, field(start), strict=True)]
    for _ in range(2 * half - 1):
        before, now = now, [x + 2 * h * v for x, v in zip(before, field(now), strict=True)]
    return [(a + b + h * v) / 2 for a, b, v in zip(before, now, field(now), strict=True)]


def flow(angles, beta, until, *, masses=None, softmax=True, steps=8, rows=10, digits=50):
    """(angles at `until`, an estimate of their error): the last row of the table, and how far the one before is."""
    with mpmath.workdps(digits):
        field = velocity(mpmath.mpf(beta), masses or [1] * len(angles), softmax)
        theta, length, error = [mpmath.mpf(x) for x in angles], mpmath.mpf(until) / steps, mpmath.mpf(0)
        for _ in range(steps):
            last: list = []
            for k in range(1, rows + 1):
                row = [midpoints(field, theta, length, k)]
                for j in range(1, k):
                    factor = (mpmath.mpf(k) / (k - j)) ** 2 - 1
                    pairs = zip(row[-1], last[j - 1], strict=True)
                    row.append([a + (a - b) / factor for a, b in pairs])
                last, theta_now = row, row[-1]
            error += max(abs(a - b) for a, b in zip(row[-1], row[-2], strict=True))
            theta = theta_now
        return theta, error
