"""What an experiment computes with: parts that are kept on disk, and a way to say how far it is."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from attnflow.errors import InvalidInput
from attnflow.experiments.parts import open_part, pack
from attnflow.interrupts import raise_if_interrupted
from attnflow.runs.files import write_atomically, writing

if TYPE_CHECKING:
    import xarray as xr

OnProgress = Callable[[str, float], None]


class Study:
    """What `run(parameters, study)` of an experiment computes with: results that are kept part by part.

    ```python
    def run(parameters: Parameters, study: af.experiments.Study) -> xr.Dataset:
        def make() -> xr.Dataset:
            study.progress("following the tokens", 0.0)
            flow = af.solve(af.Attention(parameters.beta), af.uniform(af.Sphere(3), n=64), 10.0)
            return xr.Dataset({"energy": flow.energy})

        return study.part("flow", make)
    ```

    A part that is finished lies in `folder` as an .npz file. When the study is resumed, after Ctrl-C or a crash, it is
    loaded and not made again. `attnflow reproduce` makes the Study; to try `run` in Python, give it `Study("parts")`.

    Arguments:
        folder: where the parts lie; made when the first one is finished.
        on_progress: called with a text and the share that is done.
    """

    def __init__(self, folder: str | Path, on_progress: OnProgress | None = None):
        self.folder = Path(folder)
        self.on_progress = on_progress
        self.asked: set[str] = set()

    def part(self, name: str, make: "Callable[[], xr.Dataset]") -> "xr.Dataset":
        """The part `name`: loaded if it is there, else made, stored in one atomic step, and loaded.

        Either way the caller gets what is on disk, so a resumed study goes on from the same bits.
        """
        import xarray as xr

        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
            raise InvalidInput(f"a part is called {name!r}; it becomes a file, so use letters, digits, '-', '_', '.'.")
        if name in self.asked:
            raise InvalidInput(f"the part {name!r} is asked for twice; give each part a name of its own.")
        self.asked.add(name)
        path = self.folder / f"{name}.npz"
        if not path.exists():
            made = make()
            raise_if_interrupted()
            if not isinstance(made, xr.Dataset):
                raise InvalidInput(f"the part {name!r} is a {type(made).__name__}; make an xarray Dataset.")
            content = pack(made)
            with writing(self.folder.parent):
                self.folder.mkdir(parents=True, exist_ok=True)
                write_atomically(path, content)
        return open_part(path)

    def progress(self, text: str, share: float) -> None:
        """Say what is being done and which share of the whole is done; call it often.

        After Ctrl-C `solve` ends its flow early. This method, and the end of a part, then raise KeyboardInterrupt, so
        that nothing incomplete is stored.
        """
        raise_if_interrupted()
        if self.on_progress is not None:
            self.on_progress(text, min(max(float(share), 0.0), 1.0))
