"""A sweep as it is read: its dataset, its errors, means with error bars, figures."""

import dataclasses
import html
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attnflow.checks import instance, shown
from attnflow.errors import InvalidInput
from attnflow.runs.nearest import did_you_mean
from attnflow.sweeps.collection import dataset
from attnflow.sweeps.index import Index
from attnflow.sweeps.plan import Plan, read_plan
from attnflow.sweeps.ranges import Point, at

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


@dataclasses.dataclass(frozen=True)
class Status:
    """How far a sweep is, in tasks."""

    done: int
    failed: int
    of: int

    @property
    def missing(self) -> int:
        """Tasks that are still to be done."""
        return self.of - self.done - self.failed


class Sweep:
    """A sweep folder, whether the sweep is finished or not; made by `af.sweep` and `af.open_sweep`."""

    def __init__(self, folder: str | Path):
        self.folder = Path(instance("folder", folder, str | Path, "the folder of a sweep"))
        self.plan: Plan = read_plan(self.folder)

    @property
    def status(self) -> Status:
        """How many tasks are done, failed and missing."""
        finished, failed = Index(self.folder, self.plan).counts()
        return Status(finished - failed, failed, self.plan.count)

    @property
    def dataset(self) -> "xr.Dataset":
        """All results so far, numbers loaded as they are used: the axes of the sweep, then the dimensions of a task.

        NaN stands where a task is missing or has failed; `done` and `error` say which.
        """
        return dataset(self.folder, self.plan)

    @property
    def table(self) -> "pd.DataFrame":
        """One row for each point, with the variables that are single numbers or texts."""
        data = self.dataset
        names = [
            str(name) for name, array in data.data_vars.items() if set(array.dims) <= {a.dim for a in self.plan.axes}
        ]
        return data[names].to_dataframe().reset_index()

    @property
    def errors(self) -> list[tuple[Point, str]]:
        """The points that failed, with the reason."""
        rows = Index(self.folder, self.plan).errors()
        return [(self.plan.points(unit)[row], error) for unit, row, error in rows]

    def mean(self, over: str) -> "xr.Dataset":
        """Means along the axis `over` (mostly seeds), and standard errors as NAME_error.

        Tasks that are missing or failed are left out. The standard error of one value is NaN.
        """
        data = self._numbers(over)
        count = data.notnull().sum(over)
        error = data.std(over, ddof=1) / np.sqrt(count.where(count > 1))
        return data.mean(over).merge(error.rename({name: f"{name}_error" for name in error.data_vars}))

    def _numbers(self, over: str) -> "xr.Dataset":
        data, dims = self.dataset, [axis.dim for axis in self.plan.axes]
        if over not in dims:
            raise InvalidInput(f"the sweep has no axis {over!r}{did_you_mean(over, dims)}")
        names = [n for n, a in data.data_vars.items() if a.dtype.kind == "f" and over in a.dims]
        if not names:
            raise InvalidInput(f"no task of the sweep has given numbers along {over!r} yet; run the sweep first.")
        return data[names]

    def plot(
        self,
        variable: str,
        *,
        over: str | None = None,
        x: str | None = None,
        at: dict[str, Any] | None = None,
        heat: bool = False,
        theory: Callable[..., Any] | None = None,
        label: str | None = None,
    ) -> Any:
        """A figure of one variable against the axes: lines with bands of standard errors, or a heat map.

        Arguments:
            over: the axis that is averaged over; the bands are standard errors of that mean.
            x: the axis along which lines go; the first one that is left unless given.
            at: where to look along other dimensions, by label, as in `at={"time": 50.0}`; the last place unless given.
            heat: a heat map of two axes in place of lines.
            theory: a function of `x` and the other axis by position, drawn as dashed lines (as contours on a map).
            label: what the variable is called in the figure.
        """
        from attnflow.plots.swept import swept

        mean, error = self._chosen(variable, over, at or {})
        axes = [axis.dim for axis in self.plan.axes if axis.dim != over and axis.dim in mean.dims]
        x = axes[0] if x is None and axes else x
        if x not in mean.dims:
            raise InvalidInput(f"`x` is {x!r}{did_you_mean(str(x), map(str, mean.dims))}")
        for dim in [d for d in mean.dims if d not in axes and d != x]:
            mean, error = mean.isel({dim: -1}), None if error is None else error.isel({dim: -1})
        return swept(mean, error, str(x), heat=heat, theory=theory, label=label or variable)

    def _chosen(self, variable: str, over: str | None, where: dict[str, Any]) -> tuple[Any, Any]:
        data = self.dataset if over is None else self.mean(over)
        known = [str(n) for n, a in data.data_vars.items() if a.dtype.kind == "f"]
        if variable not in known:
            raise InvalidInput(f"the sweep has no variable {variable!r}{did_you_mean(variable, known)}")
        picked = data[[variable] if over is None else [variable, f"{variable}_error"]]
        for dim, value in where.items():
            if dim not in picked.dims:
                raise InvalidInput(f"`at` has the dimension {dim!r}{did_you_mean(dim, map(str, picked.dims))}")
            try:
                picked = picked.sel({dim: value}, method="nearest" if isinstance(value, int | float) else None)
            except (KeyError, TypeError, ValueError):
                raise InvalidInput(f"`at` has {dim} = {shown(value)}; give one of the labels of {dim}.") from None
        return picked[variable], None if over is None else picked[f"{variable}_error"]

    def __repr__(self) -> str:
        status = self.status
        axes = " × ".join(f"{axis.dim} ({len(axis)})" for axis in self.plan.axes)
        return f"Sweep({str(self.folder)!r}: {axes}; {status.done} of {status.of} tasks done, {status.failed} failed)"

    def _repr_html_(self) -> str:
        rows = [
            f"<tr><td>{html.escape(at(point))}</td><td>{html.escape(text)}</td></tr>"
            for point, text in self.errors[:10]
        ]
        failed = f"<table><tr><th>failed</th><th>why</th></tr>{''.join(rows)}</table>" if rows else ""
        return f"<p>{html.escape(repr(self))}</p>{failed}{self.dataset._repr_html_()}"


def open_sweep(folder: str | Path) -> Sweep:
    """The sweep in a folder, whether it is finished, running or interrupted."""
    return Sweep(folder)
