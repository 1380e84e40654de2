"""Tiny products, for which one thread is enough."""

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    """Compute with one thread: on a busy machine several wait for each other at every tiny product."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
