"""Words that a file outside the package adds to specifications, and sums that it adds to those that are compared.

A plugin is a Python file that calls `register`. It is executed only when a person gives it (`--plugin mine.py`,
`plugins=["mine.py"]`), never because a specification names it. What it registers lives in the loaded plugin: other
specifications of the same process know nothing of it.
"""

import contextlib
import dataclasses
import hashlib
import inspect
import pickle
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from attnflow.errors import AttnflowError, InvalidInput
from attnflow.folders import Folder
from attnflow.reading import LARGEST_SOURCE, read_file
from attnflow.runs.files import writing
from attnflow.runs.nearest import did_you_mean
from attnflow.wording import shown

M = TypeVar("M", bound=Callable[..., Any])
Words = dict[str, dict[str, Callable[..., Any]]]

_LOADING: ContextVar[Words | None] = ContextVar("loading", default=None)
"""Where `register` puts what it is given, while a file is being executed."""

SUM = "sum"
"""What a plugin may register beside words: a class of sums, which `sums.choose` compares while the plugin is active."""


def register(kind: str, name: str) -> Callable[[M], M]:
    """Make `name` a word of specifications, from a plugin: a file that is given with `--plugin`.

    ```python
    import attnflow as af


    @af.register("mask", "neighbours")
    def neighbours(reach: int = 1) -> af.Window:
        return af.Window(reach + 1, causal=False)
    ```

    With that file, `attnflow run mine.toml --plugin mine.py` understands `mask = { name = "neighbours", reach = 2 }`.
    The keys of the table are the arguments of the maker, with its defaults. A list makes a batch for `beta`, `alpha`,
    `kappa`, `slope`, `switch`, `scale`, `size` or `seed` of a field, kernel, mask, weight or noise, and for a number
    that a class converts by `axes.scalar`. A table for `field`, `mask`, `query` and the like is built first, as for the
    words of the package.

    An `Observable` is registered as it is: the keys of its table are its arguments besides time and measure.

    A class of sums is registered as `@af.register("sum", "squares")`. No specification names it: a flow takes it where
    its offer is the cheapest.

    Outside of a plugin that is being loaded (a file that is imported by its own tests, say) nothing is registered.

    Arguments:
        kind: the part of a specification: "field", "mask", "weight", "tokens", "observable" and so on; or "sum".
        name: the new word; one that the package or another plugin has is refused.
    """
    from attnflow.observe.observable import Observable
    from attnflow.observe.observable import maker as made_by
    from attnflow.runs.kinds import check_kind
    from attnflow.runs.registry import REGISTRY

    if kind not in (*REGISTRY, SUM):
        raise InvalidInput(f"`kind` is {shown(kind)}{did_you_mean(str(kind), (*REGISTRY, SUM))}")
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9]+([-_][a-z0-9]+)*", name):
        raise InvalidInput(
            f"`name` is {shown(name)}; use small letters and digits with '-' between words, as in 'my-{kind}'."
        )
    if name in REGISTRY.get(kind, {}):
        raise InvalidInput(f"the package has the {kind} {name!r} already; choose another name.")

    def keep(maker: M) -> M:
        check = {SUM: _check_sum, "kind": check_kind}.get(kind, _check_maker)
        check(kind, name, maker)
        loading = _LOADING.get()
        if loading is not None:
            if name in loading[kind]:
                raise InvalidInput(f"the {kind} {name!r} is registered twice; give each a name of its own.")
            loading[kind][name] = made_by(maker) if isinstance(maker, Observable) else maker
        return maker

    return keep


@dataclasses.dataclass(frozen=True)
class Source:
    """A file as it was read once: what is hashed is what is executed and what is kept."""

    path: Path
    content: bytes
    place: str = ""
    """The absolute path, by which a process knows the file."""

    @property
    def sha256(self) -> str:
        """The hash of the content."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def copy(self) -> str:
        """What its copy in a run folder is called."""
        return f"plugin-{self.path.name}"


@dataclasses.dataclass(frozen=True)
class Plugin:
    """A file that was executed, and the words that it registered."""

    source: Source
    module: ModuleType
    words: Words


@dataclasses.dataclass(frozen=True)
class Plugins:
    """The plugins that a specification is read with; made by `load`."""

    loaded: tuple[Plugin, ...] = ()

    def __post_init__(self) -> None:
        _check_names(plugin.source for plugin in self.loaded)
        seen: dict[tuple[str, str], Plugin] = {}
        for plugin in self.loaded:
            for kind, words in plugin.words.items():
                for name in words:
                    if (kind, name) in seen:
                        raise InvalidInput(
                            f"{str(seen[kind, name].source.path)!r} and {str(plugin.source.path)!r} both register the "
                            f"{kind} {name!r}; leave one of them out, or change the name in one."
                        )
                    seen[kind, name] = plugin

    def words(self, kind: str) -> dict[str, Callable[..., Any]]:
        """name -> maker, those of the package first."""
        from attnflow.runs.registry import REGISTRY

        found = dict(REGISTRY[kind])
        for plugin in self.loaded:
            found |= plugin.words[kind]
        return found

    @property
    def hashes(self) -> list[str]:
        """SHA-256 of each file, sorted."""
        return sorted(plugin.source.sha256 for plugin in self.loaded)

    def facts(self) -> dict[str, Any]:
        """What the manifest of a run says about them; nothing if there are none."""
        rows = [
            {"file": one.source.path.name, "path": str(one.source.path), "sha256": one.source.sha256}
            for one in self.loaded
        ]
        return {"plugins": rows} if rows else {}

    def keep(self, folder: Folder) -> None:
        """Leave the text of each in the run folder, for the reader; it is never executed from there by itself."""
        for plugin in self.loaded:
            name, content = plugin.source.copy, plugin.source.content
            with writing(folder.where()):
                if not folder.is_file(name) or folder.read(name) != content:
                    folder.write(name, content)

    def __reduce__(self) -> tuple[Any, ...]:
        """Paths and texts travel to another process, which executes them; modules do not."""
        return _loaded, (tuple(plugin.source for plugin in self.loaded),)

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Specifications that are read or built inside know these words; flows inside compare these sums."""
        from attnflow.sums import consider

        sums: list[Any] = [kind for plugin in self.loaded for kind in plugin.words[SUM].values()]
        token = _ACTIVE.set(self)
        try:
            with consider(*sums):
                yield
        finally:
            _ACTIVE.reset(token)


Given = Plugins | Sequence[str | Path]
"""Plugins as people give them: files, or what `load` made of them."""

_ACTIVE: ContextVar[Plugins | None] = ContextVar("active", default=None)


def current() -> Plugins:
    """The plugins whose words are known here; none, unless something made them active."""
    return _ACTIVE.get() or Plugins()


def words(kind: str) -> dict[str, Callable[..., Any]]:
    """name -> maker for one part of a specification."""
    return current().words(kind)


def load(given: Given) -> Plugins:
    """Execute the files `given`, each once, and collect what they register."""
    return given if isinstance(given, Plugins) else Plugins(tuple(map(execute_file, read(given))))


def chosen(given: Given) -> Plugins:
    """The plugins `given`; where none are, those that are active."""
    return load(given) if given or isinstance(given, Plugins) else current()


def joined(known: Plugins, given: Given) -> Plugins:
    """`known` and those of `given` that are not among them; a file that is known already is not executed again."""
    if isinstance(given, Plugins):
        return Plugins((*known.loaded, *(one for one in given.loaded if one not in known.loaded)))
    sources = {plugin.source for plugin in known.loaded}
    return Plugins((*known.loaded, *(execute_file(source) for source in read(given) if source not in sources)))


def read(given: Sequence[str | Path]) -> list[Source]:
    """The files as they are now; nothing is executed."""
    if isinstance(given, str | Path):
        raise InvalidInput(f"`plugins` is {str(given)!r}; give a list of files, [{str(given)!r}].")
    found: dict[Path, Source] = {}
    for path in map(Path, given):
        if path.suffix != ".py":
            raise InvalidInput(f"{str(path)!r} is no plugin; give a Python file, whose name ends in .py.")
        try:
            found.setdefault(path.resolve(), Source(path, read_file(path, LARGEST_SOURCE), str(path.resolve())))
        except OSError as error:
            raise InvalidInput(
                f"cannot read {str(path)!r} ({error.strerror or error}); give a Python file that is there."
            ) from None
    _check_names(found.values())
    return list(found.values())


def execute_file(source: Source) -> Plugin:
    """The plugin of a file; the one place where a file of the user's is executed.

    A process executes a file once as long as it does not change, so that there is one class of each name.
    """
    from attnflow.runs.registry import REGISTRY

    if known := _EXECUTED.get(_module_name(source)):
        return known
    words: Words = {kind: {} for kind in (*REGISTRY, SUM)}
    module = ModuleType(_module_name(source))
    module.__file__ = str(source.path)
    before = sys.modules.get(module.__name__)
    sys.modules[module.__name__] = module  # dataclasses and pickles look their module up there
    token, done = _LOADING.set(words), False
    try:
        exec(compile(source.content, str(source.path), "exec", dont_inherit=True), module.__dict__)
        done = True
    except (Exception, SystemExit) as error:
        raise InvalidInput(
            f"{str(source.path)!r} cannot be loaded ({_reason(error, source)}); correct the file, or leave it out."
        ) from error
    finally:
        _LOADING.reset(token)
        if not done:
            sys.modules.pop(module.__name__)
            sys.modules.update({} if before is None else {module.__name__: before})
    made = Plugin(source, module, words)
    _EXECUTED[module.__name__] = made
    return made


_EXECUTED: dict[str, Plugin] = {}
"""The plugins that this process has executed, by the names of their modules."""


def _loaded(sources: tuple[Source, ...]) -> Plugins:
    """The plugins with these texts."""
    return Plugins(tuple(map(execute_file, sources)))


def packed(work: Any) -> tuple[Any, ...]:
    """How work is pickled: its class and fields, with the texts of the plugins whose classes or functions they use."""
    fields = {field.name: getattr(work, field.name) for field in dataclasses.fields(work)}
    try:
        content = pickle.dumps((type(work), fields))
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        name = next((name for name, value in fields.items() if not _pickles(value)), "")
        what = f"the field {name!r}" if name else f"the class {type(work).__qualname__}"
        raise InvalidInput(
            f"{what} of this work cannot be sent to another process ({error}); use functions and classes that a "
            "module or a plugin defines at its top level."
        ) from error
    used = tuple(plugin.source for name, plugin in _EXECUTED.items() if name.encode() in content)
    return unpacked, (used, content)


def unpacked(sources: tuple[Source, ...], content: bytes) -> Any:
    """The work that `packed` packed, after its plugins are there."""
    _loaded(sources)
    kind, fields = pickle.loads(content)
    return kind(**fields)


def _pickles(value: Any) -> bool:
    try:
        pickle.dumps(value)
    except (pickle.PicklingError, TypeError, AttributeError):
        return False
    return True


def _module_name(source: Source) -> str:
    which = hashlib.sha256((source.place or str(source.path)).encode() + source.content).hexdigest()[:12]
    return f"attnflow_plugin_{re.sub(r'[^A-Za-z0-9_]', '_', source.path.stem)}_{which}"


def _reason(error: BaseException, source: Source) -> str:
    """What went wrong and in which line of the file, on one line."""
    text = " ".join(str(error).split()).removesuffix(".")
    if isinstance(error, SyntaxError):
        line, text = error.lineno, f"{type(error).__name__}: {error.msg}"
    else:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(source.path)]
        line = frames[-1].lineno if frames else None
    if not isinstance(error, AttnflowError | SyntaxError):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return f"line {line}: {text}" if line else text


def _check_names(sources: Iterable[Source]) -> None:
    seen: dict[str, Source] = {}
    for source in sources:
        other = seen.setdefault(source.path.name, source)
        if other is not source:
            raise InvalidInput(
                f"the plugins {str(other.path)!r} and {str(source.path)!r} have the same name; rename one of the files."
            )


def _check_sum(kind: str, name: str, maker: Any) -> None:
    from attnflow.sums import AbstractSum

    if not (isinstance(maker, type) and issubclass(maker, AbstractSum)):
        raise InvalidInput(f"the {kind} {name!r} is {maker!r}; give a class of sums, a subclass of AbstractSum.")


def _check_maker(kind: str, name: str, maker: Any) -> None:
    if not callable(maker):
        raise InvalidInput(f"the {kind} {name!r} is made by {maker!r}; give a function or a class.")
    try:
        parameters = inspect.signature(maker).parameters.values()
    except (TypeError, ValueError):
        raise InvalidInput(
            f"the arguments of the {kind} {name!r} cannot be read; wrap its maker in a function."
        ) from None
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise InvalidInput(
                f"the maker of the {kind} {name!r} takes {str(parameter)!r}; name its arguments, for they are the keys "
                "of its table."
            )
