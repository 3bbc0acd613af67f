"""Carry out an experiment in a run folder, from the start or from where it was left."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attnflow.errors import InvalidInput, RunCorrupted, RunError
from attnflow.experiments.catalogue import Experiment, find, sources_hash
from attnflow.experiments.claim import Claim
from attnflow.experiments.outside import check_contract, check_writable, from_file, from_plugins, is_file
from attnflow.experiments.randomness import salted
from attnflow.experiments.report import draw_motion, draw_report
from attnflow.experiments.settings import Settings, parse_settings
from attnflow.experiments.study import OnProgress, Study
from attnflow.experiments.verdicts import judged
from attnflow.interrupts import interruptible
from attnflow.parsing import parse_json
from attnflow.reading import LARGEST_TEXT
from attnflow.runs.files import writing
from attnflow.runs.folder import Run
from attnflow.runs.lifecycle import attempt
from attnflow.runs.plugins import Given
from attnflow.runs.recorded import checked
from attnflow.wording import reason


def reproduce(
    experiment: str | Path | Experiment,
    path: str | Path,
    *,
    quick: bool = False,
    salt: int = 0,
    parameters: Any = None,
    on_progress: OnProgress | None = None,
    cancel: Callable[[], bool] | None = None,
) -> tuple[Run, list[Claim]]:
    """Make the folder `path` and carry out an experiment in it: an installed one by its name, or one of a file.

    The folder holds spec.toml, manifest.json, parts/, claims.json, figures/ and report.html, and is sealed when all of
    them are there. An experiment with a function `motion(parameters)`, which gives an `af.animate(...)`, leaves a GIF
    beside its figure (full version). A claim that fails raises nothing: look at `holds`.

    Arguments:
        experiment: a name, see `names()`; or a Python file of one's own, Path("mine.py"), which is executed. The
            manifest records its hash, and the folder keeps its text.
        quick: the small version of the experiment, made for a first look and for tests.
        salt: another family of random streams; the `Parameters` of the experiment derive from `Salted`.
        parameters: an instance of the experiment's `Parameters`, instead of the full or the quick version.
        on_progress: called with a `Progress`: `note` says what is done, `time` is the share of the whole.
        cancel: called several times a second; when it returns True the experiment ends as after Ctrl-C.
    """
    found = look_up(experiment)
    name, module = found.name, found.module()
    if not found.plugins.loaded:
        check_contract(found, str(module.__file__))
    if parameters is not None and (quick or not isinstance(parameters, module.Parameters)):
        raise InvalidInput(
            f"`parameters` is {parameters!r}; give a Parameters of the experiment {name!r}, and not quick=True with it."
        )
    chosen = module.QUICK if quick else module.Parameters() if parameters is None else parameters
    if salt:
        chosen = salted(name, chosen, salt)
    if found.plugins.loaded:
        check_writable(found, chosen)
    settings = Settings(name, quick, chosen)
    facts = found.plugins.facts() or {"package": found.package, "sources": sources_hash(module)}
    with Run.creating(path, settings, experiment=name, quick=quick, salt=salt, **facts) as run:
        return run, _complete(run, found, settings, on_progress, cancel)


def look_up(experiment: str | Path | Experiment) -> Experiment:
    """An installed experiment by its name, or the one in a file."""
    if isinstance(experiment, Experiment):
        return experiment
    return from_file(experiment) if is_file(experiment) else find(str(experiment))


def resume(
    path: str | Path,
    *,
    plugins: Given = (),
    on_progress: OnProgress | None = None,
    cancel: Callable[[], bool] | None = None,
) -> tuple[Run, list[Claim]]:
    """Continue an experiment from its last complete part; a finished one is only opened.

    `plugins` holds the file of an experiment that is not of the package. One that is missing or has changed is
    refused, before it is executed and before anything is written.
    """
    run = Run.open(path)
    manifest = run.manifest()
    if "experiment" not in manifest:
        raise RunError(f"{str(path)!r} holds a flow, not an experiment; continue it with attnflow.runs.resume.")
    with run.lock():
        if run.manifest()["status"] == "finished":
            return run, read_claims(run)
        loaded = checked(run.path, manifest, plugins)
        experiment = from_plugins(loaded, manifest["experiment"]) if loaded.loaded else find(manifest["experiment"])
        settings = run.read_spec(lambda text: parse_settings(text, experiment))
        return run, _complete(run, experiment, settings, on_progress, cancel)


def assist(path: str | Path, *, plugins: Given = (), cancel: Callable[[], bool] | None = None) -> None:
    """Make parts of an experiment that another process, perhaps on another machine, is carrying out in `path`.

    Returns when all parts are there. A process that dies loses nothing: another one makes its part. The results are
    those of one process up to rounding (a worker of a cluster computes with one thread).
    """
    run = Run.open(path)
    manifest = run.manifest()
    if "experiment" not in manifest:
        raise RunError(f"{str(path)!r} holds a flow, not an experiment; there are no parts to make.")
    if manifest["status"] == "finished":
        return
    loaded = checked(run.path, manifest, plugins)
    experiment = from_plugins(loaded, manifest["experiment"]) if loaded.loaded else find(manifest["experiment"])
    settings = run.read_spec(lambda text: parse_settings(text, experiment))
    with interruptible(cancel), experiment.plugins.active():
        experiment.module().run(settings.parameters, Study(run.folder.inside("parts"), settings=settings.hash))


def read_claims(run: Run) -> list[Claim]:
    """The claims of an experiment that was carried out; an unfinished one has none."""
    if run.manifest()["status"] != "finished":
        return []
    try:
        return [Claim.from_json(entries) for entries in parse_json(run.folder.read("claims.json", LARGEST_TEXT))]
    except (OSError, ValueError, KeyError, TypeError) as error:
        where = str(run.folder.where("claims.json"))
        raise RunCorrupted(f"{where!r} cannot be read ({reason(error)}); run the experiment again.") from None


def _complete(
    run: Run,
    experiment: Experiment,
    settings: Settings,
    on_progress: OnProgress | None,
    cancel: Callable[[], bool] | None,
) -> list[Claim]:
    with attempt(run, experiment.plugins) as status, interruptible(cancel), experiment.plugins.active():
        module = experiment.module()
        study = Study(run.folder.inside("parts"), on_progress, settings=settings.hash)
        data = module.run(settings.parameters, study)
        claims = judged(module, settings.parameters, data)
        if not claims:
            raise InvalidInput(f"the experiment {settings.name!r} makes no claim; `claims` must return some.")
        study.progress("drawing the figure and the report", 1.0)
        figure = module.draw(settings.parameters, data)
        with writing(run.path):
            text = json.dumps([claim.to_json() for claim in claims], indent=2, allow_nan=False)
            run.folder.write("claims.json", (text + "\n").encode())
            draw_report(run, experiment, settings, claims, figure)
        if hasattr(module, "motion") and not settings.quick:
            study.progress("drawing the animation", 1.0)
            draw_motion(run, settings.name, module.motion(settings.parameters))
        failed = sum(not claim.holds for claim in claims)
        status |= {"status": "drawing", "summary": {"claims": len(claims), "failed": failed}}
    study.tidy()
    run.seal()
    return claims
