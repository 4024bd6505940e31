"""A test suite as the program: `python -m pytest -q pytest_program`; pytest captures what Warp prints.

Truth: builds=1 launches=2
"""

import pytest
import warp as wp


@wp.kernel
def add(x: wp.array(dtype=float), amount: float):
    i = wp.tid()
    x[i] = x[i] + amount


@pytest.mark.parametrize("amount", [1.0, 2.0])
def test_adds(amount):
    x = wp.zeros(4, dtype=float, device="cpu")
    wp.launch(add, dim=4, inputs=[x, amount], device="cpu")  # site: build
    assert x.numpy().tolist() == [amount] * 4
