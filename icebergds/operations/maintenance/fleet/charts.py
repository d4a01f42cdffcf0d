"""Draws what is measured of a table with matplotlib, as SVG that fits its page."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import log2
from typing import TYPE_CHECKING, Any

import numpy as np

from icebergds.display import counted, size_text, time_text
from icebergds.operations.maintenance.fleet.measured import Measured
from icebergds.operations.maintenance.health.history import CommitRate, RefPosition, RetainedState
from icebergds.operations.maintenance.health.layout import FileLayout, Histogram

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, BAR, MARK, RULE = "#010101", "#020202", "#030303", "#040404"
"""Colours that stand for those of the page: of text, of data, of marks, of lines."""

_OF_PAGE = {INK: "currentColor", BAR: "var(--bar)", MARK: "var(--mark)", RULE: "var(--rule)"}
_SETTINGS: dict[Any, Any] = {"svg.fonttype": "none"}
_DROPPED = re.compile(r"<metadata>.*?</metadata>|<defs>\s*<style.*?</style>\s*</defs>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_COLOUR = re.compile("|".join(_OF_PAGE))
_ID = re.compile(r' id="([^"]*)"')
_REFERENCE = re.compile(r'(url\(#|href="#)([^")]+)')
_FONT = re.compile(r' font-family: [^;"]*;| transform="rotate\(-0[^"]*"')
_DIGITS = re.compile(r"(\d+\.\d)\d+")
_LINES = re.compile(r"\s*\n\s*")

_INCHES = (4.2, 2.0)
_PLACE = (0.15, 0.17, 0.82, 0.75)
_TEXT = 8
_LABELS = 5
_MOST_REFS = 12
_LEVELS = 3
_DAY_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure of a page.

    Attributes:
        svg: trusted, unlike the texts.
    """

    title: str
    note: str
    svg: str


def charts_of(health: Measured, prefix: str) -> list[Chart]:
    """The figures of a table; none of what it does not have.

    Args:
        prefix: what ids within the figures begin with, which no other table of the page has.
    """
    drawn = []
    for number, (title, note, draw) in enumerate(_figures(health)):
        svg = _drawn(draw, f"{prefix}-{number}-", f"{title}: {note}")
        drawn.append(Chart(title, note, svg))
    return drawn


_Draw = Callable[["Axes"], None]


def _figures(health: Measured) -> Iterator[tuple[str, str, _Draw]]:
    files, layout, history = health.files, health.layout, health.history
    if files.count:
        target, edges = files.target_size, layout.sizes.edges
        line = ", the dashed line" if edges[0] < target < edges[-1] else ""
        yield (
            "Sizes of files",
            f"{counted(files.small, 'file')} below 75 % and {files.large:,} above 180 % of the "
            f"target of {size_text(target)}{line}",
            lambda axes: _histogram(axes, layout.sizes, _short_size, target),
        )
        yield (
            "Rows of files",
            f"{counted(files.rows, 'row')} before deletes",
            lambda axes: _histogram(axes, layout.rows, _short),
        )
    if layout.with_deletes:
        yield (
            "Deletes of files",
            f"delete files that apply to a data file; {counted(layout.with_deletes, 'data file')} "
            "with some",
            lambda axes: _deletes(axes, layout.deletes),
        )
    if layout.partitions > 1:
        yield (
            "Partitions, the largest first",
            f"{counted(layout.partitions, 'partition')}; the largest has {layout.skew:,.1f} times "
            "the mean size, the dashed line",
            lambda axes: _partitions(axes, layout, files.size_in_bytes),
        )
    if any(state.size_in_bytes is not None for state in history.growth):
        states = [state for state in history.growth if state.size_in_bytes is not None]
        yield "Growth", "size of the branch's files", lambda axes: _growth(axes, states)
    if sum(history.commits.counts) > 1:
        made = ", ".join(f"{count:,} {name}" for name, count in history.operations)
        yield "Commits", made, lambda axes: _commits(axes, history.commits)
    if history.growth or history.refs:
        yield (
            "Snapshots, branches and tags",
            f"{counted(health.metadata.snapshots, 'snapshot')}, "
            f"{counted(len(history.refs), 'reference')}",
            lambda axes: _line(axes, history.growth, history.refs),
        )


def _drawn(draw: _Draw, prefix: str, label: str) -> str:
    from matplotlib.figure import Figure

    figure = Figure(figsize=_INCHES, facecolor="none")
    axes = figure.add_axes(_PLACE, facecolor="none")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(RULE)
    draw(axes)
    axes.tick_params(colors=INK, labelsize=_TEXT, length=0)
    axes.tick_params(axis="x", pad=6)
    return to_svg(figure, prefix, label)


def _histogram(
    axes: Axes, found: Histogram, text: Callable[[float], str], mark: int | None = None
) -> None:
    _bars(axes, found.counts)
    _count_axis(axes, max(found.counts))
    chosen = _some(len(found.edges))
    axes.set_xticks([at - 0.5 for at in chosen], [text(found.edges[at]) for at in chosen])
    if mark is not None and found.edges[0] < mark < found.edges[-1]:
        place = log2(mark) - log2(max(found.edges[0], 1)) - 0.5
        axes.axvline(place, color=MARK, linewidth=1.2, linestyle=(0, (4, 3)))


def _deletes(axes: Axes, found: Histogram) -> None:
    _bars(axes, found.counts)
    _count_axis(axes, max(found.counts))
    names = [
        f"{low:,}" if low + 1 == high else f"{low:,}–{high - 1:,}"
        for low, high in zip(found.edges, found.edges[1:], strict=False)
    ]
    chosen = _some(len(names), 8)
    axes.set_xticks(chosen, [names[at] for at in chosen])


def _partitions(axes: Axes, layout: FileLayout, nbytes: int) -> None:
    sizes = [max(each.size_in_bytes, 0) for each in layout.largest]
    _bars(axes, sizes)
    _size_axis(axes, max(sizes))
    axes.set_xticks([])
    axes.axhline(nbytes / layout.partitions, color=MARK, linewidth=1.2, linestyle=(0, (4, 3)))


def _growth(axes: Axes, states: Sequence[RetainedState]) -> None:
    times = [float(state.timestamp_ms) for state in states]
    sizes = [float(state.size_in_bytes or 0) for state in states]
    axes.fill_between(times, sizes, step="post", color=BAR, alpha=0.25, linewidth=0)
    axes.step(times, sizes, where="post", color=BAR, linewidth=1.6)
    _size_axis(axes, max(sizes))
    _time_axis(axes, min(times), max(times))


def _commits(axes: Axes, rate: CommitRate) -> None:
    _bars(axes, rate.counts)
    _count_axis(axes, max(rate.counts))
    last = len(rate.counts) - 1
    chosen = (0, last / 2, last)
    times = [rate.start_ms + (rate.end_ms - rate.start_ms) * at / last for at in chosen]
    axes.set_xticks(chosen, _time_labels(times))
    _align_ends(axes)


def _line(axes: Axes, states: Sequence[RetainedState], refs: Sequence[RefPosition]) -> None:
    times = [state.timestamp_ms for state in states] + [ref.timestamp_ms for ref in refs]
    first, last = float(min(times)), float(max(times))
    axes.axhline(0, color=RULE, linewidth=1)
    axes.vlines([float(each.timestamp_ms) for each in states], -0.12, 0.12, color=BAR, linewidth=1)
    shown = sorted(refs, key=lambda ref: ref.timestamp_ms)[-_MOST_REFS:]
    for number, ref in enumerate(shown):
        side = 1 if ref.kind == "branch" else -1
        height = side * (0.3 + 0.22 * (number % _LEVELS))
        at = float(ref.timestamp_ms)
        axes.plot([at, at], [0, height], color=MARK, linewidth=0.8)
        share = (at - first) / max(last - first, 1)
        place = "left" if share < 0.3 else "right" if share > 0.7 else "center"
        # Fonts that lack a letter would be warned of; the page has the whole name.
        name = ref.name[:24].encode("ascii", "replace").decode()
        axes.text(
            at,
            height,
            name if name.isprintable() else repr(name),
            color=INK,
            fontsize=_TEXT,
            ha=place,
            va="bottom" if side > 0 else "top",
            parse_math=False,
        )
    axes.set_ylim(-1.1, 1.1)
    axes.set_yticks([])
    _time_axis(axes, first, last)


def _bars(axes: Axes, heights: Sequence[int]) -> None:
    """Draws bars at 0, 1, 2, ... as one shape: many would take long."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    tops = np.array(heights, np.float64)
    left = np.flatnonzero(tops).astype(np.float64)
    tops = tops[tops > 0]
    zero, width = np.zeros(len(left)), 0.42
    corners = [(left - width, zero), (left - width, tops), (left + width, tops)]
    corners += [(left + width, zero), (left - width, zero)]
    vertices = np.array(corners).transpose(2, 0, 1).reshape(-1, 2)
    codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
    shape = Path(vertices, np.tile(np.array(codes, np.uint8), len(left)))
    axes.add_patch(PathPatch(shape, facecolor=BAR, linewidth=0))
    axes.set_xlim(-0.7, len(heights) - 0.3)


def _count_axis(axes: Axes, most: int) -> None:
    _value_axis(axes, most, _short, 1)


def _size_axis(axes: Axes, most: float) -> None:
    _value_axis(axes, most, _short_size, 0)


def _value_axis(axes: Axes, most: float, text: Callable[[float], str], least: float) -> None:
    top = max(most, least, 1e-9)
    ticks = sorted({0.0, _rounded(top / 2, least), _rounded(top, least)})
    axes.set_ylim(0, top * 1.08)
    axes.set_yticks(ticks, [text(tick) for tick in ticks])
    axes.set_axisbelow(True)
    axes.grid(axis="y", color=RULE, linewidth=0.6)


def _rounded(value: float, least: float) -> float:
    """A value with one or two digits, not above it."""
    if value <= least:
        return least
    unit = max(10.0 ** np.floor(np.log10(value)) / 2, least)
    return float(np.floor(value / unit) * unit)


def _time_axis(axes: Axes, first: float, last: float) -> None:
    room = max(last - first, 1.0)
    axes.set_xlim(first - room * 0.01, first + room * 1.01)
    if last <= first:
        axes.set_xticks([first], _time_labels([first]))
        return
    ticks = [first, first + room / 2, last]
    axes.set_xticks(ticks, _time_labels(ticks))
    _align_ends(axes)


def _time_labels(times_ms: Sequence[float]) -> list[str]:
    """Times in UTC, as short as they can be told apart."""
    texts = [time_text(round(time)) for time in times_ms]
    room = max(times_ms) - min(times_ms)
    if room > 3 * _DAY_MS:
        return [text[:10] for text in texts]
    end = 16 if room > 10 * 60_000 else 19
    return [text[5:end].replace("T", " ") if "T" in text else text for text in texts]


def _align_ends(axes: Axes) -> None:
    """Keeps the first and the last label within the figure."""
    labels = axes.get_xticklabels()
    labels[0].set_horizontalalignment("left")
    labels[-1].set_horizontalalignment("right")


def _some(count: int, most: int = _LABELS) -> list[int]:
    """Up to `most` numbers below a count, evenly spaced."""
    return list(range(0, count, max(-(-count // most), 1)))


def _short(number: float) -> str:
    for unit, sign in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if number >= unit:
            scale = 1000 if sign == "k" else unit
            return f"{number / scale:,.3g} {sign}"
    return f"{number:,.0f}"


def _short_size(nbytes: float) -> str:
    return size_text(round(nbytes)).replace("bytes", "B").replace(".0 ", " ")


def to_svg(figure: Figure, prefix: str, label: str) -> str:
    """Draws a figure in the colours and the font of its page.

    Args:
        prefix: what ids within the figure begin with, which no other figure of the page has.
        label: what is read to those who do not see it.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    drawn = io.StringIO()
    # There is no other way to say this to the renderer; the salt makes ids the same in every run.
    with rc_context({**_SETTINGS, "svg.hashsalt": prefix}):
        FigureCanvasSVG(figure).print_svg(drawn, metadata={"Date": None})  # type: ignore[no-untyped-call]
    text = drawn.getvalue()
    body = _DROPPED.sub("", text[text.index("<svg") : text.rindex("</svg>")])
    head, content = body.split(">", 1)
    box = re.search(r'viewBox="[^"]*"', head)
    assert box is not None
    used = {found[2] for found in _REFERENCE.finditer(content)}
    # Texts between tags are those of the figure: they stay as they are.
    content = _TAG.sub(lambda tag: _of_page(tag[0], prefix, used), _LINES.sub(" ", content))
    return f'<svg {box[0]} role="img" aria-label="{escape(label)}">{content.strip()}</svg>'


def _of_page(tag: str, prefix: str, used: set[str]) -> str:
    """A tag with ids of its own, without those that nothing refers to, in colours of the page."""
    tag = _ID.sub(lambda at: f' id="{prefix}{at[1]}"' if at[1] in used else "", tag)
    tag = _REFERENCE.sub(lambda at: f"{at[1]}{prefix}{at[2]}", tag)
    tag = _COLOUR.sub(lambda at: _OF_PAGE[at[0]], tag)
    return _DIGITS.sub(lambda at: at[1], _FONT.sub("", tag))
