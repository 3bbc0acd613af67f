"""Do our forward passes agree with those of transformers? Ten minutes, 1.2 GB of packages; part of `make long`.

    python campaigns/oracle.py                                     makes an environment with torch and transformers
    python campaigns/oracle.py --python PATH/bin/python --record trial.json              uses the one of this Python

Fetches the networks of the catalogue, runs each on two texts here and in transformers (eager attention), in float32 and
in float64, and compares every layer: the stream before it and between its halves, and the attention weights. The error
of a layer is the largest over tokens of |x - y|/|y|, so that a token with a huge norm cannot cover the others. The
record keeps the first coordinates of the states of transformers, to which tests compare ours without it. Files that
torch itself saves are read back too, and the adapters of the probe are tried on transformers, TransformerLens and
nnsight themselves (`_adapters.py`; `--adapters` tries them alone and keeps the rest of the newest record). Exit code 1
where an error passes 1e-5.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import _record

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("torch==2.13.0", "transformers==5.23.0", "accelerate", "gguf", "safetensors")
ADAPTED = ("transformer_lens==4.3.0", "nnsight==0.8.1")
"""Installed without what they require, most of which their import does not need; `NEEDED` is what it does."""
NEEDED = ("einops", "jaxtyping", "beartype", "datasets", "greenlet")
LIMIT = 1e-5
PROSE = (
    "The lamp on the pier goes out at six, and the first boat leaves before the fog has lifted. Nobody on board says "
    "much. A boy counts gulls, 1, 2, 3, up to 41, and writes the number on the back of a ticket, since a teacher asked "
    "for a number that nobody else would have. The boat turns where the river meets the sea, and for a while there is "
    "neither river nor sea, only grey water and the sound of the engine. ",
    "To measure how fast tokens collapse, start from random ones, run the network, and print the mean overlap after "
    "every layer:\n    for k in range(30):\n        print(k, overlap(x[k]))\nIf the numbers rise towards 1, the tokens "
    "have met; if they do not, something holds them apart. Which of the two happens depends on beta, on the width, and "
    "on the biases, as the tables below say. ",
)
REACTIONS = (
    "CC(C)S.CN(C)C=O.Fc1cccnc1F.O=C([O-])[O-].[K+].[K+]>>CC(C)Sc1ncccc1F",
    "C1COCCN1.O=C(Cl)c1ccc(Br)cc1.CCN(CC)CC>>O=C(c1ccc(Br)cc1)N1CCOCC1",
)
LONGEST, KEPT = 256, 2
SAVED = """
import json, sys
import torch

table = torch.nn.Sequential(torch.nn.Linear(5, 3), torch.nn.LayerNorm(3)).state_dict()
table["half"], table["brain"] = torch.arange(6.0).half(), torch.arange(6.0).bfloat16().reshape(2, 3)
table["tied"], table["row"] = table["0.weight"], table["0.weight"][1]
table["parameter"], table["none"] = torch.nn.Parameter(torch.ones(2)), torch.zeros(0, 3)
for name, zipped in (("zip", True), ("legacy", False)):
    torch.save(table, f"{sys.argv[1]}/{name}.bin", _use_new_zipfile_serialization=zipped)
lists = {name: values.detach().float().numpy().tolist() for name, values in table.items()}
json.dump(lists, open(f"{sys.argv[1]}/numbers.json", "w"))
"""
REFERENCE = """
import json, sys
import numpy as np, torch
from transformers import AlbertModel, BertModel, LlamaForCausalLM

folder, out, kind, dtype = sys.argv[1:5]
ids = json.loads(sys.argv[5])
torch.set_num_threads(2)
how = dict(attn_implementation="eager", dtype=getattr(torch, dtype))
middle, stream = [], []


def came(module, args, named):
    stream.append(args[0] if args else named["hidden_states"])


if kind == "smollm2":
    model = LlamaForCausalLM.from_pretrained(folder, gguf_file="model.gguf", **how).eval()
    for layer in model.model.layers:
        layer.register_forward_pre_hook(came, with_kwargs=True)
        layer.post_attention_layernorm.register_forward_pre_hook(lambda m, a: middle.append(a[0]))
    model.model.norm.register_forward_pre_hook(lambda m, a: stream.append(a[0]))
elif kind == "minilm":
    model = BertModel.from_pretrained(folder, add_pooling_layer=False, **how).eval()
    for layer in model.encoder.layer:
        layer.attention.register_forward_hook(lambda m, a, o: middle.append(o[0]))
else:
    model = AlbertModel.from_pretrained(folder, add_pooling_layer=False, **how).eval()
    block = model.encoder.albert_layer_groups[0].albert_layers[0]
    block.attention.register_forward_hook(lambda m, a, o: middle.append(o[0]))
with torch.no_grad():
    found = model(torch.tensor([ids]), output_hidden_states=True, output_attentions=True)
stream = stream or found.hidden_states
extra = {"logits": found.logits[0].numpy()} if kind == "smollm2" else {}
np.savez(
    out, hidden=np.stack([x[0].numpy() for x in stream]), middle=np.stack([x[0].numpy() for x in middle]),
    attention=np.stack([x[0].numpy() for x in found.attentions]), **extra,
)
"""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--python", help="a Python that has torch and transformers")
    options.add_argument("--record", type=Path, help="where the record goes")
    options.add_argument("--adapters", action="store_true", help="the adapters alone")
    given = options.parse_args()
    before = sorted((ROOT / "campaigns" / "records").glob("oracle-*.json"))
    path, record = _record.begin(ROOT, "oracle", given.record, packages=[*PACKAGES, *ADAPTED], limit=LIMIT)
    with tempfile.TemporaryDirectory() as folder:
        python = given.python or environment(Path(folder))
        if given.adapters:
            record = json.loads(before[-1].read_text()) | {
                "packages": record["packages"],
                "commit of adapters": record["commit"],
            }
        else:
            record["saved by torch"] = read_back(python, Path(folder))
            record["networks"] = {
                name: compared(name, python, Path(folder)) for name in ("rxnmapper", "minilm", "smollm2")
            }
        record["adapters"] = adapted(python)
    _record.save(record, path)
    print(f"record: {path}")
    worst = max(row["worst"] for one in record["networks"].values() for row in one["texts"])
    worst = max([worst, *(error for one in record["adapters"].values() for error in errors_in(one))])
    sys.exit(0 if worst <= LIMIT else 1)


def adapted(python: str) -> dict[str, Any]:
    """What `_adapters.py` says, and the commit at which it was asked."""
    done = subprocess.run(
        [python, str(ROOT / "campaigns" / "_adapters.py")], check=True, capture_output=True, text=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(json.dumps(found, indent=1), flush=True)
    return found


def errors_in(found: Any) -> list[float]:
    """All numbers of nested tables."""
    if isinstance(found, dict):
        return [error for one in found.values() for error in errors_in(one)]
    return [found] if isinstance(found, float) else []


def environment(folder: Path) -> str:
    """A Python of its own with the packages of the oracle."""
    subprocess.run([sys.executable, "-m", "venv", str(folder / "oracle")], check=True)
    python = str(folder / "oracle" / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet"]
    subprocess.run([*install, *PACKAGES, *NEEDED, f"{ROOT}[probe]"], check=True)
    subprocess.run([*install, "--no-deps", *ADAPTED], check=True)
    return python


def read_back(python: str, folder: Path) -> list[str]:
    """The files that torch saves, read here to the last bit."""
    from attnflow.probe.networks.files import open_weights

    subprocess.run([python, "-c", SAVED, str(folder)], check=True)
    expected = json.loads((folder / "numbers.json").read_text())
    for name in ("zip", "legacy"):
        weights = open_weights(folder / f"{name}.bin")
        found = {key: weights.array(key).tolist() for key in weights.stored}
        if found != expected:
            raise SystemExit(f"the file {name}.bin of torch is read wrongly: {found}")
    return sorted(expected)


def compared(name: str, python: str, folder: Path) -> dict[str, Any]:
    """One network on its texts: errors of every layer, and what the run took."""
    from attnflow.probe import networks

    source, rows = networks.fetch(name), []
    for dtype in ("float32", "float64"):
        network = networks.network(name, dtype=dtype)
        texts = REACTIONS if name == "rxnmapper" else tuple(4 * text for text in PROSE)
        for text in texts:
            row = compared_on(network, network.encode(text)[:LONGEST], source, python, folder / "found.npz")
            print(name, dtype, row["tokens"], "tokens, worst", row["worst"], "attention", row["attention"], flush=True)
            rows.append({"dtype": dtype, **row})
    return {"facts": network.facts, "texts": rows}


def compared_on(network: Any, ids: np.ndarray, source: Path, python: str, out: Path) -> dict[str, Any]:
    """One network on one text."""
    started = time.process_time()
    stream = network.run(ids)
    own, between, weights = stream.hidden[0], stream.after_attention[0], stream.attention[0]
    took = time.process_time() - started
    arguments = [str(source), str(out), network.name, network.dtype.name, json.dumps(ids.tolist())]
    quiet = {**os.environ, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "TQDM_DISABLE": "1"}
    subprocess.run([python, "-c", REFERENCE, *arguments], check=True, env=quiet)
    theirs = np.load(out)
    hidden, middle = errors(own, theirs["hidden"]), errors(between, theirs["middle"])
    row: dict[str, Any] = {
        "tokens": len(ids),
        "seconds": round(took, 2),
        "worst": max(*hidden, *middle),
        "hidden": hidden,
        "after_attention": middle,
        "attention": float(f"{np.abs(weights - theirs['attention']).max():.2g}"),
    }
    if "logits" in theirs:
        last = own[-1].astype(float)
        scaled = last / np.sqrt((last**2).mean(axis=-1, keepdims=True) + network.architecture.eps)
        logits = (scaled * stream.final_gain) @ stream.unembedding.astype(float).T
        row["logits"] = float(f"{np.abs(logits - theirs['logits']).max():.2g}")
    if len(ids) < 100 and network.dtype == np.float32:
        row |= {"ids": ids.tolist(), "states": np.round(theirs["hidden"][..., :KEPT].astype(float), 7).tolist()}
    return row


def errors(ours: np.ndarray, theirs: np.ndarray) -> list[float]:
    """For every layer, the largest relative error of a token."""
    apart = np.linalg.norm(ours.astype(float) - theirs, axis=-1) / np.linalg.norm(theirs.astype(float), axis=-1)
    return [float(f"{x:.2g}") for x in apart.max(axis=-1)]


if __name__ == "__main__":
    main()
