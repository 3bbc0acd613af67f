"""Every public name of the room explains itself: its docstring has an example, and the example runs."""

import contextlib
import re
import textwrap

import attnflow
from attnflow import certify


def test_examples_of_docstrings_run():
    with contextlib.chdir(attnflow.__path__[0] + "/../.."):
        for name in certify.__all__:
            examples = re.findall(r"```python\n(.*?)```", getattr(certify, name).__doc__, re.DOTALL)
            assert examples, name
            if name == "plateaus":  # seconds, the same call as in test_plateaus.py
                continue
            for code in map(textwrap.dedent, examples):
                exec(code, {"attnflow": attnflow})
                for call, number in re.findall(r"^(attnflow\.\S.*?)  # (\d+)\b(?!\.)", code, re.MULTILINE):
                    assert eval(call, {"attnflow": attnflow}) == int(number), name
