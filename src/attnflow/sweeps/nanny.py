"""The process that watches a local worker and replaces it; imported where Dask is installed."""

from typing import Any

from distributed import Nanny
from distributed.core import Status

from attnflow.sweeps.cluster import DEATHS


class PersistentNanny(Nanny):
    """Start a worker again that dies while it starts, at most `DEATHS` times in a row.

    Dask replaces workers that die later; one that dies at its start ends the whole cluster there.
    """

    deaths = 0

    async def instantiate(self) -> Any:
        while self.deaths < DEATHS:
            status = await super().instantiate()
            if status == Status.running:
                self.deaths = 0
                return status
            self.deaths += 1
        return Status.failed
