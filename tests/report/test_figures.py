"""Figures draw what they are given, the same way each time."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from svmem.report.figures import Bar, Panel, counts_figure, deviation_figure, share_figure, stream_figure
from svmem.report.pictures import alpha_figure, gate_figure, main_plane, plane_figure, sizes_figure
from svmem.report.style import SETS, svg

N = 30


def noise(shape: int | tuple[int, int]) -> np.ndarray:
    return np.random.default_rng(6).standard_normal(shape)


SIDES = np.random.default_rng(5).permutation(np.repeat(["margin", "bound", "reserve"], N // 3))
MEMBERS = {name: np.equal(SIDES, name) for name in ("margin", "bound", "reserve")}


def stream() -> Figure:
    columns = {"pulse\n(/min)": noise(N), "pressure\n(mmHg)": -noise(N)}
    event = np.isin(np.arange(N), [3, 4, 5, 20])
    return stream_figure(np.arange(N, dtype=float), columns, MEMBERS, event, time_label="hours", event_label="event")


def shares() -> Figure:
    bars = (Bar("ours", 0.8, 0.7, 0.9, 0.75), Bar("theirs", 0.1, 0.05, 0.2))
    return share_figure([Panel("first", bars), Panel("second", bars[1:])], label="share")


def deviations() -> Figure:
    series = {"ours": np.zeros(9), "decay": np.array([0, 1e-9, 1e-3, *[0.1] * 6])}
    return deviation_figure(series, label="deviation", spans={"published": (1e-9, 1e-2)})


def counts() -> Figure:
    seen = np.arange(1.0, 31.0)
    sets = {"margin": np.minimum(seen, 4), "bound": np.minimum(seen, 9), "reserve": np.maximum(seen - 13, 0)}
    return counts_figure({"one": (seen, sets, 10.0)}, labels=["hours stored"])


def plane() -> Figure:
    points, share = main_plane(noise((N, 3)))
    return plane_figure(points, share, MEMBERS)


FIGURES = {
    "stream": stream,
    "shares": shares,
    "deviations": deviations,
    "counts": counts,
    "plane": plane,
    "sizes": lambda: sizes_figure(MEMBERS),
    "alpha": lambda: alpha_figure(np.linspace(0, 0.1, N), 0.1),
    "gate": lambda: gate_figure(noise(N), MEMBERS),
}
every = pytest.mark.parametrize("name", FIGURES)


@every
def test_every_axis_says_what_it_shows(name: str) -> None:
    figure = FIGURES[name]()
    assert any(ax.get_xlabel() for ax in figure.axes)
    for ax in figure.axes:
        shared = [other for other in figure.axes if other is ax or ax.get_shared_y_axes().joined(ax, other)]
        assert any(other.get_ylabel() or other.get_yticklabels() for other in shared)


@every
def test_a_figure_is_svg_without_address_script_or_date(name: str) -> None:
    text = svg(FIGURES[name]())
    assert text.startswith("<svg")
    assert text.rstrip().endswith("</svg>")
    assert "<script" not in text
    assert "<metadata" not in text
    addresses = text.replace('xmlns="http://www.w3.org/2000/svg"', "").replace("http://www.w3.org/1999/xlink", "")
    assert "http" not in addresses


def test_drawing_again_gives_the_same_text() -> None:
    assert svg(deviations()) == svg(deviations())
    assert svg(counts()) == svg(counts())


def test_sets_differ_in_colour_and_in_shape() -> None:
    assert len({style.color for style in SETS}) == len({style.marker for style in SETS}) == 3


def test_exact_zeros_have_a_bar_of_their_own_with_their_number() -> None:
    zero, rest = deviations().axes
    assert [text.get_text() for text in zero.texts] == ["9", "1"]
    assert rest.get_xscale() == "log"
    counted = sum(bar.get_height() for bar in rest.patches)  # pyright: ignore[reportAttributeAccessIssue]
    assert counted == 8


def test_deviations_that_are_all_exactly_zero_can_be_drawn() -> None:
    zero, _ = deviation_figure({"ours": np.zeros(4), "other": np.zeros(4)}, label="deviation").axes
    assert [text.get_text() for text in zero.texts] == ["4", "4"]


def test_event_hours_that_follow_each_other_are_one_shaded_span() -> None:
    first = stream().axes[0]
    spans = sorted((p.get_x(), p.get_x() + p.get_width()) for p in first.patches)  # pyright: ignore[reportAttributeAccessIssue]
    assert spans == [(2.5, 5.5), (19.5, 20.5)]


def test_a_published_value_is_marked_where_there_is_one() -> None:
    first, second = shares().axes
    marks = [[np.asarray(line.get_xdata()) for line in ax.lines if line.get_marker() == "D"] for ax in (first, second)]
    assert [x.tolist() for x in marks[0]] == [[0.75]]
    assert marks[1] == []


def test_scores_never_share_a_bar_across_the_boundary() -> None:
    score = np.concatenate([np.full(N // 2, -1e-6), np.full(N - N // 2, 3.0)])
    (ax,) = gate_figure(score, MEMBERS).axes
    for bar in ax.patches:
        left, right = bar.get_x(), bar.get_x() + bar.get_width()  # pyright: ignore[reportAttributeAccessIssue]
        assert left >= -1e-12 or right <= 1e-12


def test_the_main_plane_keeps_distances_of_keys_that_lie_in_a_plane() -> None:
    flat = noise((20, 2)) @ np.linalg.qr(noise((5, 2)))[0].T + 7.0
    points, share = main_plane(flat)
    assert sum(share) == pytest.approx(1)
    assert share[0] >= share[1]
    distances = [np.linalg.norm(x[:, None] - x[None], axis=2) for x in (flat, points)]
    np.testing.assert_allclose(distances[1], distances[0], atol=1e-12)


@pytest.mark.parametrize(
    "keys", [np.arange(4.0)[:, None], np.ones((3, 2)), np.zeros((1, 1))], ids=["line", "equal", "one"]
)
def test_the_main_plane_of_degenerate_keys_is_finite(keys: np.ndarray) -> None:
    points, share = main_plane(keys)
    assert points.shape == (len(keys), 2)
    assert np.isfinite(points).all()
    assert 0 <= sum(share) <= 1 + 1e-12
