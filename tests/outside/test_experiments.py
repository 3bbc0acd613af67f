"""A package of a colleague, installed by pip, brings experiments of its own through an entry point."""

import json
import os
import subprocess
import sys
import zipfile

import pytest

from attnflow.errors import InvalidInput
from attnflow.experiments import find
from tests.experiments.tiny import SOURCE

FACTS = "colleague-1.5.dist-info"
FILES = {
    "colleague/__init__.py": "",
    "colleague/experiments/__init__.py": "",
    "colleague/experiments/tiny_mean.py": SOURCE,
    "colleague/experiments/_helper.py": "",
    "colleague/alone.py": SOURCE,
    "colleague/broken.py": SOURCE.replace("def claims", "def no_claims"),
    f"{FACTS}/METADATA": "Metadata-Version: 2.1\nName: colleague\nVersion: 1.5\n",
    f"{FACTS}/WHEEL": "Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    f"{FACTS}/entry_points.txt": "[attnflow.experiments]\nall = colleague.experiments\nsingle_one = colleague.alone\n"
    "broken = colleague.broken\ngone = colleague.not_there\n",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder of packages into which pip has installed the colleague's wheel."""
    folder = tmp_path_factory.mktemp("colleague")
    wheel = folder / "colleague-1.5-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in FILES.items():
            archive.writestr(name, text)
        archive.writestr(f"{FACTS}/RECORD", "".join(f"{name},,\n" for name in [*FILES, f"{FACTS}/RECORD"]))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile"]
    subprocess.run([*pip, "--target", folder / "site", wheel], check=True)
    return folder / "site"


def attnflow(site, where, *arguments):
    paths = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": paths, "TINY_LOG": str(where / "log.txt")}
    command = [sys.executable, "-m", "attnflow", *arguments]
    return subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True)


@pytest.mark.long
def test_its_experiments_are_listed_and_carried_out(site, tmp_path):
    listed = attnflow(site, tmp_path, "experiments")
    assert listed.returncode == 0
    assert {"tiny-mean", "single-one", "broken", "staircase"} <= {
        line.split()[0] for line in listed.stdout.splitlines()
    }
    done = attnflow(site, tmp_path, "reproduce", "single-one", "tiny-mean", "--quick", "--out", "here")
    assert done.returncode == 0, done.stderr
    manifests = [json.loads(path.read_text()) for path in sorted((tmp_path / "here").glob("*/manifest.json"))]
    assert [one["experiment"] for one in manifests] == ["single-one", "tiny-mean"]
    assert {one["package"] for one in manifests} == {"colleague 1.5"}
    refused = attnflow(site, tmp_path, "reproduce", "broken", "--quick")
    assert refused.returncode == 2
    assert "broken.py' has no `claims`; define claims(parameters, data)" in " ".join(refused.stderr.split())


def test_a_name_in_two_packages_is_refused(faults):
    def twice():
        return [*installed(), *((entry, f"{package} again") for entry, package in installed())]

    installed = faults.replace("entry points of experiments", twice)
    with pytest.raises(
        InvalidInput, match="the experiment 'staircase' is in attnflow .* and attnflow .* again; uninstall"
    ):
        find("staircase")
