"""What holds for every experiment of the gallery: marked claims, derivations, figures, and mutations that are noticed."""

import contextlib
import io
import itertools
import re
from pathlib import Path

import matplotlib.colors
import numpy as np
import pytest
from matplotlib.lines import Line2D
from PIL import Image

from attnflow.experiments import Salted, Study, find, names
from attnflow.experiments.claim import OriginKind
from attnflow.experiments.gallery_page import picture
from attnflow.experiments.verdicts import judged, missing
from attnflow.plots.style import styled


def folder(name):
    """The folder of an experiment."""
    found = Path(find(name).module().__file__)
    assert found.name == "__init__.py", "an experiment is a folder"
    return found.parent


@pytest.mark.parametrize("name", names())
def test_files_are_short_and_randomness_is_salted(name):
    for path in folder(name).glob("*.py"):
        text = path.read_text()
        assert len(text.splitlines()) <= 300, f"{path.name} of {name} has more than 300 lines"
        assert not re.search(
            r"np\.random\.(?!Generator)|numpy\.random|jax\.random|PRNGKey|(?<!sel\()\bseed=\d", text
        ), f"{path.name} of {name} draws random numbers that no salt changes; use parameters.rng, parameters.seeds"


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_the_quick_version_holds(name, tmp_path):
    """All claims hold; that mutations break them is in the test of each experiment, and whole in the campaign's record."""
    module = find(name).module()
    data = module.run(module.QUICK, Study(tmp_path / "parts"))
    claims = judged(module, module.QUICK, data)
    assert [(claim.statement, claim.found) for claim in claims if not claim.holds] == []
    check_nan(module, data)
    check_levels(claims)
    check_origins(name, module, claims)
    check_colours(module.draw(module.QUICK, data))


@pytest.mark.parametrize("name", names())
def test_an_experiment_has_a_test_of_its_own_that_applies_a_mutation(name):
    own = Path(__file__).parent / f"test_{folder(name).name}.py"
    assert re.search(r"kill_matrix\(|noticed\(|\.applied\(\)", own.read_text()), f"{own.name} applies no mutation"


def check_nan(module, data):
    """A NaN in any array is found, wherever datasets share the array, and makes every claim fail, without an error."""
    arrays, last = 0, None
    for dataset in datasets(data):
        for name, array in dataset.data_vars.items():
            if array.dtype.kind == "f" and array.size:
                arrays += 1
                last = array.values, np.unravel_index(np.argmax(~np.isnan(array.values)), array.shape)
                with poisoned(*last):
                    assert {one.split("/")[-1] for one in missing(data)} == {name}
    assert arrays
    with poisoned(*last):
        assert not any(claim.holds for claim in judged(module, module.QUICK, data))


def datasets(data):
    """The datasets of an experiment, which may stand in dictionaries inside dictionaries."""
    return [one for inner in data.values() for one in datasets(inner)] if isinstance(data, dict) else [data]


@contextlib.contextmanager
def poisoned(values, at):
    """One entry is NaN for a while."""
    before, values[at] = values[at], np.nan
    yield
    values[at] = before


def check_levels(claims):
    """A claim that random numbers decide says how likely chance fails it, and its reason names the test."""
    for claim in claims:
        named = re.search(r"level \d|Student|normal test|Kolmogorov", claim.reason) is not None
        assert not named or claim.level > 0, f"{claim.statement!r} names a test and no level"


def check_origins(name, module, claims):
    """Every claim says whose statement it is, and that can be looked up."""
    derivation = folder(name) / "derivation.md"
    headings = set(re.findall(r"(?m)^#+ (.+)$", derivation.read_text())) if derivation.exists() else set()
    for claim in claims:
        assert claim.origin is not None, claim.statement
        if claim.origin.kind in (OriginKind.PUBLISHED, OriginKind.REPORTED):
            assert claim.origin.source in module.PAPERS, claim.statement
        if claim.origin.kind in (OriginKind.CONSEQUENCE, OriginKind.OBSERVED):
            assert claim.origin.source in headings, claim.statement


def shown_colour(handle):
    """The opaque colour that a handle of a legend shows: of its line, else of its markers, else of its face."""
    if isinstance(handle, Line2D):
        drawn = handle.get_linestyle() not in ("None", "", " ")
        found = [handle.get_color()] if drawn else [handle.get_markerfacecolor(), handle.get_markeredgecolor()]
    else:
        found = [getattr(handle, getter)() for getter in ("get_facecolor", "get_edgecolor") if hasattr(handle, getter)]
    for colour in found:
        rgba = matplotlib.colors.to_rgba_array(colour)
        if len(rgba) and rgba[0, 3] == 1 and tuple(rgba[0, :3]) != (1, 1, 1):
            return tuple(round(255 * c) for c in rgba[0, :3])
    return None


def legend_colours(figure):
    """The colours of every legend of a figure."""
    legends = [axes.get_legend() for axes in figure.axes] + list(figure.legends)
    return [{c for c in map(shown_colour, one.legend_handles) if c is not None} for one in legends if one is not None]


def check_colours(figure):
    """The published picture shows series of different colours in different colours, close to those intended."""
    with styled():
        stream = io.BytesIO()
        figure.savefig(stream, format="png")
    path = io.BytesIO(picture(stream))
    palette = np.unique(np.asarray(Image.open(path).convert("RGB")).reshape(-1, 3), axis=0).astype(int)
    for legend in legend_colours(figure):
        shown = {c: tuple(palette[np.argmin(np.sum((palette - c) ** 2, axis=1))]) for c in legend}
        for intended, seen in shown.items():
            assert np.linalg.norm(np.subtract(intended, seen)) <= 16, f"{intended} became {seen}"
        for one, other in itertools.combinations(shown, 2):
            assert shown[one] != shown[other], f"{one} and {other} became one colour"


@pytest.mark.parametrize("name", names())
def test_parameters_take_a_salt(name):
    """All but experiments without random numbers derive from Salted."""
    module = find(name).module()
    assert issubclass(module.Parameters, Salted) or "rng" not in (folder(name) / "simulate.py").read_text()
