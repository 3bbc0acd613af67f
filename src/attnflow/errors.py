"""The ways a request can be refused. Every message names the thing, shows the value and says how to fix it."""

__all__ = [
    "AttnflowError",
    "FetchFailed",
    "FlowFailed",
    "InvalidInput",
    "InvalidSpec",
    "InvalidTokens",
    "MissingExtra",
    "NoSuchItem",
    "NotAccurate",
    "NotFinite",
    "RunCorrupted",
    "RunError",
    "RunExists",
    "RunLocked",
    "TooLarge",
]


def __dir__() -> list[str]:
    return __all__


class AttnflowError(Exception):
    """Base of every error that attnflow raises on purpose."""


class InvalidInput(AttnflowError, ValueError):
    """An argument has a value that cannot mean anything."""


class InvalidTokens(InvalidInput):
    """Positions, masses or places do not describe a measure on the space."""


class NotFinite(InvalidInput):
    """A field has no finite value at these tokens."""


class NotAccurate(InvalidInput):
    """A formula cannot be evaluated to its stated accuracy at these arguments; `formula` is its name once known."""

    def __init__(self, message: str, formula: str = ""):
        super().__init__(message)
        self.formula = formula


class NoSuchItem(InvalidInput, IndexError):
    """There is no frame, member or token of this number."""


class InvalidSpec(InvalidInput):
    """A run specification cannot be understood."""


class TooLarge(InvalidInput):
    """The request would not fit in memory or on disk."""


class FlowFailed(AttnflowError, RuntimeError):
    """Integration could not go on; the partial result is in `trajectory`."""

    def __init__(self, message: str, trajectory: object = None):
        super().__init__(message)
        self.trajectory = trajectory


class RunError(AttnflowError, RuntimeError):
    """A run folder cannot be used as asked."""


class RunExists(RunError):
    """The folder already holds a run."""


class RunLocked(RunError):
    """Another process is writing the run."""


class RunCorrupted(RunError):
    """Files of the run are missing, truncated or altered."""


class FetchFailed(AttnflowError, RuntimeError):
    """The files of a trained network could not be fetched or kept."""


class MissingExtra(AttnflowError, ImportError):
    """An optional package is needed and not installed."""
