"""What a shell offers after `attnflow run`, `attnflow reproduce`, ...: names, read from the folders that hold them.

No room of the simulator is imported: a person who presses Tab waits.
"""

from collections.abc import Iterable
from pathlib import Path

PACKAGE = Path(__file__).parent.parent


def presets(incomplete: str) -> list[str]:
    """Names of presets that begin so."""
    names = (file.stem for file in (PACKAGE / "runs" / "presets").glob("*.toml"))
    return _beginning(names, incomplete)


def experiments(incomplete: str) -> list[str]:
    """Names of experiments that begin so."""
    from attnflow.experiments.catalogue import names

    return _beginning(names(), incomplete)


def specifications(incomplete: str) -> list[str]:
    """Presets, and TOML files here."""
    return presets(incomplete) + _beginning(map(str, Path().glob("*.toml")), incomplete)


def run_folders(incomplete: str) -> list[str]:
    """Run folders below the folder that has been typed so far; below `runs` at first."""
    typed = Path(incomplete) if incomplete.endswith("/") else Path(incomplete).parent
    roots = (Path(), Path("runs")) if typed == Path() else (typed,)
    found = (str(file.parent) for root in roots for file in root.glob("*/manifest.json"))
    return _beginning(found, incomplete)


def citable(incomplete: str) -> list[str]:
    """Experiments and run folders."""
    return experiments(incomplete) + run_folders(incomplete)


def networks(incomplete: str) -> list[str]:
    """Trained networks that can be fetched."""
    from attnflow.probe.networks.catalogue import NETWORKS

    return _beginning(NETWORKS, incomplete)


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))
