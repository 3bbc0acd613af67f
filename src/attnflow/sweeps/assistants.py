"""Workers of a cluster that help a process with work which it would finish alone as well."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from attnflow.sweeps.cluster import DEATHS, LOOK, AbstractCluster, quiet


@contextlib.contextmanager
def assistants(cluster: AbstractCluster, call: Callable[..., Any], *arguments: Any) -> Iterator[None]:
    """Every worker of the cluster does `call(*arguments)` once, while the block runs.

    A worker that replaces one that died does so too, at most `DEATHS` times in all. What a call returns or raises is
    not looked at: the process that runs the block meets the same error itself.
    """
    with quiet(), cluster.connected() as client:
        over = threading.Event()
        thread = threading.Thread(target=_keep, args=(client, over, call, arguments), name="assistants", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def _keep(client: Any, over: threading.Event, call: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    started: dict[str, Any] = {}
    most = 0
    while not over.wait(LOOK):
        with contextlib.suppress(OSError, RuntimeError, ValueError):  # the scheduler is gone: the block goes on alone
            there = list(client.scheduler_info(n_workers=-1)["workers"])
            most = max(most, len(there))
            for address in there:
                if address not in started and len(started) < most + DEATHS:
                    started[address] = client.submit(
                        call, *arguments, workers=[address], key=f"assist-{address}", pure=False, retries=0
                    )
