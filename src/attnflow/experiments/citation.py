"""What to cite: the papers and the software that an experiment or a run used."""

import ast
import dataclasses
import importlib.util
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from attnflow import __version__, references
from attnflow.errors import InvalidInput, RunCorrupted
from attnflow.experiments.catalogue import Experiment, names, papers_of
from attnflow.experiments.claim import OriginKind
from attnflow.experiments.execute import look_up, read_claims
from attnflow.experiments.outside import is_file
from attnflow.runs.folder import Run


@dataclasses.dataclass(frozen=True)
class Citation:
    """Entries of the bibliography, and why each is among them."""

    name: str
    """The experiment or the run folder."""
    papers: Mapping[str, tuple[str, ...]]
    """Key -> words of the specification, or theorems of the paper, that it is cited for."""
    software: Mapping[str, str]
    """Name of the Python package -> version; empty where the manifest does not say."""
    unknown: tuple[str, ...] = ()
    """References that are not in the bibliography, as the experiment writes them."""

    def to_bibtex(self) -> str:
        """BibTeX, with a comment before every entry."""
        blocks = [f"% {self.name}"]
        for key, why in self.papers.items():
            note = f"% for: {', '.join(why)}\n" if why else ""
            blocks.append(note + references.find(key).to_bibtex())
        for package, version in self.software.items():
            blocks.append(references.find(package).to_bibtex(**({"version": version} if version else {})))
        blocks += [f"% not in the bibliography of attnflow: {one}" for one in self.unknown]
        return "\n\n".join(blocks) + "\n"

    def to_json(self) -> dict[str, Any]:
        """Plain entries."""

        def row(key: str, **more: Any) -> dict[str, Any]:
            entry = references.find(key)
            return {"key": key, "text": entry.text, "url": entry.url} | more

        return {
            "name": self.name,
            "papers": [row(key, **{"for": list(why)}) for key, why in self.papers.items()],
            "software": [row(package, version=version) for package, version in self.software.items()],
            "unknown": list(self.unknown),
            "bibtex": self.to_bibtex(),
        }


def cited(what: str | Path) -> Citation:
    """What to cite for an experiment (its name, or a Python file) or for a run folder."""
    if isinstance(what, str) and what in names():
        return of_experiment(look_up(what))
    if Path(what).is_dir() or (not is_file(what) and len(Path(what).parts) > 1):
        return of_run(Run.open(what))
    return of_experiment(look_up(what))


def of_experiment(experiment: Experiment) -> Citation:
    """Its `PAPERS` and the papers of its claims, which are read from its source; attnflow itself."""
    known, unknown = _sorted_out(dict.fromkeys((*experiment.papers, *_published(_files(experiment))), ()))
    return Citation(experiment.name, known, {"attnflow": __version__}, unknown)


def of_run(run: Run) -> Citation:
    """The papers that the words of its specification rest on, or those of its experiment; software with versions."""
    manifest = run.manifest()
    run.verify()
    found: dict[str, tuple[str, ...]] = {}
    if "experiment" in manifest:
        copies = sorted(run.path.glob("plugin-*.py"))  # of an experiment in a file of one's own: read, never executed
        files = copies or _files(look_up(manifest["experiment"]))
        found = dict.fromkeys((*_papers(files), *_published(files)), ())
        for claim in read_claims(run):
            origin = claim.origin
            if origin is not None and origin.kind in (OriginKind.PUBLISHED, OriginKind.REPORTED):
                places = {*found.get(origin.source, ()), origin.place} - {""}
                found[origin.source] = tuple(sorted(places))
    else:
        try:
            table = run.table()
        except (OSError, ValueError) as error:
            raise RunCorrupted(f"spec.toml of {str(run.path)!r} cannot be read ({error}); run it again.") from None
        found = {key: tuple(why) for key, why in references.used(table).items()}
    known, unknown = _sorted_out(found)
    versions = manifest["versions"]
    packages = [key for key, entry in references.bibliography().items() if entry.is_software]
    software = {key: versions[key] for key in packages if key in versions}
    software |= {key: versions.get(key, "") for key in known if references.find(key).is_software}
    papers = {key: why for key, why in known.items() if not references.find(key).is_software}
    return Citation(str(run.path), papers, software, unknown)


def _sorted_out(found: Mapping[str, tuple[str, ...]]) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """The references that are in the bibliography, by key, and the others."""
    known: dict[str, tuple[str, ...]] = {}
    unknown = []
    for one, why in found.items():
        try:
            key = references.find(one).key
        except InvalidInput:
            unknown.append(one)
        else:
            known[key] = (*known.get(key, ()), *why)
    return known, tuple(unknown)


def _files(experiment: Experiment) -> list[Path]:
    """The Python files of an experiment."""
    if experiment.plugins.loaded:
        return [experiment.plugins.loaded[0].source.path]
    spec = importlib.util.find_spec(experiment.home)
    if spec is None or spec.origin is None:
        return []
    origin = Path(spec.origin)
    return sorted(origin.parent.glob("*.py")) if origin.name == "__init__.py" else [origin]


def _papers(files: Iterable[Path]) -> list[str]:
    """`PAPERS` of files that are read, not executed."""
    return [key for file in files for key in papers_of(ast.parse(file.read_text(encoding="utf-8")))]


def _published(files: Iterable[Path]) -> list[str]:
    """Keys in calls published("key", ...) and reported("key", ...) of files that are read, not executed."""
    found = []
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                if name in ("published", "reported"):
                    found.append(str(node.args[0].value))
    return found
