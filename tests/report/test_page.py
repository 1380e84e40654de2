"""A page is one file that loads nothing, and says what it was given and nothing else."""

import base64
import re
from html.parser import HTMLParser

import pytest

from svmem.report.page import Picture, Section, Table, Text, at_most, page, percent, short

SVG = '<svg viewBox="0 0 1 1"><rect width="1" height="1"/></svg>'
PICTURE = Picture("square", SVG, "a square", "It is black.")


def example() -> str:
    table = Table(("rule", "share"), (("<support>", "0.80"), ("last & first", "0.30")), "Shares.")
    return page("Title", "Lead.", (Section("One", (Text(("A < B",)), PICTURE)), Section("Two", (table,))), ("Foot.",))


class Outline(HTMLParser):
    """Collects what a browser would load, and whether tags close."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.sources: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.sources += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "data", "action")]
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def outline(html: str) -> Outline:
    found = Outline()
    found.feed(html)
    assert found.open == []
    return found


def test_a_page_loads_nothing_from_elsewhere() -> None:
    html = example()
    found = outline(html)
    assert all(source.startswith("data:image/svg+xml;base64,") for source in found.sources)
    assert not {"script", "link", "iframe", "object"} & set(found.tags)
    assert not re.search(r"https?://|//\w|@import|url\(", html.replace("base64,", ""))


def test_a_picture_is_inside_the_page_with_words_for_those_who_do_not_see_it() -> None:
    html = example()
    (data,) = re.findall(r"base64,([^\"]+)", html)
    assert base64.b64decode(data).decode() == SVG
    assert '<figure id="square">' in html
    assert 'alt="a square"' in html
    assert "<figcaption>It is black.</figcaption>" in html


def test_text_is_escaped_everywhere() -> None:
    html = example()
    assert "A &lt; B" in html
    assert "&lt;support&gt;" in html
    assert "last &amp; first" in html


def test_a_page_is_light_and_fits_the_width_of_a_phone() -> None:
    html = example()
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in html
    assert "color-scheme: light" in html
    assert html.count('<div class="scroll">') == 2  # picture and table scroll, the page does not


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (3.21e-9, "3.2e-9"),
        (0.4567, "0.46"),
        (12.3, "12"),
        (4.5e-21, "4.5e-21"),
        (-0.02, "-0.020"),
        (5e4, "5.0e4"),
    ],
)
def test_numbers_are_short(number: float, text: str) -> None:
    assert short(number) == text


@pytest.mark.parametrize(
    ("bound", "text"), [(6.01e-13, "6.1e-13"), (6.0e-13, "6.0e-13"), (9.91e-8, "1.0e-7"), (0.111, "0.12"), (0.0, "0")]
)
def test_a_bound_is_printed_rounded_up(bound: float, text: str) -> None:
    assert at_most(bound) == text
    assert float(text) >= bound


def test_shares_are_whole_percents() -> None:
    assert percent(0.326) == "33 %"
