"""Files of weights, read without running code in them: one refusal in one sentence for whatever is wrong with a file.

A reader looks at the header first, within limits, and gives one tensor at a time; what a file says about itself is
checked against its size before anything is made for it. So a file takes no more memory than its size and 256 MB, and
whoever asks for all tensors takes what they hold as float32.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from attnflow.errors import AttnflowError, InvalidInput
from attnflow.probe.networks.files.base import AbstractWeights
from attnflow.reading import open_file
from attnflow.wording import shown


def open_weights(path: str | os.PathLike[str]) -> AbstractWeights:
    """The tensors of a file; its format is read off its first bytes.

    Raises: `InvalidInput`, in one sentence, for a file that is damaged, hostile or of another format; `MissingExtra`
    where the package that reads the format is not installed.
    """
    file = Path(path)
    if not file.is_file():  # a pipe would be waited for
        raise InvalidInput(f"cannot read {str(file)!r}, which is no file; give a file of weights.")
    with refusing(file):
        with open_file(file) as stream:
            first = stream.read(8)
        if first[:4] == b"GGUF":
            from attnflow.probe.networks.files.gguf_file import GgufWeights

            return GgufWeights(file)
        if first[:4] == b"PK\x03\x04" or first[:2] == b"\x80\x02":
            from attnflow.probe.networks.files.torch_file import read_torch

            return read_torch(file, zipped=first[:2] == b"PK")
        from attnflow.probe.networks.files.safetensors_file import SafetensorsWeights

        return SafetensorsWeights(file)


@contextlib.contextmanager
def refusing(file: Path) -> Iterator[None]:
    """Turn whatever a reader raises about a file into one sentence."""
    try:
        yield
    except AttnflowError:
        raise
    except BaseException as error:
        if isinstance(error, OSError) and error.strerror:
            raise InvalidInput(f"cannot read {str(file)!r} ({error.strerror}); give a file of weights.") from error
        # a panic of a library in Rust is no Exception
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        what = f"{type(error).__name__}: {shown(str(error))}"
        raise InvalidInput(
            f"{str(file)!r} is damaged or no file of weights ({what}); fetch or save it again."
        ) from error
