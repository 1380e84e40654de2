"""A page that needs nothing but itself: text, tables and figures in one HTML file, light and readable on a phone."""

import base64
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from html import escape

__all__ = ["Block", "Picture", "Section", "Table", "Text", "at_most", "page", "percent", "short"]

_CSS = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 46rem; padding: 1rem 1rem 3rem; background: #fff; color: #222;
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 1rem 0 .5rem; }
h2 { font-size: 1.2rem; line-height: 1.3; margin: 2.4rem 0 .4rem; border-top: 1px solid #ddd; padding-top: 1.2rem; }
p { margin: .6rem 0; }
.lead { font-size: 1.08rem; color: #333; }
.scroll { overflow-x: auto; }
figure { margin: 1.2rem 0; }
figure img { display: block; width: 100%; min-width: 36rem; height: auto; }
figcaption, .caption { color: #444; font-size: .92rem; text-align: left; }
figcaption { margin-top: .5rem; }
.caption { margin: 1.4rem 0 0; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; font-size: .92rem; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .6rem; border-bottom: 1px solid #e3e3e3; text-align: right; vertical-align: top; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
td { white-space: nowrap; }
td:first-child, td.words { white-space: normal; overflow-wrap: break-word; }
th.words, td.words { text-align: left; }
thead th { border-bottom: 2px solid #999; vertical-align: bottom; }
code { font-size: .9em; overflow-wrap: anywhere; }
footer { margin-top: 3rem; border-top: 1px solid #ddd; padding-top: .8rem; color: #444; font-size: .88rem; }
"""


@dataclass(frozen=True, slots=True)
class Text:
    """Paragraphs of plain text."""

    paragraphs: tuple[str, ...]

    def html(self) -> str:
        """Return the paragraphs, escaped."""
        return "".join(f"<p>{escape(p)}</p>" for p in self.paragraphs)


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure as SVG, with what it shows in words for those who do not see it, and a caption for those who do."""

    name: str
    svg: str
    alt: str
    caption: str

    def html(self) -> str:
        """Return the figure with its picture inside, as data."""
        data = base64.b64encode(self.svg.encode()).decode()
        return (
            f'<figure id="{escape(self.name)}"><div class="scroll">'
            f'<img alt="{escape(self.alt)}" src="data:image/svg+xml;base64,{data}"></div>'
            f"<figcaption>{escape(self.caption)}</figcaption></figure>"
        )


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells, the first column in words, the others numbers unless `words` says so."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    words: tuple[int, ...] = ()  # columns, beyond the first, that hold words

    def html(self) -> str:
        """Return the table in a box that scrolls sideways where the screen is narrow."""
        head = "".join(self._cell("th", i, cell) for i, cell in enumerate(self.header))
        body = "".join(f"<tr>{''.join(self._cell('td', i, c) for i, c in enumerate(row))}</tr>" for row in self.rows)
        caption = f'<p class="caption">{escape(self.caption)}</p>' if self.caption else ""
        return f'{caption}<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'

    def _cell(self, tag: str, column: int, text: str) -> str:
        kind = ' class="words"' if column in self.words else ""
        return f"<{tag}{kind}>{escape(text)}</{tag}>"


Block = Text | Picture | Table


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands below it."""

    title: str
    blocks: tuple[Block, ...]

    def html(self) -> str:
        """Return heading and blocks."""
        return f"<section><h2>{escape(self.title)}</h2>{''.join(block.html() for block in self.blocks)}</section>"


def page(title: str, lead: str, sections: tuple[Section, ...], footer: tuple[str, ...]) -> str:
    """Return the whole page. It loads nothing: no script, no style sheet, no font, no picture from elsewhere."""
    body = "".join(section.html() for section in sections)
    foot = "".join(f"<p>{escape(line)}</p>" for line in footer)
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_CSS}</style></head><body>"
        f'<h1>{escape(title)}</h1><p class="lead">{escape(lead)}</p>{body}<footer>{foot}</footer></body></html>\n'
    )


def short(number: float) -> str:
    """Return a number with two digits, such as 3.2e-9 or 0.46."""
    if number == 0:
        return "0"
    if 0.01 <= abs(number) < 1000:
        return f"{number:#.2g}".rstrip(".")
    mantissa, exponent = f"{number:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def at_most(bound: float) -> str:
    """Return a bound with two digits, rounded up, so that what is printed is never smaller than what is proven."""
    exact = Decimal(bound)
    return short(float(Context(prec=2, rounding=ROUND_CEILING).plus(exact)))


def percent(share: float) -> str:
    """Return a share in whole percent."""
    return f"{100 * share:.0f} %"
