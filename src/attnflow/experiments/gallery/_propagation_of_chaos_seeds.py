"""What the seeds of `propagation_of_chaos` say together."""

import dataclasses

import numpy as np
import xarray as xr

from attnflow.experiments.claim import Claim


@dataclasses.dataclass(frozen=True)
class Summary:
    """What seeds say about one model, (size, time)."""

    sizes: np.ndarray
    seeds: np.ndarray
    times: np.ndarray
    mean: np.ndarray
    spread: np.ndarray
    """(time,): standard deviation of W_1 as a share of its mean, pooled over sizes."""
    nonlinear: np.ndarray
    """mean(W_1 - that of the linearised flow) as a share of the latter."""
    departure: np.ndarray
    """Root mean square of W_1/(that of the linearised flow) - 1."""
    apart: np.ndarray
    """(time,): how far W_1 may be off by quadrature and by the steps of the tokens."""
    small: np.ndarray
    """Whether noise is small by the linearised flow: the square of its share is below a standard error of the mean."""
    constant: np.ndarray
    """(time,): sqrt(n) W_1, mean over the seeds with small noise (NaN without any); `error` its standard error."""
    error: np.ndarray

    @classmethod
    def of(cls, pairs: list[tuple[int, int]], data: dict[str, xr.Dataset], model: str) -> "Summary":
        """Read the parts of one model; `pairs` are the sizes, and how many seeds each has."""
        part = data[f"linear-{model}"]
        sizes, seeds = (np.array(column) for column in zip(*pairs, strict=True))
        measured = [data[f"tokens-{model}-{n}"]["measured"].values for n in sizes]
        linear = [data[f"tokens-{model}-{n}"]["linear"].values for n in sizes]
        mean = np.array([rows.mean(axis=0) for rows in measured])
        squares = sum(np.sum((rows / m - 1) ** 2, axis=0) for rows, m in zip(measured, mean, strict=True))
        nonlinear = np.array([w.mean(0) / v.mean(0) - 1 for w, v in zip(measured, linear, strict=True)])
        second = np.array([np.mean((w / v - 1) ** 2, axis=0) for w, v in zip(measured, linear, strict=True)])
        spread = np.sqrt(squares / (np.sum(seeds) - len(seeds)))
        scaled = np.sqrt(sizes)[:, None] * mean
        share = part["noise"].values[::2] / np.sqrt(sizes)[:, None]
        small = share**2 <= (part["deviation"] / part["constant"]).values[::2] / np.sqrt(seeds)[:, None]
        weights = seeds[:, None] * small
        with np.errstate(invalid="ignore", divide="ignore"):
            count = np.sum(weights, axis=0)
            constant = np.sum(weights * scaled, axis=0) / count
            error = spread * constant / np.sqrt(count)
        apart = part["quadrature"].values + float(part["apart"])
        times = part["time"].values
        return cls(
            sizes, seeds, times, mean, spread, nonlinear, np.sqrt(second), apart, small, constant, error
        )  # fmt: skip


def noisy_claims(model: str, found: Summary, part: xr.Dataset) -> list[Claim]:
    """Ratio, rate, constant and amplification of iid noise, and the linearised flow from the same tokens."""
    made = [_ratio(model, found), _rate(model, found)]
    constant, error = part["constant"].values[::2], part["error"].values[::2]
    room = 3 * np.hypot(found.error, error) + np.sqrt(np.max(found.sizes)) * found.apart
    worst = int(np.argmax(np.abs(found.constant - constant) / room))
    statement = (
        f"{model}: sqrt(n) W_1 is that of Gaussian noise in the linearised flow (worst time: {found.times[worst]:g})"
    )
    source = "3 standard errors of tokens and of Gaussian fields, quadrature, steps"
    made.append(Claim.equal(statement, constant[worst], found.constant[worst], room[worst], source))

    gained = (found.constant[-1] - found.constant[0]) / np.hypot(found.error[-1], found.error[0])
    statement = (
        f"{model}: the constant at t = {found.times[-1]:g} is not the initial one (by the linearised flow "
        f"{constant[-1] / constant[0]:.2f} times as large): standard errors between them"
    )
    made.append(Claim.at_least(statement, 3.0, gained, 0.0, "3 standard errors"))

    # seed by seed: the share that is missed falls at least like n^(-1/2), so its bound at the most tokens is known
    known = int(np.flatnonzero(found.seeds[:-1] >= 8)[-1])
    few = 1 + 3 / np.sqrt(2 * found.seeds[-1])  # a root mean square of so many is off by a share 1/sqrt(2 seeds)
    room = few * found.departure[known] * np.sqrt(found.sizes[known] / found.sizes[-1]) + found.apart / found.mean[-1]
    worst = 1 + int(np.argmax(found.departure[-1, 1:] / room[1:]))
    statement = (
        f"{model}: {found.sizes[-1]} tokens, W_1 over that of the linearised flow from the same tokens: root mean "
        f"square of what is missed (worst time: {found.times[worst]:g})"
    )
    source = f"that at n = {found.sizes[known]}, falling like n^(-1/2); 3 standard errors; quadrature, steps"
    made.append(Claim.at_most(statement, 0.0, found.departure[-1, worst], room[worst], source))
    return made


def _ratio(model: str, found: Summary) -> Claim:
    """Mean W_1 at n over that at 4n, wherever noise is small at both."""
    ratios = found.mean[:-1] / found.mean[1:]
    expected = np.sqrt(found.sizes[1:] / found.sizes[:-1])[:, None]
    sampling = found.spread * np.sqrt(1 / found.seeds[:-1] + 1 / found.seeds[1:])[:, None]
    room = expected * (3 * sampling + found.apart * (1 / found.mean[:-1] + 1 / found.mean[1:]))
    both = found.small[:-1] & found.small[1:]
    used = np.where(both, np.abs(ratios - expected) / room, -1.0)
    k, at = np.unravel_index(np.argmax(used), ratios.shape)
    where = f"n = {found.sizes[k]}, t = {found.times[at]:g}"
    statement = (
        f"{model}: ratio of the mean W_1 at n and 4n (worst of {np.sum(both)}: {where}; {np.sum(~both)} more have "
        f"noise that is not small: {_left_out(found)})"
    )
    source = "3 standard errors over seeds, quadrature, steps"
    return Claim.equal(statement, expected[k, 0], ratios[k, at] if both[k, at] else np.nan, room[k, at], source)


def _rate(model: str, found: Summary) -> Claim:
    """The power of n, by least squares of log mean W_1 weighted by seeds, where noise is small at two sizes or more."""
    fits = []
    for at, t in enumerate(found.times):
        some = found.small[:, at]
        x, y, weights = np.log(found.sizes[some]), np.log(found.mean[some, at]), found.seeds[some]
        if np.sum(some) < 2:
            continue
        x = x - np.average(x, weights=weights)
        power = np.sum(weights * x * y) / np.sum(weights * x**2)
        error = found.spread[at] / np.sqrt(np.sum(weights * x**2))
        off = np.sum(weights * np.abs(x) * found.apart[at] / found.mean[some, at]) / np.sum(weights * x**2)
        fits.append((abs(power + 0.5) / (3 * error + off), t, power, error, off))
    _, t, power, error, off = max(fits, default=(0.0, np.nan, np.nan, np.nan, np.nan))
    interval = f"95 % confidence {power - 1.96 * error:.3f} to {power + 1.96 * error:.3f}"
    statement = f"{model}: W_1 falls like n to this power (worst of {len(fits)} times: {t:g}; {interval})"
    return Claim.equal(statement, -0.5, power, 3 * error + off, "3 standard errors over seeds, quadrature, steps")


def _left_out(found: Summary) -> str:
    """Sizes and times at which noise is not small, and the share by which W_1 misses the linearised flow there."""
    places = [
        f"n = {found.sizes[k]}, t = {found.times[at]:g}, {100 * found.nonlinear[k, at]:+.0f} %"
        for k, at in np.argwhere(~found.small)
    ]
    return "; ".join(places) or "none"
