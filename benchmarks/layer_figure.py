"""The picture of `benchmarks.layer`: seconds of one layer over the length of the context, ours beside softmax.

python -m benchmarks.layer_figure [ROWS] [PICTURE]
"""

import argparse
import json
import sys
from pathlib import Path

from matplotlib.figure import Figure

from svmem.report.style import canvas
from svmem.types import Json

ROOT = Path(__file__).parents[1]
ROWS, PICTURE = ROOT / "benchmarks" / "results" / "layer.jsonl", ROOT / "docs" / "figures" / "layer.svg"
CURVES = (
    ("redundant", "softmax_s", "softmax attention (fused)", "#777777", "o"),
    ("redundant", "ours_s", "support vectors, redundant tokens", "#0072B2", "s"),
    ("random", "ours_s", "support vectors, random tokens", "#D55E00", "^"),
)


def layer_figure(rows: list[Json]) -> Figure:
    """Draw forward and backward of one layer over the length, on two logarithmic axes."""
    figure, (ax,) = canvas(6.4, 3.8)
    for keys, field, label, color, marker in CURVES:
        points = sorted((row["t"], row[field]) for row in rows if row["measure"] == "layer" and row["keys"] == keys)
        ax.plot(*zip(*points, strict=True), color=color, marker=marker, markersize=5, linewidth=1.6, label=label)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ticks = sorted({row["t"] for row in rows if row["measure"] == "layer"})
    ax.set_xticks(ticks, [f"{t:,}" for t in ticks])
    ax.set_xlabel("tokens of context")
    ax.set_ylabel("seconds, forward and backward")
    ax.legend(frameon=False, fontsize=9)
    return figure


def main(argv: list[str] | None = None) -> int:
    """Draw the committed rows, or the ones in a file."""
    parser = argparse.ArgumentParser(description="Draw the rows of benchmarks.layer over the length of the context.")
    parser.add_argument("rows", type=Path, nargs="?", default=ROWS, help="JSON lines (the committed ones)")
    parser.add_argument("picture", type=Path, nargs="?", default=PICTURE, help="svg, png or pdf (the one in docs)")
    options = parser.parse_args(argv)
    try:
        rows = [json.loads(line) for line in options.rows.read_text().splitlines()]
    except (OSError, ValueError) as error:
        parser.error(f"{options.rows} must hold the rows that benchmarks.layer --save wrote: {error}")
    layer_figure(rows).savefig(options.picture)
    print(options.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
