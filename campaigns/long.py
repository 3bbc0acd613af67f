"""Do all cases of the suite pass, the `long` ones too? Hours; the first part of `make long`.

    python campaigns/long.py                       all cases, the record of today
    python campaigns/long.py -n 4 --dist worksteal

Options are those of pytest. A green run leaves a dated record with the digest of the source, without which
`make release-check` refuses a release; a run with a failure leaves none, and its exit code is that of pytest.
"""

import datetime
import platform
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from importlib.metadata import version
from pathlib import Path
from typing import Any

import _record

ROOT = Path(__file__).resolve().parent.parent


def counts(report: Path) -> dict[str, Any]:
    """Count passed and failed cases and the seconds of a run, from pytest's report in JUnit format."""
    (suite,) = ElementTree.parse(report).getroot()
    failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
    passed = int(suite.get("tests", 0)) - failed - int(suite.get("skipped", 0))
    return {"passed": passed, "failed": failed, "seconds": float(suite.get("time", 0))}


def main() -> int:
    """Run all cases and keep the record if they pass."""
    with tempfile.TemporaryDirectory() as folder:
        report, source = Path(folder) / "report.xml", _record.of_folder(ROOT)
        command = [sys.executable, "-m", "pytest", "-m", "", f"--junitxml={report}", *sys.argv[1:]]
        code = subprocess.run(command, cwd=ROOT).returncode
        if code:
            return code
        facts = {"source": source, "python": platform.python_version(), "jax": version("jax")} | counts(report)
    if _record.of_folder(ROOT) != source:
        raise SystemExit("src was changed while the cases ran, so that no record is kept; run them again.")
    _record.save(facts, ROOT / "campaigns" / "records" / f"long-{datetime.date.today()}.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
