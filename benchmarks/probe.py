"""What a comparison of a trained decoder costs: all measures of 256 tokens of SmolLM2, and of one null.

    python benchmarks/probe.py                 smollm2, after `attnflow probe fetch smollm2`
    python benchmarks/probe.py rxnmapper 64    another network, fewer tokens

Goal: under a minute on two cores and at most 1.5 GB. CPU seconds and the ratio of the whole to the two forward passes
do not depend on what else the machine does; wall time does.
"""

import json
import sys
import time

import attnflow as af
from attnflow.experiments import kit
from attnflow.probe.measurement import FAMILIES
from attnflow.runs.lifecycle import peak_memory

name, tokens = (sys.argv[1] if len(sys.argv) > 1 else "smollm2"), int(sys.argv[2]) if len(sys.argv) > 2 else 256


def spent(begin: tuple[float, float]) -> dict[str, float]:
    """Wall and CPU seconds since `begin`."""
    return {"wall_s": round(time.perf_counter() - begin[0], 1), "cpu_s": round(time.process_time() - begin[1], 1)}


begin = time.perf_counter(), time.process_time()
net = af.probe.network(name)
opened = spent(begin)
pool = kit.reactions(60) if name == "rxnmapper" else kit.passages(50)
ids = net.encode((">>" if name == "rxnmapper" else " ").join(pool))[:tokens]
middle = time.perf_counter(), time.process_time()
for one in (net, net.null("permuted", 1)):
    one.run(ids)
passes = spent(middle)
last = time.perf_counter(), time.process_time()
found = af.probe.compare(net, [ids], nulls="permuted", shuffles=0, families=FAMILIES, longest=tokens)
compared = spent(last)
ratio = round(compared["cpu_s"] / max(passes["cpu_s"], 0.1), 1)
print(
    json.dumps(
        {
            "network": name,
            "tokens": len(ids),
            "cases": found.cases,
            "open": opened,
            "two forward passes, compiled here": passes,
            "compare": compared,
            "compare over passes, CPU": ratio,
            "peak_MiB": round(peak_memory() / 2**20),
        },
        indent=2,
    )
)
