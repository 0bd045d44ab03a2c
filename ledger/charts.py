"""Geometry of the small charts that pages draw as inline SVG. Pure: numbers in, coordinates out; templates draw."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from common.money import format_usd
from ledger.dayrow import DayRow

WIDTH, HEIGHT = 320.0, 132.0
LEFT, RIGHT, TOP, BOTTOM = 52.0, 16.0, 8.0, 20.0
"""The view box and the margins that hold the axis labels."""
MAX_X_LABELS = 5

Values = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Tick:
    """An axis label at a coordinate."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Dot:
    """One day of a line, with its tooltip."""

    x: float
    y: float
    title: str


@dataclass(frozen=True, slots=True)
class Line:
    """One series: an SVG path that breaks where a value is missing, and its dots."""

    label: str
    style: str
    path: str
    dots: tuple[Dot, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """A line chart in a ``WIDTH`` by ``HEIGHT`` view box."""

    title: str
    latest: str
    lines: tuple[Line, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    width: float = WIDTH
    height: float = HEIGHT
    left: float = LEFT
    right: float = WIDTH - RIGHT
    bottom: float = HEIGHT - BOTTOM


def day_charts(rows: Sequence[DayRow]) -> list[Chart]:
    """Return a student's three charts: share served by the student, audited agreement, cost beside all-teacher."""
    if not rows:
        return []
    days = [f"{row.on.day} {row.on:%b}" for row in rows]
    share: Values = [row.student_share for row in rows]
    agreement: Values = [row.agreement for row in rows]
    cost: Values = [float(row.cost_nusd) for row in rows]
    baseline: Values = [float(row.baseline_nusd) for row in rows]
    floor = 0.8 if min([value for value in agreement if value is not None], default=1.0) >= 0.8 else 0.0
    top = max(1.0, *(float(max(row.cost_nusd, row.baseline_nusd)) for row in rows))
    served = [("student share", "accent", share)]
    audited = [("audited agreement", "good", agreement)]
    costs = [("all-teacher", "muted", baseline), ("paid", "accent", cost)]
    return [
        line_chart("Served by the student", days, served, low=0.0, high=1.0, text=percent),
        line_chart("Audited agreement", days, audited, low=floor, high=1.0, text=percent),
        line_chart("Cost", days, costs, low=0.0, high=top, text=usd, tick_text=usd_tick, is_last_first=True),
    ]


def line_chart(
    title: str,
    days: Sequence[str],
    series: Sequence[tuple[str, str, Values]],
    *,
    low: float,
    high: float,
    text: Callable[[float], str],
    tick_text: Callable[[float], str] | None = None,
    is_last_first: bool = False,
) -> Chart:
    """Lay out ``series`` (label, style, one value per day) between ``low`` and ``high``.

    ``text`` formats a value, ``tick_text`` (by default the same) a label of the axis, which has room for 7 characters.
    """
    span = high - low or 1.0
    xs = _positions(len(days))

    def y(value: float) -> float:
        share = min(1.0, max(0.0, (value - low) / span))
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)

    lines = []
    for label, style, values in series:
        points = [None if value is None else (x, y(value)) for x, value in zip(xs, values, strict=True)]
        dots = tuple(
            Dot(x, y(value), f"{day}: {label} {text(value)}")
            for day, x, value in zip(days, xs, values, strict=True)
            if value is not None
        )
        lines.append(Line(label, style, _path(points), dots))
    shown = reversed(series) if is_last_first else series
    latest = [text(values[-1]) for _, _, values in shown if values[-1] is not None]
    middle = (low + high) / 2
    step = max(1, -(-len(days) // MAX_X_LABELS))
    return Chart(
        title=title,
        latest=" of ".join(latest) or "no data",
        lines=tuple(lines),
        x_ticks=tuple(Tick(x, day) for x, day in list(zip(xs, days, strict=True))[::-step][::-1]),
        y_ticks=tuple(Tick(y(value), (tick_text or text)(value)) for value in (low, middle, high)),
    )


def percent(value: float) -> str:
    """Format a share, e.g. ``97.5%``; whole percentages carry no decimals, and only all of it is ``100%``."""
    shown = value if value >= 1.0 else min(value, 0.999)
    return f"{shown * 100:.1f}".rstrip("0").rstrip(".") + "%"


def usd(nusd: float) -> str:
    """Format nano-USD with the decimals that its size needs."""
    places = 2 if abs(nusd) >= 10**9 else 4
    return format_usd(round(nusd), places)


def usd_tick(nusd: float) -> str:
    """Format nano-USD for an axis, e.g. ``$0.65``: as short as tells the labels apart."""
    if not nusd:
        return "$0"
    places = 0 if nusd >= 100 * 10**9 else 2 if nusd >= 10**8 else 4
    return format_usd(round(nusd), places)


def _positions(count: int) -> list[float]:
    width = WIDTH - LEFT - RIGHT
    if count == 1:
        return [LEFT + width / 2]
    return [round(LEFT + 6 + index * (width - 12) / (count - 1), 1) for index in range(count)]


def _path(points: Sequence[tuple[float, float] | None]) -> str:
    parts = []
    pen_is_up = True
    for point in points:
        if point is None:
            pen_is_up = True
            continue
        parts.append(f"{'M' if pen_is_up else 'L'}{point[0]} {point[1]}")
        pen_is_up = False
    return " ".join(parts)
