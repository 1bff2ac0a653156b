"""Draws a neighbourhood with matplotlib: the same bytes for the same neighbourhood."""

from __future__ import annotations

import html
import importlib
import io
from typing import Any, Dict, List, Optional, Sequence, Tuple

from gloved._command import visible

from .neighborhood import Neighborhood
from .projection import Projection

MARK = b"gloved plot"
"""Is in the first bytes of every picture, or the last: so plot knows its own files."""

# Okabe and Ito (2008): colours that most people can tell apart.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_GREY = "#666666"
_SIZE_INCHES = (9.0, 7.0)
_DOTS_PER_INCH = 120
_STEPS_OF_ARROW = 40
# Where a label may stand beside its point, best first: points to the right and up, and alignment.
_ANCHORS: Sequence[Tuple[float, float, str, str]] = (
    (5, 0, "left", "center"),
    (0, 6, "center", "bottom"),
    (0, -6, "center", "top"),
    (-5, 0, "right", "center"),
    (5, 5, "left", "bottom"),
    (5, -5, "left", "top"),
    (-5, 5, "right", "bottom"),
    (-5, -5, "right", "top"),
    (0, 15, "center", "bottom"),
    (0, -15, "center", "top"),
)

Box = Tuple[float, float, float, float]


def _color(group: int) -> str:
    return _GREY if group < 0 else _COLORS[group % len(_COLORS)]


def _shared_area(a: Box, b: Box) -> float:
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    return width * height if width > 0 and height > 0 else 0.0


def _short(text: str, most: int = 60) -> str:
    """What fits into a picture: matplotlib draws no text of some thousand letters as PNG."""
    return text if len(text) <= most else text[: most - 1] + "…"


class _Drawing:
    def __init__(self, found: Neighborhood, projection: Projection, title: str) -> None:
        self._found = found
        self._points = projection.points
        self.figure = importlib.import_module("matplotlib.figure").Figure(
            figsize=_SIZE_INCHES, dpi=_DOTS_PER_INCH
        )
        agg = importlib.import_module("matplotlib.backends.backend_agg")
        self._renderer = agg.FigureCanvasAgg(self.figure).get_renderer()
        self._axes = self.figure.add_axes((0.03, 0.08, 0.94, 0.85))
        self._axes.set_title(title, fontsize=13, parse_math=False)
        self._axes.set_xticks([])
        self._axes.set_yticks([])
        self._axes.margins(0.12)
        caption = f"{visible(found.model)} {found.generation}; {projection.caption}"
        self.figure.text(0.5, 0.03, caption, ha="center", fontsize=8, color=_GREY, parse_math=False)

    def draw(self) -> None:
        for asked, other, _ in self._found.links:
            (x, y), (to_x, to_y) = self._points[asked], self._points[other]
            color = _color(self._found.places[asked].group)
            self._axes.plot((x, to_x), (y, to_y), color=color, alpha=0.25, linewidth=0.8, zorder=1)
        for begin, end in self._found.arrows:
            color = _color(self._found.places[begin].group)
            arrow = {"arrowstyle": "->", "color": color, "shrinkA": 4, "shrinkB": 4, "lw": 1.3}
            self._axes.annotate(
                "", self._points[end], self._points[begin], arrowprops=arrow, zorder=2
            )
        for place, (x, y) in zip(self._found.places, self._points):
            size = 7.0 if place.is_asked else 4.0
            color = _color(place.group)
            self._axes.plot((x,), (y,), "o", markersize=size, color=color, zorder=3)
        self._put_labels()

    def _put_labels(self) -> None:
        """Puts each label where it covers least of points, arrows, and labels before it."""
        self._axes.autoscale_view()
        pixels = self._axes.transData.transform(self._points)
        marks = pixels.tolist()
        for begin, end in self._found.arrows:
            steps = [step / _STEPS_OF_ARROW for step in range(1, _STEPS_OF_ARROW)]
            marks += [(pixels[begin] + (pixels[end] - pixels[begin]) * step) for step in steps]
        taken: List[Box] = [(x - 4, y - 4, x + 4, y + 4) for x, y in marks]
        places = self._found.places
        for number in sorted(range(len(places)), key=lambda i: (not places[i].is_asked, i)):
            best_box, best_anchor, least = taken[0], _ANCHORS[0], float("inf")
            for anchor in _ANCHORS:
                label = self._label(number, anchor)
                extent = label.get_window_extent(self._renderer)
                label.remove()
                box = (extent.x0, extent.y0, extent.x1, extent.y1)
                covered = sum(_shared_area(box, other) for other in taken)
                if covered < least:
                    best_box, best_anchor, least = box, anchor, covered
                if least == 0:
                    break
            self._label(number, best_anchor)
            taken.append(best_box)

    def _label(self, number: int, anchor: Tuple[float, float, str, str]) -> Any:
        place = self._found.places[number]
        right, up, horizontal, vertical = anchor
        return self._axes.annotate(
            _short(visible(place.word)),
            self._points[number],
            (right, up),
            textcoords="offset points",
            ha=horizontal,
            va=vertical,
            fontsize=11 if place.is_asked else 8.5,
            fontweight="bold" if place.is_asked else "normal",
            color=_color(place.group),
            zorder=4,
            parse_math=False,
        )


def _rendered(drawing: _Drawing, form: str) -> bytes:
    out = io.BytesIO()
    metadata: Dict[str, Optional[str]] = {"Software": MARK.decode()}
    if form == "svg":
        metadata = {"Creator": MARK.decode(), "Date": None}
    if form == "pdf":
        metadata = {"Creator": MARK.decode(), "CreationDate": None}
    drawing.figure.savefig(out, format=form, metadata=metadata)
    return out.getvalue()


def _page(found: Neighborhood, svg: str, title: str) -> bytes:
    """A page that needs nothing else: the picture, and the neighbours as a table."""
    rows = "\n".join(
        f"<tr><td>{html.escape(visible(found.places[asked].word))}</td>"
        f"<td>{html.escape(visible(found.places[other].word))}</td><td>{score:.6f}</td></tr>"
        for asked, other, score in found.links
    )
    table = (
        f"<table>\n<tr><th>word</th><th>neighbour</th><th>cosine</th></tr>\n{rows}\n</table>\n"
        if rows
        else ""
    )
    name = html.escape(title)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f'<meta name="generator" content="{MARK.decode()}">\n'
        f'<meta name="viewport" content="width=device-width">\n<title>{name}</title>\n'
        "<style>\n"
        "body { font-family: sans-serif; max-width: 60em; margin: auto; background: white }\n"
        "svg { width: 100%; height: auto }\n"
        "td, th { text-align: left; padding: 0 1em 0 0 }\n"
        "</style>\n"
        f"{svg[svg.index('<svg') :]}\n{table}</html>\n"
    ).encode()


def picture(found: Neighborhood, projection: Projection, title: str, form: str) -> bytes:
    """The bytes of a picture: form is "svg", "png", "pdf" or "html".

    ImportError: there is no matplotlib.
    """
    matplotlib = importlib.import_module("matplotlib")
    settings = {
        "svg.hashsalt": MARK.decode(),
        # Text stays text: readers find it, and their fonts have letters that ours may lack.
        "svg.fonttype": "none",
        # TrueType, so that text can be searched: publishers refuse Type 3.
        "pdf.fonttype": 42,
        "font.family": ["DejaVu Sans"],
        "path.simplify": False,
    }
    with matplotlib.rc_context(settings):
        drawing = _Drawing(found, projection, _short(visible(title), 100))
        drawing.draw()
        if form != "html":
            return _rendered(drawing, form)
        return _page(found, _rendered(drawing, "svg").decode(), visible(title))
