"""The house: imports point downwards only, and importing costs little."""

import ast
import importlib
import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import attnflow
from tests import stub

ROOT = Path(attnflow.__file__).parent
FLOORS = [
    {"errors", "lazy"},
    {"precision", "interrupts", "wording", "compilations"},
    {"checks"},
    {"feasible"},
    {"axes", "spaces", "special"},
    {"describe"},
    {"tokens", "masks", "kernels"},
    {"sums"},
    {"fields"},
    {"observe"},
    {"flows"},
    {"decoders", "learn", "meanfield", "stability"},
    {"control", "depth"},
    {"runs"},
    {"plots", "references"},
    {"experiments"},
    {"cli"},
]
FLOOR = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}


def room_of(module):
    return module.split(".")[1] if "." in module else ""


def imports(path):
    """(room, imported attnflow rooms) of a file, function bodies included."""
    relative = path.relative_to(ROOT).with_suffix("")
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "attnflow":
            found |= {room_of(node.module)} if "." in node.module else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {room_of(alias.name) for alias in node.names if alias.name.split(".")[0] == "attnflow"}
    return relative.parts[0], found - {relative.parts[0], "__version__", ""}


FILES = [p for p in ROOT.rglob("*.py") if p.parent != ROOT or p.name != "__init__.py"]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_downwards(path):
    room, found = imports(path)
    if room == "theory":
        assert found <= {"special"}, f"theory may import special alone, not {found}"
        return
    for other in found:
        if other == "theory":
            assert FLOOR[room] >= FLOOR["plots"], f"{room} belongs to the simulator and may not import theory"
        elif other == "special":
            assert room not in FLOOR or FLOOR[room] > FLOOR["special"]
        else:
            assert FLOOR[other] < FLOOR[room], f"{room} imports {other}, which is not below it"


def test_every_room_has_a_floor():
    rooms = {p.stem if p.is_file() else p.name for p in ROOT.iterdir() if p.name[0] != "_" and p.name != "py.typed"}
    assert rooms == set(FLOOR) | {"theory"}


def test_files_are_short():
    for path in FILES:
        assert len(path.read_text().splitlines()) <= 400, path


def test_import_is_light_and_sets_no_flag():
    code = (
        "import sys, json, jax; before = dict(jax.config.values); import attnflow; attnflow.Attention; attnflow.uniform;"
        "print(json.dumps([sorted(set(sys.modules) & {'diffrax','xarray','matplotlib','PIL','zarr','ot','pandas','typer','optax'}),"
        "before == dict(jax.config.values)]))"
    )
    heavy, same = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
    assert heavy == []
    assert same


@pytest.mark.parametrize("command", ["--version", "list", "presets", "experiments"])
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
    for package in ("attnflow.runs", "attnflow.experiments"):
        room = importlib.import_module(package)
        names = {name for names in room._HOME.values() for name in names}
        assert names == set(room.__all__)
        assert not names & {module.name for module in pkgutil.iter_modules(room.__path__)}
        assert all(getattr(room, name) is not None for name in names)


def test_public_names_exist():
    for name in attnflow.__all__:
        assert getattr(attnflow, name) is not None
    with pytest.raises(AttributeError):
        attnflow.nonsense  # noqa: B018


def test_the_type_stub_offers_the_same_names():
    assert stub.PATH.read_text() == stub.text(), "the lists of names have changed: run `python -m tests.stub`"
    assert (ROOT / "py.typed").exists()
