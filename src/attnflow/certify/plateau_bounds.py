"""Plateaus of a long flow with what is proved of them: until when their clusters stay apart at least."""

from typing import TYPE_CHECKING, Any

import numpy as np

from attnflow.certify.balls import flint
from attnflow.certify.cap_bounds import stay_apart
from attnflow.certify.certificates import Certificate
from attnflow.fields import Softmax
from attnflow.flows import LongFlow
from attnflow.flows.longtime.method import log_faster
from attnflow.precision import full_precision
from attnflow.tokens import Tokens

if TYPE_CHECKING:
    import xarray as xr

MOST = 64
"""Clusters of a plateau up to which a bound is sought."""


def plateaus(flow: LongFlow) -> "xr.Dataset":
    """The table `flow.tree.plateaus()` with a column log_proved: clusters stay apart until then, at least.

    The statement is that of `stay_apart` about point masses exactly where the clusters are at the first frame of the
    plateau; that the flow comes there is computed, not proved. log_proved is the logarithm of a time on the clock of
    the field, at most 690 after that frame; NaN where nothing is proved, or where there are more than 64 clusters. From
    a frame at t_0 a proved time T gives log_proved = log(t_0 + T).

    ```python
    tokens = attnflow.uniform(attnflow.Sphere(2), n=6, seed=1)
    flow = attnflow.solve_long(attnflow.Attention(20.0, normaliser="USA0"), tokens, float("inf"))
    attnflow.certify.plateaus(flow)["log_proved"]
    ```
    """
    flint()
    found, tree = flow.tree.plateaus(), flow.tree
    field: Any = flow.field
    beta, softmax = float(field.beta), isinstance(field.normaliser, Softmax)
    with full_precision():
        faster = float(log_faster(field))
    log_time, masses = flow.log_time.values, flow.dataset["masses"].values
    rows = []
    for merges, start in zip(found["merges"].values, found["log_start"].values, strict=True):
        label, frame = tree.labels(int(merges)), int(np.searchsorted(log_time, start))
        names = np.unique(label)
        rows.append(np.nan)
        if not (2 <= len(names) <= MOST and beta > 0):
            continue
        points = Tokens(flow.positions.values[frame][names], np.bincount(label, masses)[names], space=flow.space)
        proved = stay_apart(points, beta, range(len(names)), model="SA" if softmax else "USA0")
        if isinstance(proved, Certificate):
            # a logarithm in floats is off by less than 1e-12
            lasts = np.log(proved.claims["time"]) - faster - 1e-12
            rows[-1] = float(np.logaddexp(log_time[frame], lasts))
    return found.assign(log_proved=("plateau", np.array(rows, float)))
