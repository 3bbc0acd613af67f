"""Marks for what a case costs: none for `make test`, `slow` for CI, `long` for `make long`."""

import pytest


def graded(names, values, *, fast=0, slow=None, **options):
    """`pytest.mark.parametrize` with costs: values from index `fast` on are `slow`, from index `slow` on `long`."""
    one_name = isinstance(names, str) and "," not in names

    def marked(value, marks):
        if hasattr(value, "marks"):  # a `pytest.param`
            return pytest.param(*value.values, id=value.id, marks=[*value.marks, *marks])
        return pytest.param(*([value] if one_name else value), marks=marks)

    values = list(values)
    last = len(values) if slow is None else slow
    costs = ([] if at < fast else [pytest.mark.slow] if at < last else [pytest.mark.long] for at in range(len(values)))
    return pytest.mark.parametrize(names, [marked(*pair) for pair in zip(values, costs, strict=True)], **options)
