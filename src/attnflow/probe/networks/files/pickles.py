"""Pickles of torch, interpreted by a stack machine that knows tensors and tables of them, and nothing else.

Python's own reader of pickles calls what a file names, and takes memory for lengths that a file only claims. Here no
name is ever looked up: `torch._utils._rebuild_tensor_v2`, `torch._utils._rebuild_parameter`, `collections.OrderedDict`
and the storages of torch are words of the machine, and every other word or operation is refused by its name.
"""

import io
import pickletools
from typing import Any, NamedTuple

STORAGES = {
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
}
"""Storages of torch, and the numbers in them."""
TABLE, TENSOR, PARAMETER = (
    "collections.OrderedDict",
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_parameter",
)
WORDS = {TABLE, TENSOR, PARAMETER, *(f"torch.{name}" for name in STORAGES)}
LARGEST_PICKLE = 1 << 20
"""Bytes; a tensor takes about 250 of them. Objects of Python take at most 200 times what describes them."""


class Refused(Exception):
    """A pickle asks for something that no file of weights needs."""


class Word(NamedTuple):
    """A name that a pickle imports."""

    name: str


class Storage(NamedTuple):
    """A piece of memory that tensors lie in."""

    dtype: str
    key: str
    length: int


class TensorAt(NamedTuple):
    """A contiguous tensor in a storage."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]


def read_pickle(stream: io.BytesIO) -> Any:
    """The value of the next pickle of a stream, which then stands after it."""
    machine = _Machine()
    for operation, argument, _ in pickletools.genops(stream):
        if operation.name == "STOP":
            return machine.stack.pop()
        machine.do(operation.name, argument)
    raise Refused("a pickle without an end")


_VALUES = {"BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE"}
_CONSTANTS = {"NEWTRUE": True, "NEWFALSE": False, "NONE": None}
_EMPTY = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}


class _Machine:
    """The stack, the marks in it, and what was put aside."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def do(self, name: str, argument: Any) -> None:
        """One operation."""
        stack = self.stack
        if name in _VALUES:
            stack.append(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _EMPTY:
            stack.append(_EMPTY[name]())
        elif name == "MARK":
            self.marks.append(len(stack))
        elif name in ("BINPUT", "LONG_BINPUT", "MEMOIZE"):
            self.memo[len(self.memo) if argument is None else argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(self.memo[argument])
        elif name in ("TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"):
            stack.append(tuple(self.since_mark() if name == "TUPLE" else self.last(int(name[-1]))))
        elif name in ("APPEND", "APPENDS"):
            items = self.last(1) if name == "APPEND" else self.since_mark()
            _as(list, stack[-1]).extend(items)
        elif name in ("SETITEM", "SETITEMS"):
            items = self.last(2) if name == "SETITEM" else self.since_mark()
            for key, value in zip(items[::2], items[1::2], strict=True):
                _as(dict, stack[-1])[_as((str, int), key)] = value  # a tuple as key could nest without end
        elif name in ("GLOBAL", "STACK_GLOBAL"):
            module, word = argument.split(" ", 1) if name == "GLOBAL" else self.last(2)
            stack.append(_word(f"{module}.{word}"))
        elif name == "REDUCE":
            word, arguments = self.last(2)
            stack.append(_call(_as(Word, word).name, _as(tuple, arguments)))
        elif name == "BINPERSID":
            stack.append(_storage(_as(tuple, stack.pop())))
        elif name == "BUILD":
            stack.pop()  # attributes of a table, such as its `_metadata`
            _as(dict, stack[-1])
        elif name not in ("PROTO", "FRAME"):
            raise Refused(f"the operation {name}")

    def since_mark(self) -> list[Any]:
        """What was put on the stack since the last mark."""
        at = self.marks.pop()
        found = self.stack[at:]
        del self.stack[at:]
        return found

    def last(self, count: int) -> list[Any]:
        """The last values of the stack."""
        if len(self.stack) < count:
            raise Refused("an operation without its values")
        found = self.stack[-count:]
        del self.stack[-count:]
        return found


def _as(kind: Any, value: Any) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise Refused(f"a {type(value).__name__} in the place of another thing")
    return value


def _word(name: str) -> Word:
    if name not in WORDS:
        raise Refused(name[:80])
    return Word(name)


def _call(name: str, arguments: tuple[Any, ...]) -> Any:
    if name == TABLE and not arguments:
        return {}
    if name == PARAMETER:
        return _as(TensorAt, arguments[0])
    if name == TENSOR:
        storage, offset, shape, strides = arguments[:4]
        storage, offset = _as(Storage, storage), _as(int, offset)
        shape = tuple(_as(int, length) for length in _as(tuple, shape))
        step, size = 1, 1
        for length, stride in zip(reversed(shape), reversed(_as(tuple, strides)), strict=True):
            if length < 0 or (length > 1 and stride != step):
                raise Refused("a tensor with gaps or repetitions")
            step, size = step * max(length, 1), size * length
        if not 0 <= offset <= storage.length - size:
            raise Refused("a tensor that ends after its storage")
        return TensorAt(storage, offset, shape)
    raise Refused(f"a call of {name}")


def _storage(found: tuple[Any, ...]) -> Storage:
    label, kind, key, _, count, *view = found
    if label != "storage" or (view and view[0] is not None):
        raise Refused("a storage that is a part of another one")
    name = _as(Word, kind).name.removeprefix("torch.")
    if name not in STORAGES or _as(int, count) < 0:
        raise Refused(f"the storage {name}")
    return Storage(STORAGES[name], _as(str, key), count)
