"""Files of weights, whole, hostile and mutated, and a process that reads them within a limit of memory.

`python -m tests.probe.hostile FOLDER` reads every file of a folder as `network` would and prints one line of JSON a file:
its name, "read" or the sentence of the refusal, or the traceback of anything else. For each file the process may take the
size of the file and 256 MB; events that run foreign code are reported.
"""

import io
import json
import pickle
import random
import resource
import struct
import sys
import traceback
import zipfile
from pathlib import Path

import numpy as np

from attnflow.probe.networks.files import open_weights

SPARE, MEMORY = 256 << 20, Path("/proc/self/statm")
FORBIDDEN = (
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "subprocess.Popen",
    "exec",
    "compile",
    "pickle.find_class",
    "socket.connect",
)
"""Events of `sys.addaudithook` that reading weights never causes."""

# -- torch -------------------------------------------------------------------------------------------------------------


def word(name):
    module, _, last = name.rpartition(".")
    return b"c" + module.encode() + b"\n" + last.encode() + b"\n"


def text(value):
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()


def integer(value):
    return b"\x8a\x0a" + value.to_bytes(10, "little", signed=True)


def numbers(values):
    return b"(" + b"".join(map(integer, values)) + b"t"


def storage(key, count, kind="FloatStorage", legacy=False):
    return (
        b"("
        + text("storage")
        + word(f"torch.{kind}")
        + text(key)
        + text("cpu")
        + integer(count)
        + (b"N" if legacy else b"")
        + b"tQ"
    )


def tensor(key, count, shape, strides=None, offset=0, **options):
    steps = [int(np.prod(shape[k + 1 :])) for k in range(len(shape))] if strides is None else strides
    hooks = word("collections.OrderedDict") + b")R"
    return (
        word("torch._utils._rebuild_tensor_v2")
        + b"("
        + storage(key, count, **options)
        + integer(offset)
        + numbers(shape)
        + numbers(steps)
        + b"\x89"
        + hooks
        + b"tR"
    )


def table(entries):
    """A pickle of an OrderedDict of tensors, with the `_metadata` that torch adds."""
    items = b"".join(text(name) + value for name, value in entries.items())
    return b"\x80\x02" + word("collections.OrderedDict") + b")Rq\x00(" + items + b"u}" + text("_metadata") + b"}sb."


def torch_zip(content, storages, compressed=False, byteorder=b"little"):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED) as archive:
        archive.writestr("net/data.pkl", content)
        archive.writestr("net/byteorder", byteorder)
        for key, values in storages.items():
            archive.writestr(f"net/data/{key}", np.asarray(values, np.float32).tobytes())
    return out.getvalue()


def torch_legacy(content, storages):
    system = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}
    start = [0x1950A86A20F9469CFC6C, 1001, system]
    parts = [*(pickle.dumps(one, 2) for one in start), content, pickle.dumps(list(storages), 2)]
    arrays = [
        struct.pack("<q", np.size(values)) + np.asarray(values, np.float32).tobytes() for values in storages.values()
    ]
    return b"".join([*parts, *arrays])


def torch_file(arrays, legacy=False):
    """The arrays as torch would save them."""
    entries = {name: tensor(str(k), a.size, a.shape, legacy=legacy) for k, (name, a) in enumerate(arrays.items())}
    storages = {str(k): a for k, a in enumerate(arrays.values())}
    return (torch_legacy if legacy else torch_zip)(table(entries), storages)


# -- GGUF and safetensors ----------------------------------------------------------------------------------------------


def gguf_string(value):
    value = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(value)) + value


def gguf_header(tensors=0, keys=0, version=3):
    return b"GGUF" + struct.pack("<IQQ", version, tensors, keys)


def gguf_tensor(name, shape, kind=0, offset=0):
    return (
        gguf_string(name)
        + struct.pack("<I", len(shape))
        + struct.pack(f"<{len(shape)}Q", *shape)
        + struct.pack("<IQ", kind, offset)
    )


def gguf_file(facts, arrays):
    """Keys (integers, floats, texts, lists of texts) and arrays, which are (numbers, quantised type) or float32."""
    from gguf import GGMLQuantizationType as Kind
    from gguf.quants import quantize

    out = gguf_header(len(arrays), len(facts))
    forms = {bool: (7, "<?"), int: (4, "<I"), float: (6, "<f")}
    for key, value in facts.items():
        out += gguf_string(key)
        if isinstance(value, str):
            out += struct.pack("<I", 8) + gguf_string(value)
        elif isinstance(value, list):
            of_text = isinstance(value[0], str)
            out += struct.pack("<IIQ", 9, 8 if of_text else 5, len(value))
            out += b"".join(gguf_string(one) if of_text else struct.pack("<i", one) for one in value)
        else:
            number, form = forms[type(value)]
            out += struct.pack("<I", number) + struct.pack(form, value)
    data = b""
    for name, given in arrays.items():
        values, kind = given if isinstance(given, tuple) else (given, Kind.F32)
        out += gguf_tensor(name, values.shape[::-1], int(kind), len(data))
        data += quantize(values, kind).tobytes()
        data += bytes(-len(data) % 32)
    return out + bytes(-len(out) % 32) + data


def safetensors_file(header, data=b"", length=None):
    body = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(body) if length is None else length) + body + data


def entry(shape=(2,), offsets=(0, 8), dtype="F32"):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


# -- hostile files -----------------------------------------------------------------------------------------------------

LARGE, HUGE = 1 << 40, 1 << 63
SYSTEM = word("posix.system") + b"(" + text("touch HACKED") + b"tR"
ONE = {"0": np.zeros(4)}


def hostile():
    """name -> bytes; each is refused in one sentence."""
    key = gguf_string("general.name")
    found = {
        "empty": b"",
        "one byte": b"G",
        "text": b"these are no weights, whatever the name of the file says",
        "gguf magic": b"GGUF",
        "gguf version": gguf_header(version=99),
        "gguf byte order": b"GGUF" + struct.pack(">IQQ", 3, 0, 0),
        "gguf keys": gguf_header(keys=LARGE),
        "gguf tensors": gguf_header(tensors=LARGE),
        "gguf string": gguf_header(keys=1) + struct.pack("<Q", LARGE) + b"a",
        "gguf array": gguf_header(keys=1) + key + struct.pack("<IIQ", 9, 4, LARGE),
        "gguf nested arrays": gguf_header(keys=1) + key + struct.pack("<I", 9) + 3000 * struct.pack("<IQ", 9, 1),
        "gguf bytes": gguf_header(keys=1) + key + struct.pack("<IIQ", 9, 0, 10 << 20) + bytes(10 << 20),
        "gguf strings": gguf_header(keys=1) + key + struct.pack("<IIQ", 9, 8, 1 << 19) + bytes(8 << 19) + b"cut",
        "gguf long text": gguf_header(keys=1) + key + struct.pack("<IQ", 8, 40 << 20) + bytes(40 << 20),
        "gguf no text": gguf_header(keys=1) + struct.pack("<Q", 2) + b"\xff\xfe" + struct.pack("<II", 4, 1),
        "gguf elements": gguf_header(tensors=1) + gguf_tensor("a", [1 << 20] * 4),
        "gguf axes": gguf_header(tensors=1) + gguf_string("a") + struct.pack("<I", 1 << 30),
        "gguf type": gguf_header(tensors=1) + gguf_tensor("a", [32], kind=999) + bytes(256),
        "gguf block": gguf_header(tensors=1) + gguf_tensor("a", [31], kind=8) + bytes(256),
        "gguf offset": gguf_header(tensors=1) + gguf_tensor("a", [32], offset=HUGE) + bytes(256),
        "gguf twice": gguf_header(tensors=2) + 2 * gguf_tensor("a", [8]) + bytes(256),
        "gguf overlap": gguf_header(tensors=8) + b"".join(gguf_tensor(c, [64]) for c in "abcdefgh") + bytes(600),
        "gguf alignment": gguf_header(keys=1) + gguf_string("general.alignment") + struct.pack("<II", 4, 0) + bytes(64),
        "safetensors length": struct.pack("<Q", HUGE) + b"{}",
        "safetensors 20 MB": safetensors_file(b'{"a":' + b" " * (20 << 20) + b"1}"),
        "safetensors no JSON": safetensors_file(b"{" * 500),
        "safetensors nested": safetensors_file(b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
        "safetensors list": safetensors_file([1, 2]),
        "safetensors gap": safetensors_file({"a": entry(), "b": entry(offsets=(16, 24))}, bytes(24)),
        "safetensors overlap": safetensors_file({"a": entry(), "b": entry(offsets=(4, 12))}, bytes(12)),
        "safetensors beyond": safetensors_file({"a": entry(offsets=(0, LARGE), shape=(LARGE // 4,))}, bytes(8)),
        "safetensors backwards": safetensors_file({"a": entry(offsets=(8, 0))}, bytes(8)),
        "safetensors elements": safetensors_file({"a": entry(shape=[1 << 20] * 4)}, bytes(8)),
        "safetensors negative": safetensors_file({"a": entry(shape=[-2, -1])}, bytes(8)),
        "safetensors dtype": safetensors_file({"a": entry(dtype="F1024")}, bytes(8)),
        "safetensors rest": safetensors_file({"a": entry()}, bytes(80)),
        "safetensors names": safetensors_file({f"{k}": entry((0,), (0, 0)) for k in range(70_000)}),
        "safetensors long name": safetensors_file({"a" * 2_000_000: entry()}, bytes(8)),
    }
    pickles = {
        "system": table({"a": SYSTEM}),
        "eval": b"\x80\x04" + text("builtins") + text("eval") + b"\x93(" + text("open('HACKED','w')") + b"tR.",
        "import": b"\x80\x02(ios\nsystem\n" + text("touch HACKED") + b"tR.",
        "instance": b"\x80\x02(" + text("touch HACKED") + b"ios\nsystem\n.",
        "state": table({"a": word("torch.FloatStorage")}) + b"",
        "call": table({"a": word("collections.OrderedDict") + b"(" + text("a") + b"tR"}),
        "gaps": table({"a": tensor("0", 4, [1 << 40], [0])}),
        "repetitions": table({"a": tensor("0", 4, [1 << 20, 4], [0, 1])}),
        "beyond": table({"a": tensor("0", 4, [4], offset=2)}),
        "before": table({"a": tensor("0", 4, [4], offset=-2)}),
        "negative": table({"a": tensor("0", 4, [-4, -1], [1, 1])}),
        "count": table({"a": tensor("0", LARGE, [1 << 40])}),
        "no storage": table({"a": tensor("7", 4, [4])}),
        "stranger": table({"a": tensor("0", 4, [4], kind="UntypedStorage")}),
        "keys": b"\x80\x02}" + b")" + b"\x85" * 200_000 + b"Ns.",
        "lists": b"\x80\x02" + b"]" * 200_000 + b".",
        "memo": b"\x80\x02]r" + struct.pack("<I", 2**32 - 1) + b".",
        "long bytes": b"\x80\x04\x8e" + struct.pack("<Q", LARGE) + b"a.",
        "long integer": b"\x80\x02\x8b" + struct.pack("<i", 2**31 - 1) + b"a.",
        "marks": b"\x80\x02" + b"(" * 100_000 + b"t" * 100_000 + b".",
        "empty stack": b"\x80\x02u.",
        "no end": b"\x80\x02}",
        "a number": b"\x80\x02K\x07.",
        "a list": b"\x80\x02]K\x07a.",
    }
    for name, content in pickles.items():
        found[f"torch zip {name}"] = torch_zip(content, ONE)
        found[f"torch legacy {name}"] = torch_legacy(content, ONE)
    whole = torch_zip(table({"a": tensor("0", 4, [4])}), ONE)
    found |= {
        "torch pickle": b"\x80\x02" + SYSTEM + b".",
        "torch compressed": torch_zip(
            table({"a": tensor("0", 1 << 22, [1 << 22])}), {"0": np.zeros(1 << 22)}, compressed=True
        ),
        "torch bomb": torch_zip(b"\x80\x02" + bytes(20 << 20), ONE, compressed=True),
        "torch byte order": torch_zip(table({}), {}, byteorder=b"bigger"),
        "torch directory": whole[:-10] + struct.pack("<IIH", 2**31, 0, 0),
        "torch no directory": whole[:-22] + bytes(22),
        "torch cut": whole[: len(whole) // 2],
        "torch legacy cut": torch_legacy(table({"a": tensor("0", 4, [4], legacy=True)}), ONE)[:-3],
    }
    return found


# -- mutated files -----------------------------------------------------------------------------------------------------

EXTREMES = [0, 1, 2, 7, 127, 128, 255, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, LARGE, HUGE - 1, HUGE, 2**64 - 1]


def mutant(rng, content, header):
    """`content` with one to three changes in its first `header` bytes or, for zip files, in its last ones."""
    out = bytearray(content)
    for _ in range(rng.randint(1, 3)):
        if not out:
            break
        zipped = content[:2] == b"PK" and rng.random() < 0.5
        at = len(out) - 1 - rng.randrange(min(300, len(out))) if zipped else rng.randrange(min(header, len(out)))
        width = rng.choice((1, 2, 4, 8))
        match rng.randrange(7):
            case 0:
                out[at] ^= 1 << rng.randrange(8)
            case 1:
                out[at : at + width] = (rng.choice(EXTREMES) % (1 << 8 * width)).to_bytes(width, "little")
            case 2:
                out[at : at + rng.randrange(1, 40)] = b""
            case 3:
                out[at:at] = out[at : at + rng.randrange(1, 40)]
            case 4:
                out[at:at] = rng.randbytes(rng.randrange(1, 16))
            case 5:
                digits = [k for k in range(min(header, len(out))) if chr(out[k]).isdigit()]
                if digits:
                    where = rng.choice(digits)
                    out[where : where + 1] = rng.choice(
                        (b"0", b"9", b"-1", b"1e9", b"99999999999", b"184467440737095516159")
                    )
            case 6:
                if rng.random() < 0.2:
                    del out[at:]
    return bytes(out)


def mutants(wholes, seed, count):
    """`count` mutated files: (name, bytes); `wholes` are name -> bytes of files that can be read."""
    rng = random.Random(seed)
    names = sorted(wholes)
    for number in range(count):
        name = names[number % len(names)]
        content = wholes[name]
        header = {"PK": 1500}.get(content[:2].decode("latin"), 4000)
        yield f"{number:06d}-{name}", mutant(rng, content, header)


# -- the process that reads them ---------------------------------------------------------------------------------------


def main():
    from attnflow.errors import AttnflowError
    from attnflow.probe.networks import network

    folder = Path(sys.argv[1])
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != "config.json")
    for form in ("gguf", "safetensors", "torch"):  # libraries are imported before events count and memory is limited
        whole = folder / f"whole-{form}"
        if whole.exists():
            weights = open_weights(whole)
            for name in weights.stored:
                weights.array(name)
    events, libraries = [], (sys.base_prefix, sys.prefix, "<frozen")

    def hook(event, arguments):
        """Note what runs code, except for modules of libraries that are imported when they are first needed."""
        if event in FORBIDDEN and not (event == "exec" and arguments[0].co_filename.startswith(libraries)):
            events.append(event)

    sys.addaudithook(hook)
    for path in files:
        events.clear()
        if MEMORY.exists():  # Linux
            used = int(MEMORY.read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + path.stat().st_size + SPARE, resource.RLIM_INFINITY))
        try:
            weights = open_weights(path)
            for name in weights.stored:
                weights.array(name)
            network(path)
            said = "read"
        except AttnflowError as error:
            said = str(error)
        except BaseException:
            said = traceback.format_exc()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(json.dumps({"file": path.name, "said": said, "events": sorted(set(events)), "peak_mb": peak}), flush=True)


if __name__ == "__main__":
    main()
