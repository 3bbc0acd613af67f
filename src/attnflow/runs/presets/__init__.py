"""Specifications that come with the package."""

from importlib.resources import files

from attnflow.errors import InvalidSpec
from attnflow.runs.nearest import did_you_mean
from attnflow.wording import shown


def preset_names() -> list[str]:
    """Names of the presets."""
    return sorted(f.name.removesuffix(".toml") for f in files(__name__).iterdir() if f.name.endswith(".toml"))


def preset_text(name: str) -> str:
    """The TOML text of a preset, with its comments."""
    if name not in preset_names():
        raise InvalidSpec(f"there is no preset {shown(name)}{did_you_mean(name, preset_names())}")
    return (files(__name__) / f"{name}.toml").read_text(encoding="utf-8")
