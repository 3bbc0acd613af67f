"""The one seam through which tests make operations fail and turn settings that no user turns.

A point is a place of the package or of the standard library, named in `POINTS` by what it does; where code moves, its
row here follows and no test changes. The fixture `faults` undoes everything at the end of a test:

    def test_a_full_disk_is_said_in_one_sentence(faults):
        faults.fail("rename a file", OSError(errno.ENOSPC, "No space left on device"), call=3)

`replace` puts a value or function in the place of a point, `fail` raises at its k-th call, `calls` watches it; `module`
makes a package as if it were not installed. `temporary_faults` and `environment` do so for a block.
A death or an error of the disk between any two changes of files comes from `tests/runs/boundaries.py` and `failing.py`.
"""

import contextlib
import importlib
import sys

import pytest

POINTS = {
    # the file system
    "access of a file": ("os", "access"),
    "flush a file": ("os", "fsync"),
    "home folder": ("pathlib:Path", "home"),
    "link a file": ("os", "link"),
    "lock a descriptor": ("fcntl", "flock"),
    "lock a file": ("filelock:FileLock", "acquire"),
    "open a file": ("os", "open"),
    "rename a file": ("os", "replace"),
    "space on a disk": ("shutil", "disk_usage"),
    "write a file of a folder": ("attnflow.folders:Folder", "write"),
    # the process
    "backend of a computation": ("jax", "default_backend"),
    "change a setting of JAX": ("jax:config", "update"),
    "command line": ("sys", "argv"),
    "find a package": ("importlib.util", "find_spec"),
    "memory of the machine": ("attnflow.feasible", "machine_memory"),
    "open a page in the browser": ("webbrowser", "open"),
    "run a program": ("subprocess", "run"),
    "sleep": ("time", "sleep"),
    "standard output": ("sys", "stdout"),
    # certify
    "defect of a tube": ("attnflow.certify.tubes", "defect_size"),
    "growth of errors in a tube": ("attnflow.certify.tubes", "log_norm"),
    "order of a tube": ("attnflow.certify.circle_flows", "_order"),
    # cli
    "keep compiled programs": ("attnflow.cli.console", "use_compilation_cache"),
    "messages of commands": ("attnflow.cli.console", "say"),
    "tables of commands": ("attnflow.cli.tables", "out"),
    # control
    "amplification of an expansion": ("attnflow.control.sphere", "expansion"),
    "delivery of tokens by gates": ("attnflow.control.sphere", "_deliver"),
    "free point of a sphere": ("attnflow.control.sphere", "free_point"),
    "path of a piece": ("attnflow.control.planner", "_path"),
    "plan on the sphere": ("attnflow.control.sphere:SpherePlanner", "plan"),
    "replay of a schedule": ("attnflow.control.search", "solve"),
    # decoders
    "pairs of a batch of prompts": ("attnflow.decoders.retrieval", "PAIRS"),
    # experiments
    "entry points of experiments": ("attnflow.experiments.catalogue", "_entry_points"),
    "resamples of texts": ("attnflow.experiments.kit.trained", "RESAMPLES"),
    "texts measured together": ("attnflow.experiments.kit.trained", "GROUP"),
    # fields
    "inverse moments of a gate": ("attnflow.fields.exact.gates", "inverse_moments"),
    "prepare a field": ("attnflow.fields:AbstractField", "prepare"),
    "prepared attention": ("attnflow.fields:Attention", "prepare"),
    # flows
    "beginning of a flow": ("attnflow.flows.particles", "_begin"),
    "clock of progress": ("attnflow.flows.outcome", "clock"),
    "first slice": ("attnflow.flows.particles", "FIRST_SLICE"),
    "force between clusters": ("attnflow.flows.longtime.integrator", "force"),
    "frames of a chunk": ("attnflow.flows.solve", "MOST"),
    "modules of the heartbeat": ("attnflow.flows.heartbeat", "importlib"),
    "seconds before the heartbeat": ("attnflow.flows.heartbeat", "AFTER"),
    "seconds between heartbeats": ("attnflow.flows.heartbeat", "EVERY"),
    "seconds of a slice": ("attnflow.flows.particles", "SECONDS"),
    "set up flowing tokens": ("attnflow.flows.particles:FlowingTokens", "__init__"),
    "slots of clusters": ("attnflow.flows.longtime.stepper", "SLOTS"),
    "system of the heartbeat": ("attnflow.flows.heartbeat", "sys"),
    # lab
    "bytes of a saved run": ("attnflow.lab.saving", "FOLDER"),
    "command of an engine": ("attnflow.lab.clients", "COMMAND"),
    "connections that wait": ("attnflow.lab.server", "CONNECTIONS"),
    "seconds of a request": ("attnflow.lab.server", "PATIENCE"),
    "seconds of work per frame": ("attnflow.lab.limits", "PER_CREDIT"),
    "seconds until a silent client leaves": ("attnflow.lab.limits", "IDLE"),
    "seconds until work is ended": ("attnflow.lab.limits", "CANCEL"),
    "tokens of a lab": ("attnflow.lab.limits", "TOKENS"),
    # meanfield
    "advection of cells": ("attnflow.meanfield.cells.volumes", "advect"),
    # observe
    "centres of clusters": ("attnflow.observe.clusters", "_described"),
    "largest block of slow motion": ("attnflow.observe.slow_motion", "LARGEST_BLOCK"),
    "pairs of doubtful cells": ("attnflow.observe.linked", "BATCH"),
    "pairs of points for a tree": ("attnflow.observe.linked", "LARGE"),
    "serve the lab": ("attnflow.lab:Server", "serve_forever"),
    # plots
    "draw a run": ("attnflow.plots.report", "draw_run"),
    "draw a run with its report": ("attnflow.plots", "draw_run"),
    "labelled leaves of a tree": ("attnflow.plots.tree", "MOST_WORDS"),
    "leaves of a tree": ("attnflow.plots.tree", "FEW"),
    "tokens of an overlap map": ("attnflow.plots.overlaps", "SAMPLE"),
    # probe
    "bytes of a block of states": ("attnflow.probe.states", "BLOCK"),
    "fetch a network": ("attnflow.probe.networks.fetching", "fetch"),
    "networks to fetch": ("attnflow.probe.networks.catalogue", "NETWORKS"),
    # random layers
    "carried labels": ("attnflow.random_layers.conditional", "_carried"),
    "memory of paths under boosts": ("attnflow.random_layers.boosts", "require_memory"),
    "seconds of a slice of layers": ("attnflow.random_layers.layer_stepper", "SLICE"),
    # runs
    "commit to a folder": ("attnflow.runs:ZarrSink", "commit"),
    "facts about the machine": ("attnflow.runs.folder", "environment"),
    "lock a run": ("attnflow.runs.locks", "take"),
    "make a part of a specification": ("attnflow.runs.spec", "build_part"),
    "numbers of a file of tokens": ("attnflow.runs.token_files", "MOST_NUMBERS"),
    "plugins that were executed": ("attnflow.runs.plugins", "_EXECUTED"),
    "read tokens of a specification": ("attnflow.runs.token_files", "read_tokens"),
    "verify a run": ("attnflow.runs:Run", "verify"),
    # sums
    "bound of round-off": ("attnflow.sums:FastSphere", "rounding"),
    "products of a tile of neighbours": ("attnflow.sums.cutoff", "PRODUCT"),
    "sums of the fused kernel": ("attnflow.sums.fused", "_sums"),
    "sums over neighbours": ("attnflow.sums.cutoff", "_sums"),
    "tile of neighbours": ("attnflow.sums.cutoff", "TILE"),
    # sweeps
    "bytes of a block of results": ("attnflow.sweeps.assembly", "BLOCK"),
    "bytes of results in memory": ("attnflow.sweeps.assembly", "IN_MEMORY"),
    "deaths of a worker": ("attnflow.sweeps.cluster", "DEATHS"),
    "seconds between collections": ("attnflow.sweeps.execution", "COLLECT_EVERY"),
    "seconds until a scheduler answers": ("attnflow.sweeps.cluster", "CONNECT"),
    "share of time between collections": ("attnflow.sweeps.execution", "COLLECT_SHARE"),
    "versions that decide bits": ("attnflow.sweeps.plan", "numerics"),
    # text
    "words of a dense factorisation": ("attnflow.text.cooccurrence", "DENSE"),
    # tokens
    "read tokens": ("attnflow.tokens.files", "read_tokens"),
}
"""Name of every point -> (module, or module:class; attribute)."""


class Faults:
    """Changes of points, undone at the end of a test."""

    def __init__(self, monkeypatch):
        self.monkeypatch = monkeypatch

    def replace(self, point, value):
        """Put a value or function in the place of a point; return what stood there."""
        place, attribute = POINTS[point]
        module, _, owner = place.partition(":")
        target = importlib.import_module(module)
        target = getattr(target, owner) if owner else target
        original = getattr(target, attribute)
        self.monkeypatch.setattr(target, attribute, value)
        return original

    def fail(self, point, error, call=1):
        """Raise an error at the k-th call of a point and at all later ones; earlier calls go through."""
        count = 0

        def failing(*arguments, **keywords):
            nonlocal count
            count += 1
            if count >= call:
                raise error
            return original(*arguments, **keywords)

        original = self.replace(point, failing)

    def calls(self, point):
        """Watch a point, which goes on to work; return the growing list of (arguments, keywords) of its calls."""
        watched = []

        def watching(*arguments, **keywords):
            watched.append((arguments, keywords))
            return original(*arguments, **keywords)

        original = self.replace(point, watching)
        return watched

    def module(self, name, replacement=None):
        """Put an object in the place of a module that is imported later; None: as if it were not installed."""
        self.monkeypatch.setitem(sys.modules, name, replacement)


@pytest.fixture
def faults(monkeypatch):
    """The seam for faults and settings; see `tests/faults.py`."""
    return Faults(monkeypatch)


@contextlib.contextmanager
def temporary_faults():
    """Yield a `Faults` for a block, at whose end every point is as before."""
    with pytest.MonkeyPatch.context() as patch:
        yield Faults(patch)


@contextlib.contextmanager
def environment(**variables):
    """Set environment variables for a block; None stands for a variable that is not set."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.delenv(name, raising=False) if value is None else patch.setenv(name, value)
        yield
