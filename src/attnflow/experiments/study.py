"""What an experiment computes with: parts that are kept on disk, and a way to say how far it is."""

import contextlib
import dataclasses
import functools
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from attnflow.checks import instance
from attnflow.errors import InvalidInput, RunCorrupted
from attnflow.experiments.parts import ENDING, pack, read_part
from attnflow.flows import AbstractWork, Control, Drive, Fixed, Progress, Solve
from attnflow.folders import Folder, is_temporary
from attnflow.interrupts import raise_if_interrupted
from attnflow.runs.claims import Claim, Watch, claim_name, is_claim
from attnflow.runs.files import writing
from attnflow.runs.store import ZarrSink

if TYPE_CHECKING:
    import xarray as xr

T = TypeVar("T")
PAUSE = 0.2
"""Seconds between two looks at a part that another process is making."""
ROWS = ".rows"
"""How the name of a folder ends that holds the rows of a part while it is made."""
SETTINGS = "settings"
"""The file in such a folder that holds the hash of the settings."""
OnProgress = Callable[[Progress], None]
Maker: TypeAlias = "Callable[[], xr.Dataset] | AbstractWork | tuple[Any, ...]"


class Study:
    """What `run(parameters, study)` of an experiment computes with: results that are kept part by part.

    ```python
    def run(parameters: Parameters, study: af.experiments.Study) -> dict[str, xr.Dataset]:
        return study.parts({f"beta{beta:g}": (follow, beta) for beta in parameters.betas})


    def follow(beta: float) -> xr.Dataset:
        flow = af.solve(af.Attention(beta), af.uniform(af.Sphere(3), n=64), 10.0)
        return xr.Dataset({"energy": flow.energy})
    ```

    A part that is finished lies in `folder` as an .npz file. When the study is resumed, after Ctrl-C or a crash, it is
    loaded and not made again. Several processes may work on one folder: each makes parts that no other is making.
    `attnflow reproduce` makes the Study; to try `run` in Python, give it `Study("parts")`.

    Arguments:
        folder: where the parts lie; made when the first one is begun. Links in it are refused.
        on_progress: called with a `Progress`: `note` says what is done, `time` is the share of the whole.
        settings: the hash of the settings of the experiment. It is written into parts and their unfinished rows, and
            those of other settings are refused. Without it any part of the folder is taken.
    """

    def __init__(self, folder: str | Path | Folder, on_progress: OnProgress | None = None, *, settings: str = ""):
        self.folder = folder if isinstance(folder, Folder) else Folder(Path(folder))
        self.on_progress = on_progress
        self.settings = settings
        self.asked: set[str] = set()
        self.watch = Watch()
        self.share = 0.0
        self.began = time.perf_counter()
        self.window = (0.0, 1.0)
        """The shares of the whole at which the current one of several `parts` begins and ends."""

    def part(self, name: str, make: "Callable[[], xr.Dataset] | AbstractWork") -> "xr.Dataset":
        """The part `name`: loaded if it is there, else made, stored in one atomic step, and loaded.

        Either way the caller gets what is on disk, so a resumed study goes on from the same bits. `make` is a function,
        or work such as `af.flows.Solve(field, tokens, until, observe=...)`: then the part is the dataset of its result,
        rows go to disk as they come, and a study that is stopped within the part goes on from its last checkpoint.
        """
        self._ask(name)
        while not self._made(name, make):
            self.progress(f"{name}: another process is making it", 0.0)
            time.sleep(PAUSE)
        return read_part(self.folder, _file(name), self.settings)

    def _ask(self, name: str) -> None:
        """Refuse a name that cannot be the name of a file, or that another part has."""
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
            raise InvalidInput(f"a part is called {name!r}; it becomes a file, so use letters, digits, '-', '_', '.'.")
        if name in self.asked:
            raise InvalidInput(f"the part {name!r} is asked for twice; give each part a name of its own.")
        self.asked.add(name)

    def _made(self, name: str, make: "Callable[[], xr.Dataset] | AbstractWork") -> bool:
        """Make the part if it is not there; False if another process is making it.

        A process that was killed after it had finished the part leaves its rows and its claim; both are removed.
        """
        self.folder.require_plain(_file(name))
        is_there = self.folder.is_file(_file(name))
        if is_there and not self.folder.is_folder(_rows(name)) and not self.folder.is_file(claim_name(name)):
            return True
        claim = self._claim(name)
        if claim is None:
            return is_there
        try:
            with claim.beating():
                if not self.folder.is_file(_file(name)):  # another process may have finished between the two looks
                    self._make(name, make)
                with self._writing():
                    self.folder.remove_folder(_rows(name))
        finally:
            claim.release()
        return True

    def _claim(self, name: str) -> Claim | None:
        with self._writing():
            self.folder.make()
            place = self.folder, claim_name(name)
            return Claim.take(*place) if self.watch.is_free(*place) else None

    def _writing(self) -> contextlib.AbstractContextManager[None]:
        """Turn failures of the disk into one sentence that names the folder of the run."""
        return writing(self.folder.where().parent)

    def tidy(self) -> None:
        """Remove claims, rows and temporary files that killed processes have left, when all parts are finished."""
        with self._writing():
            for entry in self.folder.entries():
                if entry.endswith(ROWS):
                    self.folder.remove_folder(entry)
                elif is_claim(Path(entry)) or is_temporary(entry):
                    self.folder.remove(entry)

    def _make(self, name: str, make: "Callable[[], xr.Dataset] | AbstractWork") -> None:
        import xarray as xr

        made = self._carried_out(name, make) if isinstance(make, AbstractWork) else make()
        raise_if_interrupted()
        if not isinstance(made, xr.Dataset):
            raise InvalidInput(f"the part {name!r} is a {type(made).__name__}; make an xarray Dataset.")
        content = pack(made, name, self.settings)
        with self._writing():
            self.folder.make()
            self.folder.write(_file(name), content)

    def along(self, items: "Iterable[T]") -> "Iterator[T]":
        """The items one after the other, each an equal share of the work; `progress` takes the share of an item."""
        (begin, end), every = self.window, list(items)
        for k, item in enumerate(every):
            share = (end - begin) / len(every)
            self.window = begin + k * share, begin + (k + 1) * share
            yield item
        self.window = begin, end

    def parts(self, makers: Mapping[str, Maker]) -> "dict[str, xr.Dataset]":
        """One part after the other, by name: (function, *arguments), a function without arguments, or work.

        Progress is said by name, and every part counts as the same share of the whole. Parts that another process is
        making (`assist`) are left to it, and waited for at the end.
        """
        calls: dict[str, Any] = {
            name: functools.partial(maker[0], *maker[1:]) if isinstance(maker, tuple) else maker
            for name, maker in makers.items()
        }
        for name in self.along(calls):
            self._ask(name)
            self.progress(name, 0.0)
            self._made(name, calls[name])
        self.asked -= calls.keys()
        return {name: self.part(name, make) for name, make in calls.items()}  # waits for what others are making

    def refined(self, name: str, work: Solve, order: int = 4) -> "xr.Dataset":
        """`work` with the steps h of its method `Fixed(h)`, and with h/2: the finer values and their errors.

        Beside every variable v stands `v_error`, |v(h) - v(h/2)|/(2^order - 1), the first term of the error of v by
        Richardson's extrapolation; rounding is not in it. Both flows are parts of their own, which stream their rows
        to disk and resume. `order` is the order of the method that the claims rely on, 4 for the default rule.
        """
        method: Any = instance("method", work.method, Fixed, "Fixed(step), whose step is halved")
        finer = dataclasses.replace(work, method=dataclasses.replace(method, step=method.step / 2))
        both: dict[str, Maker] = {f"{name}-coarse": work, f"{name}-fine": finer}
        coarse, fine = self.parts(both).values()
        numbers = [key for key, variable in fine.data_vars.items() if variable.dtype.kind == "f"]
        return fine.assign({f"{key}_error": abs(fine[key] - coarse[key]) / (2**order - 1) for key in numbers})

    def _carried_out(self, name: str, work: AbstractWork) -> "xr.Dataset":
        """The dataset of work that streams its rows into a folder of its own beside the parts."""
        with self._writing():
            self.folder.make(_rows(name))
            rows = self.folder.inside(_rows(name))
            if self.settings and not rows.entries():
                rows.write(SETTINGS, self.settings.encode())
        if self.settings and rows.is_file(SETTINGS) and rows.read(SETTINGS, 1000) != self.settings.encode():
            raise RunCorrupted(f"{str(rows.where())!r} was made with other settings; remove it and resume the run.")

        def say(progress: Progress) -> None:
            share = min(progress.time / progress.until, 1.0) if np.isfinite(progress.until) else 0.0
            self.progress(f"{name}: {progress.note or f'{share:.0%}'}", share)

        sink = ZarrSink(rows)
        result = Drive(work.checked()).run(Control(sink, say, check=True))
        raise_if_interrupted()
        if not result.outcome.complete:
            raise KeyboardInterrupt
        found: xr.Dataset = result.dataset.load()
        return found

    def progress(self, text: str, share: float) -> None:
        """Say what is being done and which share of the whole, or of the current part, is done; call it often.

        After Ctrl-C `solve` ends its flow early. This method, and the end of a part, then raise KeyboardInterrupt, so
        that nothing incomplete is stored.
        """
        raise_if_interrupted()
        begin, end = self.window
        self.share = begin + (end - begin) * min(max(float(share), 0.0), 1.0)
        if self.on_progress is not None:
            elapsed = time.perf_counter() - self.began
            left = elapsed * (1 / self.share - 1) if self.share > 0 else float("nan")
            count = len(self.asked)
            self.on_progress(Progress(self.share, 1.0, count, count, 0, elapsed, 0.0, left, text))


def _file(name: str) -> str:
    return name + ENDING


def _rows(name: str) -> str:
    return f"{name}{ROWS}"
