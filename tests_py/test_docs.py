"""The Python examples of docs/tenancy.md run as they are written."""

import pathlib
import re

import pytest

TEXT = (pathlib.Path(__file__).resolve().parent.parent / "docs" / "tenancy.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def test_there_are_examples():
    assert len(EXAMPLES) == 5


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_example(tiny_model, number):
    exec(compile(EXAMPLES[number], f"docs/tenancy.md, example {number + 1}", "exec"), {"MODEL": tiny_model})
