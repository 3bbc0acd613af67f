"""What the seeds of `propagation_of_chaos` say together."""

import dataclasses

import numpy as np
import xarray as xr


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
    """Whether noise is small: the nonlinear share is below one standard error of the mean at this size."""
    constant: np.ndarray
    """(time,): sqrt(n) W_1, mean over the seeds with small noise (NaN without any); `error` its standard error, `bias`
    the nonlinear share in it."""
    error: np.ndarray
    bias: np.ndarray

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
        small = np.abs(nonlinear) <= spread / np.sqrt(seeds)[:, None]
        weights = seeds[:, None] * small
        with np.errstate(invalid="ignore", divide="ignore"):
            count = np.sum(weights, axis=0)
            constant = np.sum(weights * scaled, axis=0) / count
            bias = np.sum(weights * scaled * np.abs(nonlinear), axis=0) / count
            error = spread * constant / np.sqrt(count)
        apart = part["quadrature"].values + float(part["apart"])
        times = part["time"].values
        return cls(
            sizes, seeds, times, mean, spread, nonlinear, np.sqrt(second), apart, small, constant, error, bias
        )  # fmt: skip
