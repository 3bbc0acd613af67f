"""The house: imports point downwards only, and importing costs little."""

import ast
import importlib
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import attnflow
from tests import stub
from tests.marks import graded

ROOT = Path(attnflow.__file__).parent
FLOORS = [
    {"errors", "renamed"},
    {"lazy"},
    {"precision", "interrupts", "wording", "compilations"},
    {"checks", "reading"},
    {"feasible"},
    {"archives", "axes", "folders", "intervals", "parsing", "spaces", "special"},
    {"describe", "sketches"},
    {"tokens", "masks", "kernels"},
    {"sums"},
    {"fields"},
    {"observe"},
    {"transport"},
    {"flows"},
    {"decoders", "learn", "meanfield", "stability"},
    {"certify", "control", "random_layers", "text"},
    {"runs"},
    {"plots", "probe", "references"},
    {"experiments", "sweeps"},
    {"lab"},
    {"cli"},
    {"__main__"},
]
FLOOR = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}


FILES = sorted(p for p in ROOT.rglob("*.py") if p != ROOT / "__init__.py")


def imports(path):
    """(line, imported room) for every import of attnflow in a file, function bodies included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "attnflow":
            names = [node.module] if "." in node.module else [f"attnflow.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.split(".")[0] == "attnflow"]
        else:
            continue
        yield from ((node.lineno, name.split(".")[1]) for name in names if "." in name)


def offence(room, other):
    """What is wrong with an import of `other` in a file of `room`; empty if nothing is."""
    if other in (room, "__version__"):
        return ""
    if room == "theory":
        allowed = ("special", "errors", "lazy", "wording")
        return "" if other in allowed else f"theory may import special, errors, lazy and wording alone, not {other}"
    if other == "theory":
        return "" if FLOOR[room] >= FLOOR["plots"] else f"{room} belongs to the simulator and may not import theory"
    return "" if other in FLOOR and FLOOR[other] < FLOOR[room] else f"{room} imports {other}, which is not below it"


@pytest.mark.slow
def test_imports_point_downwards():
    offenders = []
    for path in FILES:
        relative = path.relative_to(ROOT)
        room = relative.with_suffix("").parts[0]
        found = ((line, offence(room, other)) for line, other in imports(path))
        offenders += [f"{relative}:{line}: {what}" for line, what in found if what]
    assert not offenders, "\n" + "\n".join(offenders)


@pytest.mark.long
def test_the_gallery_imports_public_names_only():
    """A client of the library: rooms of `attnflow`, names in their `__all__`, and itself."""
    import attnflow_gallery

    home = Path(attnflow_gallery.__file__).parent
    homes = [*attnflow._ROOMS.values(), *(f"attnflow.theory.{room}" for room in attnflow.theory._ROOMS)]
    public = {home: importlib.import_module(home) for home in homes}
    public["attnflow"] = attnflow
    offenders = []
    for path in sorted(home.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            where = f"{path.relative_to(home)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Import):
                offenders += [f"{where}: import {one.name}" for one in node.names if one.name.startswith("attnflow.")]
            elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "attnflow":
                room = public.get(node.module)
                names = [one.name for one in node.names]
                hidden = names if room is None else [name for name in names if name not in room.__all__]
                offenders += [f"{where}: {node.module}.{name} is not public" for name in hidden]
    assert not offenders, "\n" + "\n".join(offenders)


def test_every_room_has_a_floor():
    rooms = {p.relative_to(ROOT).with_suffix("").parts[0] for p in ROOT.rglob("*.py")} - {"__init__"}
    assert rooms == set(FLOOR) | {"theory"}


def test_files_are_short():
    lengths = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert {name: length for name, length in lengths.items() if length > 400} == {}


@pytest.mark.slow
def test_import_is_light_and_sets_no_flag():
    code = (
        "import sys, json, jax; before = dict(jax.config.values); import attnflow; attnflow.Attention; attnflow.uniform;"
        "print(json.dumps([sorted(set(sys.modules) & {'diffrax','xarray','matplotlib','PIL','zarr','ot','pandas','typer','optax'}),"
        "before == dict(jax.config.values)]))"
    )
    heavy, same = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
    assert heavy == []
    assert same


@graded("command", ["--version", "list", "presets", "experiments"], fast=2)
def test_a_command_that_lists_does_not_load_the_simulator(command, tmp_path):
    code = (
        "import sys\nfrom attnflow.cli import main\n"
        f"sys.argv[1:] = [{command!r}]\ntry:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(sorted(set(sys.modules) & {'jax', 'equinox', 'scipy', 'xarray', 'matplotlib'}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, cwd=tmp_path, text=True)
    assert done.stderr.splitlines()[-1] == "[]"


def test_no_lazy_name_is_that_of_a_module():
    """Importing the module would put it in the place of the name."""
    for package in ("attnflow.runs", "attnflow.experiments", "attnflow.sweeps", "attnflow.theory", "attnflow.certify"):
        room = importlib.import_module(package)
        names = {name for names in room._HOME.values() for name in names}
        assert names == set(room.__all__) - set(getattr(room, "_ROOMS", {}))
        assert not names & {module.name for module in pkgutil.iter_modules(room.__path__)}
        assert all(getattr(room, name) is not None for name in names)


def test_rooms_of_theory_import_no_circle():
    """uniform and merging stand lowest, predictions above landscape, causal and random_layers on top."""
    levels = [{"checks"}, {"uniform", "merging"}, {"landscape"}, {"predictions"}, {"causal", "random_layers"}]
    level = {room: at for at, rooms in enumerate(levels) for room in rooms}
    folder = ROOT / "theory"
    for path in folder.rglob("*.py"):
        room = path.relative_to(folder).with_suffix("").parts[0]
        if room == "__init__":
            continue
        used = re.findall(r"^ *from attnflow\.theory\.(\w+)", path.read_text(encoding="utf-8"), flags=re.M)
        for other in set(used) - {room}:
            assert level[other] < level[room], f"{path.relative_to(ROOT)} imports {other}, which is not below it"


@pytest.mark.slow
def test_importing_attnflow_does_not_import_theory():
    code = (
        "import sys, attnflow; attnflow.Attention; print([m for m in sys.modules if m.startswith('attnflow.theory')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "[]"


def test_public_names_exist():
    for name in attnflow.__all__:
        assert getattr(attnflow, name) is not None
    with pytest.raises(AttributeError):
        attnflow.nonsense  # noqa: B018


@pytest.mark.parametrize("room", attnflow._ROOMS)
def test_a_room_shows_its_public_names_and_nothing_else(room):
    found = getattr(attnflow, room)
    assert dir(found) == sorted(found.__all__)
    assert len(set(found.__all__)) == len(found.__all__)
    assert [name for name in found.__all__ if not hasattr(found, name)] == []


def test_the_type_stub_offers_the_same_names():
    assert stub.PATH.read_text() == stub.text(), "the lists of names have changed: run `python -m tests.stub`"
    assert (ROOT / "py.typed").exists()
