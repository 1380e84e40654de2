"""Figures of experiments in files."""

from pathlib import Path

from matplotlib.figure import Figure

from svmem.errors import InvalidInput
from svmem.report.style import svg

__all__ = ["save"]


def save(figure: Figure, path: Path) -> None:
    """Write the figure in the format of the path's ending. Raises InvalidInput for one that cannot be drawn."""
    known = figure.canvas.get_supported_filetypes()
    if path.suffix.removeprefix(".") not in known:
        raise InvalidInput(f"a figure's name must end in one of .{', .'.join(sorted(known))}; got {path.name}")
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".svg":
        path.write_text(svg(figure))
    else:
        figure.savefig(path, dpi=150)
