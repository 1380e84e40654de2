"""The measures against loops that follow their definition word by word."""

import numpy as np
import pytest

from svmem.demo.shares import answered_share, kept_share
from svmem.errors import InvalidInput


@pytest.mark.parametrize("seed", range(5))
def test_shares_follow_their_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    keys = rng.standard_normal((30, 3))
    keys[5] = keys[9]  # an equal pair
    event = rng.random(len(keys)) < 0.3
    kept = np.sort(rng.choice(len(keys), 9, replace=False))
    events = np.flatnonzero(event).tolist()
    nearest = [min(kept.tolist(), key=lambda j: (sum((keys[i] - keys[j]) ** 2), j)) for i in events]
    assert kept_share(event, kept) == sum(i in kept for i in events) / len(events)
    assert answered_share(keys, event, kept) == sum(bool(event[j]) for j in nearest) / len(events)


def test_a_share_of_no_event_hours_is_refused() -> None:
    none = np.zeros(4, bool)
    with pytest.raises(InvalidInput, match="at least one event"):
        kept_share(none, np.array([0]))
    with pytest.raises(InvalidInput, match="at least one event"):
        answered_share(np.zeros((4, 2)), none, np.array([0]))
