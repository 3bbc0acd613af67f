"""What the documents and messages tell a user to type exists: extras, commands, options, targets, pins."""

import ast
import importlib.util
import re
import shlex
import tomllib
from pathlib import Path

import pytest
import typer
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from attnflow import experiments, runs
from attnflow.cli.commands import app

ROOT = Path(__file__).parent.parent
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG")),
    *sorted((ROOT / "docs").glob("*.md")),
]
SOURCES = [p for ending in ("py", "pyi", "toml") for p in sorted((ROOT / "src").rglob(f"*.{ending}"))]
SCRIPTS = [p for folder in ("benchmarks", "campaigns", "site", "tools") for p in sorted((ROOT / folder).glob("*.py"))]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.M))
NEEDED = (
    "beartype",
    "ducc0",
    "flint",
    "gguf",
    "hypothesis",
    "mpmath",
    "optax",
    "ot",
    "py_mini_racer",
    "safetensors",
    "tokenizers",
    "websockets",
    "xdist",
)
"""What the suite imports beyond the package's own requirements."""


def commands(text):
    """Command lines of shell blocks and of inline code, cut at pipes and redirections, without comments."""
    lines = [
        line
        for block in re.findall(r"```(?:sh|bash|console)\n(.*?)```", text, flags=re.S)
        for line in block.splitlines()
    ]
    lines += re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.S))
    for line in lines:
        line = re.sub(r"(^|\s)#.*$", "", line).removeprefix("$ ")
        for part in re.split(r"&&|\|(?!\w)|[;>]", line):
            try:
                words = shlex.split(part)
            except ValueError:  # prose with an apostrophe
                continue
            if words:
                yield words


def texts():
    """(name, text) of all that tells a user what to type: pages, comments of presets, strings and help of the command line."""
    for page in PAGES:
        yield page.name, page.read_text()
    for preset in sorted((ROOT / "src" / "attnflow" / "runs" / "presets").glob("*.toml")):
        yield preset.name, "\n".join(f"`{line}`" for line in re.findall(r"(attnflow [a-z][^(\n]*)", preset.read_text()))
    for path in sorted((ROOT / "src" / "attnflow" / "cli").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield path.name, node.value
                yield path.name, "\n".join(f"`{line}`" for line in re.findall(r"Example: (.*)", node.value))


COMMAND = typer.main.get_command(app)
FOUND = {
    name: one
    for first, found in COMMAND.commands.items()
    for name, one in {first: found, **{f"{first} {k}": v for k, v in getattr(found, "commands", {}).items()}}.items()
}
"""Commands, and commands of commands as `predict particles`."""
OPTIONS = {name: {opt for p in found.params for opt in p.opts} | {"--help"} for name, found in FOUND.items()}
OPTIONS[None] = {opt for p in COMMAND.params for opt in p.opts} | {"--help"}
SCRIPT_OPTIONS = {p.relative_to(ROOT).as_posix(): set(re.findall(r'"(--[a-z][\w-]*)"', p.read_text())) for p in SCRIPTS}


def given(words):
    return {word.split("=")[0] for word in words if word.startswith("--")}


def wrong_words(words):
    """What a command line names and is not there."""
    if words[0] == "attnflow" and len(words) > 1:
        name = next((word for word in words[1:2] if not word.startswith("-")), None)
        if name not in OPTIONS:
            return {name}
        if hasattr(FOUND.get(name), "commands") and len(words) > 2:
            name = f"{name} {words[2]}"
            if name not in OPTIONS:
                return {words[2]}
        wrong = given(words) - OPTIONS[name]
        for word in words[2:3]:
            known = {"run": runs.preset_names, "presets": runs.preset_names, "reproduce": experiments.names}.get(name)
            if known and re.fullmatch(r"[a-z][a-z-]*", word) and word not in known():
                wrong |= {word}
        return wrong
    if words[0] == "make":
        return {word for word in words[1:] if re.fullmatch(r"[a-z]+", word)} - TARGETS
    if words[0] in ("python", "python3") and len(words) > 1 and "/" in words[1]:
        return given(words) - SCRIPT_OPTIONS[words[1]] if words[1] in SCRIPT_OPTIONS else {words[1]}
    if words[0].startswith("--"):  # an option alone: of some command or script
        return given(words) - set().union(*OPTIONS.values(), *SCRIPT_OPTIONS.values())
    return set()


def test_what_users_are_told_to_type_exists():
    seen = {"attnflow": 0, "make": 0, "python": 0}
    for name, text in texts():
        for words in commands(text):
            assert not wrong_words(words), f"{name}: `{' '.join(words)}` names {wrong_words(words)}"
            seen[words[0]] = seen.get(words[0], 0) + 1
    assert min(seen[word] for word in ("attnflow", "make", "python")) >= 3  # the search finds something


@pytest.mark.parametrize(
    "line",
    [
        "attnflow fly",
        "attnflow run metastability --fast",
        "attnflow run metastabilty",
        "attnflow reproduce stairs --quick",
        "attnflow --verbose",
        "make tea",
        "python benchmarks/tea.py",
        "python benchmarks/field.py --tea",
        "--tea 3",
    ],
)
def test_what_does_not_exist_is_found(line):
    (words,) = commands(f"```sh\n{line}  # some words\n```")
    assert wrong_words(words)


def test_every_extra_that_is_named_exists():
    named = {}
    makefile = (ROOT / "Makefile").read_text()
    for path in [*PAGES, *SOURCES, *SCRIPTS, ROOT / "pyproject.toml", *sorted((ROOT / "tests").rglob("*.py"))]:
        text = path.read_text().replace("\\", "")
        for extras in re.findall(r"attnflow\[([\w, -]+)\]", text) + re.findall(r"\bextra `(\w+)`", text):
            named |= dict.fromkeys(re.split(r", *", extras), path.name)
    for extras in re.findall(r"\.\[([\w,]+)\]", makefile):
        named |= dict.fromkeys(extras.split(","), "Makefile")
    assert set(named) >= {"certify", "fast", "learn", "probe", "transport", "video", "dev"}
    for extra, where in named.items():
        assert extra in EXTRAS, f"{where} names the extra {extra!r}"


def requirements(entries):
    """The packages of these entries, extras of the package itself followed."""
    for entry in map(Requirement, entries):
        if canonicalize_name(entry.name) == "attnflow":
            for extra in entry.extras:
                yield from requirements(EXTRAS[extra])
        else:
            yield entry


def test_extras_contain_each_other():
    names = {extra: {canonicalize_name(r.name) for r in requirements(EXTRAS[extra])} for extra in EXTRAS}
    every = ("certify", "fast", "lab", "learn", "probe", "sweeps", "transport", "video")
    assert names["all"] == set().union(*(names[one] for one in every))
    assert names["all"] < names["test"] < names["dev"]
    assert {"ducc0", "beartype"} <= names["test"]
    for requirement in requirements([*PROJECT["dependencies"], *EXTRAS["dev"]]):
        assert any(one.operator == ">=" for one in requirement.specifier), f"{requirement} has no lower bound"


def test_the_lock_holds_pins_and_covers_everything():
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pins = {}
    for line in lines:
        assert re.fullmatch(r"[A-Za-z0-9][\w.-]*==[0-9][\w.!+]*", line), f"{line!r} is no pin; run `make lock`"
        name, version = line.split("==")
        pins[canonicalize_name(name)] = version
    assert len(pins) == len(lines)
    assert lines == sorted(lines, key=lambda line: line.split("=")[0].upper())
    assert not set(pins) & {"attnflow", "pip", "setuptools", "wheel", "torch"}
    assert not [name for name in pins if "nvidia" in name or "cuda" in name]
    for requirement in requirements([*PROJECT["dependencies"], *EXTRAS["all"], *EXTRAS["dev"]]):
        name = canonicalize_name(requirement.name)
        assert name in pins, f"{name} is not in requirements.lock; run `make lock`"
        assert requirement.specifier.contains(pins[name]), f"{name}=={pins[name]} is not {requirement.specifier}"


@pytest.mark.parametrize("package", NEEDED)
def test_the_test_environment_is_complete(package):
    """Nothing is left out for want of a package: `pip install -e ".[test]"`."""
    assert importlib.util.find_spec(package) is not None, f"{package} is missing; `pip install -e '.[test]'`"


@pytest.mark.slow
def test_no_test_is_skipped():
    """A test that a machine leaves out proves nothing there. What cannot be asked is not made a case."""
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in ("skip", "skipif", "importorskip", "xfail"):
                assert ast.unparse(node.value) not in ("pytest", "pytest.mark"), f"{path.name}:{node.lineno} skips"
