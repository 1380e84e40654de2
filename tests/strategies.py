"""Strategies for problems that are hard on purpose: grids, equal keys, near twins, lines, ties, caps near 1/n."""

from math import nextafter

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.oracles import Setting

__all__ = ["caps", "examples", "key_rows", "key_sets", "problems", "settings_for"]

Array = NDArray[np.float64]
FINE = 1e-6  # the kernel of neighbours is 1 - 1e-12 and less: below most ridges
TWIN_STEPS = (0.0, 1e-9, -1e-9, 2e-9, 1e-13, 1e-5)


def examples(count: int) -> int:
    """Return how many examples a test draws: `count` in CI, in proportion more under another profile."""
    profile = settings.default
    assert profile is not None
    return max(1, count * profile.max_examples // 100)


@st.composite
def key_rows(draw: st.DrawFn, d: int) -> list[float]:
    """Draw one key: a grid point, now and then with a tiny or a plain displacement."""
    row = [float(draw(st.integers(-2, 2))) for _ in range(d)]
    kind = draw(st.sampled_from(["grid", "grid", "twin", "half", "fine", "free", "far"]))
    if kind == "twin":
        row[0] += draw(st.sampled_from(TWIN_STEPS))
    elif kind == "half":
        row = [x / 2 for x in row]
    elif kind == "fine":
        row = [x * FINE for x in row]
    elif kind == "free":
        row = [draw(st.floats(-3, 3, allow_subnormal=True)) for _ in row]
    elif kind == "far":
        row[0] += draw(st.sampled_from([1e3, -1e8, 1e200]))
    return row


@st.composite
def key_sets(draw: st.DrawFn, least: int = 1, most: int = 8, d: int | None = None) -> Array:
    """Draw (n, d) keys of one kind: mixed, a small grid with repeats, or points of a line."""
    n = draw(st.integers(least, most))
    d = draw(st.integers(1, 3)) if d is None else d
    kind = draw(st.sampled_from(["mixed", "grid", "fine", "line"]))
    if kind == "mixed":
        return np.array([draw(key_rows(d)) for _ in range(n)])
    if kind in ("grid", "fine"):
        side = draw(st.integers(1, 5))
        return (FINE if kind == "fine" else 1.0) * np.array(
            [[float(draw(st.integers(0, side))) for _ in range(d)] for _ in range(n)]
        )
    direction = np.array([draw(st.sampled_from([0.0, 1.0, 0.5, -2.0, 0.1])) for _ in range(d)])
    places = np.array([float(draw(st.integers(0, 12))) for _ in range(n)])
    return places[:, None] * direction


@st.composite
def caps(draw: st.DrawFn, n: int) -> float:
    """Draw a cap for about n keys, often one at which something just fits or just fails to."""
    k = draw(st.integers(1, n + 2))
    exact = 1.0 / k
    near = [
        exact,
        nextafter(exact, 0),
        min(1.0, nextafter(exact, 1)),
        exact * (1 - 1e-12),
        min(1.0, exact * (1 + 1e-12)),
    ]
    loose = [min(1.0, 1 / (k - 0.5)), 0.4, 0.3, 1.0, draw(st.floats(0.1, 1.0))]
    return draw(st.sampled_from([*near, *loose]))


@st.composite
def settings_for(draw: st.DrawFn, n: int, kernels: tuple[str, ...] = ("rbf", "rbf", "laplacian")) -> Setting:
    """Draw kernel, cap and ridge for about n keys."""
    return Setting(
        C=draw(caps(n)),
        kernel=draw(st.sampled_from(kernels)),
        sigma=draw(st.sampled_from([1.0, 2.0, 0.5, 5.0, 100.0])),
        ridge=draw(st.sampled_from([1e-8, 1e-6, 1e-2, 1e-10, 1e-12])),
    )


@st.composite
def problems(draw: st.DrawFn, least: int = 1, most: int = 8) -> tuple[Array, Setting]:
    """Draw keys and a setting for them."""
    keys = draw(key_sets(least, most))
    return keys, draw(settings_for(len(keys)))
