"""Sweeps on Dask: a cluster of processes on this machine, one of SLURM jobs, or a scheduler that is there.

The coordinator hands out names of units and collects small records; workers read the plan and write shards themselves.
Whatever dies, nothing is lost: a unit without a shard is handed out again.
"""

import abc
import contextlib
import dataclasses
import logging
import signal
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attnflow.errors import AttnflowError, InvalidInput, MissingExtra, RunError
from attnflow.folders import Folder
from attnflow.parsing import parse_toml
from attnflow.reading import read_text
from attnflow.runs.claims import PATIENCE, Watch, content
from attnflow.sweeps import preload
from attnflow.sweeps.execution import Tally, cores
from attnflow.sweeps.rows import Row, failed
from attnflow.sweeps.source import AbstractSource, FunctionSource, SpecSource, WorkSource
from attnflow.sweeps.unit import is_done, write_shard
from attnflow.wording import shown

DEATHS = 5
"""Times that the workers of a unit may die before its tasks count as failed."""
WAITING = 0.25
"""What a death counts for a unit that only waited for the worker: it has left no claim."""
AHEAD = 2
"""Units for each thread of the cluster that are handed out at a time."""
CONNECT = 10.0
"""Seconds to wait for a scheduler at the start."""
MEMORY = 2**30
"""Bytes that a local worker gets at least: JAX, compiled programs and a group of flows."""
LOOK = 0.5
"""Seconds between two looks at everything else than finished units."""
SLURM = ("queue", "account", "cores", "processes", "memory", "walltime", "interface", "host", "directives", "prologue")
"""Keys of the configuration of `slurm`."""

NOISY = tuple(f"distributed.{name}" for name in ("client", "comm", "core", "nanny", "scheduler", "utils"))
"""Loggers of Dask that write about connections."""


class _Lost(Exception):
    """The connection to the scheduler is lost."""


class AbstractCluster(abc.ABC):
    """Where workers are."""

    @abc.abstractmethod
    def connected(self) -> contextlib.AbstractContextManager[Any]:
        """A Dask client, while the block runs."""


@dataclasses.dataclass(frozen=True)
class Local(AbstractCluster):
    """Processes on this machine, one a core; scheduler and workers listen on loopback only, without a dashboard."""

    workers: int

    @contextlib.contextmanager
    def connected(self) -> Iterator[Any]:
        from dask import config
        from distributed import Client, LocalCluster

        from attnflow.sweeps.nanny import PersistentNanny

        settings = {
            "distributed.scheduler.allowed-failures": 0,
            "distributed.worker.daemon": False,
            "distributed.deploy.lost-worker-timeout": "1 day",  # the nanny starts another; a busy machine takes a while
        }
        with contextlib.ExitStack() as stack:
            stack.enter_context(config.set(settings))
            try:
                cluster = LocalCluster(
                    n_workers=self.workers,
                    threads_per_worker=1,
                    processes=True,
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",
                    scheduler_kwargs={"dashboard": False},
                    silence_logs=logging.CRITICAL,
                    env=preload.environment() | {preload.CHILD: "1"},
                    preload=["attnflow.sweeps.preload"],
                    worker_class=PersistentNanny,
                )
            except RuntimeError:
                raise died_at_start() from None
            stack.enter_context(cluster)
            yield stack.enter_context(Client(cluster, set_as_default=False))


def died_at_start() -> RunError:
    """The refusal of a machine on which workers cannot start."""
    return RunError(
        f"a worker died {DEATHS} times while it started, as happens where memory is short or a script starts workers "
        "outside of `if __name__ == '__main__'`; use fewer workers, or 'here'."
    )


@dataclasses.dataclass(frozen=True)
class Address(AbstractCluster):
    """A scheduler that somebody has started."""

    address: str

    @contextlib.contextmanager
    def connected(self) -> Iterator[Any]:
        from distributed import Client

        with Client(self.address, timeout=CONNECT, set_as_default=False) as client:
            yield client


@dataclasses.dataclass(frozen=True)
class Slurm(AbstractCluster):
    """Jobs of SLURM, each with one worker or several, by dask-jobqueue."""

    jobs: int
    settings: dict[str, Any]

    @contextlib.contextmanager
    def connected(self) -> Iterator[Any]:
        from dask import config
        from distributed import Client

        given, one = self.settings, preload.environment()
        exports = [f"export {name}='{value}'" for name, value in one.items()]
        options: dict[str, Any] = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
        options |= {"host": given["host"]} if "host" in given else {}
        with (
            config.set({"distributed.scheduler.allowed-failures": 0}),
            _slurm_cluster()(
                queue=given.get("queue"),
                account=given.get("account"),
                cores=given.get("cores", 1),
                processes=given.get("processes", given.get("cores", 1)),
                memory=given.get("memory", "2GB"),
                walltime=given.get("walltime", "01:00:00"),
                interface=given.get("interface"),
                scheduler_options=options,
                job_extra_directives=list(given.get("directives", [])),
                job_script_prologue=[*exports, *given.get("prologue", [])],
                worker_extra_args=["--preload", "attnflow.sweeps.preload"],
                silence_logs=logging.CRITICAL,
            ) as cluster,
            Client(cluster, set_as_default=False) as client,
        ):
            cluster.scale(jobs=self.jobs)
            yield client


def _slurm_cluster() -> Any:
    """The class of dask-jobqueue, which takes Ctrl-C for itself when it is imported: what was there is put back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    from dask_jobqueue import SLURMCluster

    for number, handler in before.items():
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)
    return SLURMCluster


def cluster_of(on: str, workers: int | None = None, configuration: str | Path | None = None) -> AbstractCluster:
    """The cluster that `on` names; refused where it cannot be used, before anything is planned."""
    if on not in ("local", "slurm") and not str(on).startswith(("tcp://", "tls://")):
        raise InvalidInput(
            f"`on` is {shown(on)}; use 'here', 'local', 'slurm' or the address of a scheduler, 'tcp://HOST:PORT'."
        )
    if configuration is not None and on != "slurm":
        raise InvalidInput(f"`configuration` is for 'slurm', and `on` is {on!r}; leave it out.")
    _need("distributed")
    if on == "local":
        return Local(workers or processes())
    if on == "slurm":
        _need("dask_jobqueue")
        return Slurm(workers or 1, _settings(configuration))
    found = Address(str(on))
    try:
        with found.connected():
            return found
    except (OSError, ValueError) as error:
        words = " ".join(str(error).split())[:120]
        raise RunError(f"no scheduler answers at {on!r} ({words}); start one with `dask scheduler`.") from None


def processes() -> int:
    """Workers of this machine: one a core, and at most one for each `MEMORY` bytes that are free."""
    import psutil

    return max(1, min(cores(), psutil.virtual_memory().available // MEMORY))


def _need(package: str) -> None:
    import importlib.util

    if importlib.util.find_spec(package) is None:
        raise MissingExtra(
            f"`on` needs the package {package.replace('_', '-')}; install attnflow[sweeps], or give `on` as 'here': "
            "one process does the same sweep."
        )


def _settings(configuration: str | Path | None) -> dict[str, Any]:
    """The configuration of SLURM jobs."""
    if configuration is None:
        raise InvalidInput("'slurm' needs `configuration`, a TOML file with queue, memory, walltime and interface.")
    try:
        table = parse_toml(read_text(configuration))
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot read {str(configuration)!r} ({error}); give a TOML file.") from None
    found = table.get("slurm", table)
    if unknown := [key for key in found if key not in SLURM]:
        raise InvalidInput(f"the configuration has the key {unknown[0]!r}; known are {', '.join(SLURM)}.")
    if "host" not in found and "interface" not in found:
        raise InvalidInput(
            f"{str(configuration)!r} names no `interface` and no `host`; name the network by which jobs reach the "
            "scheduler, say interface = 'ib0'."
        )
    return dict(found)


def on_cluster(tally: Tally, source: AbstractSource, cluster: AbstractCluster, *, patience: float = PATIENCE) -> None:
    """Do all that is missing on a cluster. A scheduler that is gone is waited for, and gets what is missing then."""
    deaths: dict[str, float] = {}
    work = _Work(tally, deaths, Watch(patience), *_sent(source))
    lost = False
    while tally.missing:
        try:
            with quiet(), cluster.connected() as client:
                lost = False
                work.drain(client)
        except (_Lost, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None and not isinstance(error, ConnectionError):
                raise
            if not lost:
                tally.tell("the scheduler is gone; the sweep waits for it")
                lost = True
            time.sleep(1.0)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Dask says in many lines that a connection is lost; the sweep says it in one."""
    logs = [logging.getLogger(name) for name in NOISY]
    levels = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for log, level in zip(logs, levels, strict=True):
            log.setLevel(level)


def _sent(source: AbstractSource) -> tuple[list[str], Any]:
    """What goes to workers: paths of plugins, or the function or work that no text describes."""
    if isinstance(source, SpecSource):
        return [one.source.place for one in source.plugins.loaded], None
    made: Any = source.function if isinstance(source, FunctionSource) else None
    made = source.work if isinstance(source, WorkSource) else made
    import cloudpickle

    try:
        cloudpickle.dumps(made)
    except Exception as error:  # pickling fails in many ways
        words = " ".join(str(error).split())[:120]
        raise InvalidInput(
            f"{source.facts()['name']!r} cannot be sent to another process ({words}); define it at the top of a "
            "module, and let it use nothing that cannot be pickled."
        ) from None
    return [], made


@dataclasses.dataclass
class _Work:
    """Units on their way through one connection after another."""

    tally: Tally
    deaths: dict[str, float]
    watch: Watch
    plugins: list[str]
    made: Any
    woken: threading.Event = dataclasses.field(default_factory=threading.Event)
    """Set whenever a unit has come back."""

    def drain(self, client: Any) -> None:
        """Hand out units and take their records, until none is missing."""
        self.flying: dict[Any, str] = {}
        self.queue = list(reversed(self.tally.missing))
        self.busy: set[str] = set()
        while self.tally.missing:
            if client.status != "running":
                raise _Lost
            nannies = list(getattr(client.cluster, "workers", {}).values())
            if nannies and all(getattr(nanny, "deaths", 0) >= DEATHS for nanny in nannies):
                raise died_at_start()
            self._look()
            self._submit(client)
            if not self.flying:
                time.sleep(LOOK)
                continue
            if not any(future.done() for future in self.flying):
                self.woken.wait(LOOK)
            self.woken.clear()
            for future in [one for one in self.flying if one.done()]:
                self._take(future, self.flying.pop(future))

    def _look(self) -> None:
        """Units that others were doing: finished, free again, or neither."""
        for unit in list(self.busy):
            if is_done(self.tally.folder, unit):
                self.busy.remove(unit)
                self.tally.take({"unit": unit, "errors": 0})
            elif self.watch.is_free(Folder(self.tally.folder, "claims"), unit):
                self.busy.remove(unit)
                self.queue.append(unit)

    def _submit(self, client: Any) -> None:
        threads = sum(one["nthreads"] for one in client.scheduler_info(n_workers=-1)["workers"].values())
        folder = str(self.tally.folder.resolve())
        while self.queue and len(self.flying) < max(1, AHEAD * threads):
            unit = self.queue.pop()
            key = f"attnflow-{unit}-{uuid.uuid4().hex[:8]}"
            future = client.submit(
                preload.perform, folder, unit, self.plugins, self.made, key=key, pure=False, retries=0
            )
            future.add_done_callback(lambda _: self.woken.set())
            self.flying[future] = unit

    def _take(self, future: Any, unit: str) -> None:
        from distributed import KilledWorker

        if future.status == "finished":
            record = future.result()
            if record["status"] == "busy":
                self.busy.add(unit)
            else:
                self.tally.take(record)
            return
        error = future.exception() if future.status == "error" else None
        if isinstance(error, AttnflowError):  # of the folder or the plugins; errors of tasks are in their rows
            raise error
        if isinstance(error, ImportError):
            raise RunError(f"a worker cannot carry out the sweep ({error}); install attnflow where it runs.")
        if error is None:  # cancelled, or lost with its scheduler
            self.queue.append(unit)
            return
        begun = not isinstance(error, KilledWorker) or content(Folder(self.tally.folder, "claims"), unit) is not None
        self.deaths[unit] = self.deaths.get(unit, 0.0) + (1.0 if begun else WAITING)
        if self.deaths[unit] < DEATHS:
            self.queue.insert(0, unit)
            return
        reason = f"the process that did it died {DEATHS} times" if isinstance(error, KilledWorker) else None
        row = failed(error) if reason is None else Row(error=f"KilledWorker: {reason}")
        names = self.tally.plan.units[unit][1].names
        write_shard(self.tally.folder, self.tally.plan, unit, [row] * len(names))
        self.tally.take({"unit": unit, "errors": len(names)})
