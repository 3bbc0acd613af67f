"""Carry out an experiment in a run folder, from the start or from where it was left."""

import contextlib
import json
import time
from pathlib import Path
from typing import Any

from attnflow.errors import AttnflowError, InvalidInput, RunCorrupted, RunError
from attnflow.experiments.catalogue import find
from attnflow.experiments.claim import Claim
from attnflow.experiments.report import draw_report
from attnflow.experiments.settings import Settings, parse_settings
from attnflow.experiments.study import OnProgress, Study
from attnflow.runs.execute import peak_memory
from attnflow.runs.folder import Run, write_atomically, writing


def reproduce(
    name: str,
    path: str | Path,
    *,
    quick: bool = False,
    parameters: Any = None,
    on_progress: OnProgress | None = None,
) -> tuple[Run, list[Claim]]:
    """Make the folder `path` and carry out the experiment `name` in it.

    The folder holds spec.toml, manifest.json, parts/, claims.json, figures/ and report.html, and is sealed when all of
    them are there. A claim that fails raises nothing: look at `holds`.

    Arguments:
        quick: the small version of the experiment, made for a first look and for tests.
        parameters: an instance of the experiment's `Parameters`, instead of the full or the quick version.
        on_progress: called with a text and the share that is done.
    """
    module = find(name).module()
    if parameters is not None and (quick or not isinstance(parameters, module.Parameters)):
        raise InvalidInput(
            f"`parameters` is {parameters!r}; give a Parameters of the experiment {name!r}, and not quick=True with it."
        )
    chosen = module.QUICK if quick else module.Parameters() if parameters is None else parameters
    settings = Settings(name, quick, chosen)
    run = Run.create(path, settings, experiment=name, quick=quick)
    with run.lock():
        return run, _carry_on(run, settings, on_progress)


def resume(path: str | Path, *, on_progress: OnProgress | None = None) -> tuple[Run, list[Claim]]:
    """Continue an experiment from its last complete part; a finished one is only opened."""
    run = Run.open(path)
    if "experiment" not in run.manifest():
        raise RunError(f"{str(path)!r} holds a flow, not an experiment; continue it with attnflow.runs.resume.")
    with run.lock():
        if run.manifest()["status"] == "finished":
            return run, read_claims(run)
        return run, _carry_on(run, run.read_spec(parse_settings), on_progress)


def read_claims(run: Run) -> list[Claim]:
    """The claims of an experiment that was carried out; an unfinished one has none."""
    file = run.path / "claims.json"
    if run.manifest()["status"] != "finished":
        return []
    try:
        return [Claim.from_json(entries) for entries in json.loads(file.read_text(encoding="utf-8"))]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunCorrupted(f"{str(file)!r} cannot be read ({error}); run the experiment again.") from None


def _carry_on(run: Run, settings: Settings, on_progress: OnProgress | None) -> list[Claim]:
    manifest = run.manifest()
    began, before = time.perf_counter(), manifest["wall_time"]
    run.update(status="running", **{key: None for key in ("message",) if key in manifest})  # of a failure before
    experiment = find(settings.name)
    module = experiment.module()
    study = Study(run.path / "parts", on_progress)
    status: dict[str, Any] = {"status": "interrupted"}
    try:
        with study.listening():
            data = module.run(settings.parameters, study)
            claims = list(module.claims(settings.parameters, data))
            if not claims:
                raise InvalidInput(f"the experiment {settings.name!r} makes no claim; `claims` must return some.")
            study.progress("drawing the figure and the report", 1.0)
            figure = module.draw(settings.parameters, data)
            with writing(run.path):
                text = json.dumps([claim.to_json() for claim in claims], indent=2, allow_nan=False)
                write_atomically(run.path / "claims.json", (text + "\n").encode())
                draw_report(run, experiment, settings, claims, figure)
            status = {
                "status": "drawing",
                "summary": {"claims": len(claims), "failed": sum(not claim.holds for claim in claims)},
            }
    except Exception as error:
        known = isinstance(error, AttnflowError)
        status = {"status": "failed", "message": str(error) if known else f"{type(error).__name__}: {error}"}
        raise
    finally:
        with contextlib.suppress(OSError):  # a full disk has been reported already
            run.update(wall_time=before + time.perf_counter() - began, peak_memory=peak_memory(), **status)
    run.seal()
    return claims
