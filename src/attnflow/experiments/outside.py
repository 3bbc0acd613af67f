"""Experiments that are not of attnflow, in a file or another package, checked against the contract before they run."""

import dataclasses
from pathlib import Path
from typing import Any

from attnflow.errors import InvalidInput
from attnflow.experiments.catalogue import Experiment, names, statement_and_rest
from attnflow.experiments.settings import Settings, parse_settings
from attnflow.runs.plugins import Plugins, load

CONTRACT = {
    "PAPERS": 'a tuple of references, PAPERS = ("arXiv:2410.06833",), or ()',
    "Parameters": "a frozen dataclass whose fields all have defaults",
    "QUICK": "the Parameters of the small version",
    "run": "run(parameters, study), which computes and gives back data",
    "claims": "claims(parameters, data), which gives back a list of attnflow.experiments.Claim",
    "draw": "draw(parameters, data), which gives back a Matplotlib figure",
}
"""What a module has to define, and how."""


def is_file(name: str | Path) -> bool:
    """Whether the argument is a file, not the name of an experiment of the package."""
    if isinstance(name, Path) or name.endswith(".py"):
        return True
    return name not in names() and Path(name).is_file()


def from_file(path: str | Path) -> Experiment:
    """The experiment in a Python file, which is executed; a file that does not keep the contract is refused."""
    return from_plugins(load([path]))


def from_plugins(plugins: Plugins, name: str | None = None) -> Experiment:
    """The experiment in the first of the files that were loaded; called `name`, or like its file."""
    path, module = plugins.loaded[0].source.path, plugins.loaded[0].module
    name = name or path.stem.replace("_", "-")
    if name in names():
        raise InvalidInput(f"{str(path)!r} is called like the experiment {name!r} of the package; rename the file.")
    experiment = Experiment(name, "", "", (), plugins)
    check_contract(experiment, path)
    return dataclasses.replace(experiment, **_read(module))


def check_contract(experiment: Experiment, path: str | Path) -> None:
    """Refuse an experiment whose module, in the file `path`, lacks something or has something of a wrong kind."""
    module = experiment.module()
    if not (module.__doc__ or "").strip():
        raise InvalidInput(
            f"{str(path)!r} has no docstring; begin it with one whose first line is what is to be shown."
        )
    for word, meaning in CONTRACT.items():
        if not hasattr(module, word):
            raise InvalidInput(f"{str(path)!r} has no `{word}`; define {meaning}.")
    for word in ("run", "claims", "draw"):
        if not callable(getattr(module, word)):
            raise InvalidInput(f"`{word}` of {str(path)!r} is {getattr(module, word)!r}; define {CONTRACT[word]}.")
    papers = module.PAPERS
    if not isinstance(papers, tuple | list) or not all(isinstance(paper, str) for paper in papers):
        raise InvalidInput(f"`PAPERS` of {str(path)!r} is {papers!r}; give {CONTRACT['PAPERS']}.")
    _check_parameters(path, experiment)


def _read(module: Any) -> dict[str, Any]:
    statement, about = statement_and_rest(module.__doc__)
    return {"statement": statement, "about": about, "papers": tuple(module.PAPERS)}


def _check_parameters(path: str | Path, experiment: Experiment) -> None:
    module = experiment.module()
    maker = module.Parameters
    if not isinstance(maker, type) or not dataclasses.is_dataclass(maker):
        raise InvalidInput(f"`Parameters` of {str(path)!r} is {maker!r}; make it {CONTRACT['Parameters']}.")
    try:
        full = maker()
    except Exception as error:
        raise InvalidInput(
            f"`Parameters()` of {str(path)!r} fails ({type(error).__name__}: {error}); make it "
            f"{CONTRACT['Parameters']}."
        ) from error
    if not isinstance(module.QUICK, maker):
        raise InvalidInput(f"`QUICK` of {str(path)!r} is {module.QUICK!r}; give {CONTRACT['QUICK']}.")
    for parameters in (full, module.QUICK):
        check_writable(experiment, parameters)


def check_writable(experiment: Experiment, parameters: Any) -> None:
    """Refuse parameters that do not come back from spec.toml as they were."""
    settings = Settings(experiment.name, False, parameters)
    try:
        same = parse_settings(settings.to_toml(), experiment) == settings
    except Exception:
        same = False
    if not same:
        raise InvalidInput(
            f"{parameters!r} of the experiment {experiment.name!r} cannot be kept as TOML; use numbers, texts, "
            "booleans and tuples of them."
        )
