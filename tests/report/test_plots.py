"""Plots are SVG text: well-formed, safe with any name, legible in both themes, small."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.report.plots import (
    Bar,
    Difference,
    Dot,
    Drawing,
    Forest,
    HeatMap,
    HeatRow,
    Histogram,
    HistogramGroup,
    Line,
    Point,
    Scatter,
    draw_bars,
    draw_divergence,
    draw_forest,
    draw_heat_map,
    draw_histogram,
    draw_history,
    draw_pass_curves,
    draw_scatter,
    draw_speed_curves,
)
from assay.report.plots.axes import (
    describe_period,
    linear_ticks,
    log_ticks,
    short,
    signed,
    spread,
    time_ticks,
)
from assay.report.plots.bars import bin_edges, count_bins
from assay.report.plots.heat_map import level_of, order_problems
from assay.report.plots.svg import COLOURS, fit, measure
from tests.report.plot_examples import EXAMPLES, heat_map, scatter

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '</title><script>alert(1)</script>"\x1b[31m\u202e\x00&<b>'
NAME = st.text(min_size=1, max_size=60)


def parse(svg: str) -> ET.Element:
    return ET.fromstring(svg)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_plot_is_an_image_with_a_name_and_a_description(name: str) -> None:
    drawing = EXAMPLES[name]
    for svg in (drawing.embed(), drawing.standalone(), drawing.flatten("dark")):
        root = parse(svg)
        assert root.tag == f"{SVG}svg"
        assert root.get("role") == "img"
        assert [child.tag for child in root][:2] == [f"{SVG}title", f"{SVG}desc"]
        assert all(child.text for child in list(root)[:2])


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_embedded_plot_needs_no_style_script_or_id(name: str) -> None:
    svg = EXAMPLES[name].embed()
    assert not re.search(r"<style|<script|\bstyle=|\bid=|\bon\w+=|href|url\(", svg)
    assert "nan" not in svg.lower().replace("nano", "")


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_flat_plot_has_the_plain_colours_of_its_theme(name: str) -> None:
    light, dark = (EXAMPLES[name].flatten(theme) for theme in ("light", "dark"))
    assert "var(" not in light + dark
    assert COLOURS["ink"][0] in light
    assert COLOURS["ink"][1] in dark


@pytest.mark.parametrize("name", EXAMPLES)
def test_texts_lie_within_the_plot(name: str) -> None:
    drawing = EXAMPLES[name]
    for found in parse(drawing.embed()).iter(f"{SVG}text"):
        if found.get("transform"):
            continue
        x, wide = float(found.get("x", 0)), measure(found.text or "", _size(found))
        left = {"end": x - wide, "middle": x - wide / 2}.get(found.get("text-anchor", ""), x)
        assert left >= -1, found.text
        assert left + wide <= drawing.width + 16, found.text
        assert 0 <= float(found.get("y", 0)) <= drawing.height


def _size(found: ET.Element) -> float:
    return float(found.get("font-size", 12))


DRAWN_WITH_NAMES: dict[str, Callable[[str], Drawing]] = {
    "forest": lambda name: draw_forest(Forest(name, (Difference(name, 0, -0.1, 0.1, name),))),
    "bars": lambda name: draw_bars(name, (Bar(name, 3),)),
    "heat map": lambda name: draw_heat_map(HeatMap((name,), (HeatRow(name, (1.0,)),), name)),
    "scatter": lambda name: draw_scatter(Scatter(name, name, name, (Dot(name, 1, 0.5),))),
    "histogram": lambda name: draw_histogram(
        Histogram(name, name, (HistogramGroup(name, (1.0,)),))
    ),
    "curves": lambda name: draw_pass_curves(
        (Line(name, (Point(1, 0.5, 0.4, 0.6),)), Line(name, ()))
    ),
}


@pytest.mark.parametrize("kind", DRAWN_WITH_NAMES)
def test_hostile_names_are_shown_as_text(kind: str) -> None:
    drawing = DRAWN_WITH_NAMES[kind](HOSTILE)
    for svg in (drawing.embed(), drawing.standalone(), drawing.flatten()):
        root = parse(svg)
        assert not list(root.iter(f"{SVG}script"))
        assert "\x1b" not in svg
        assert "\u202e" not in svg


@given(NAME, st.sampled_from(sorted(DRAWN_WITH_NAMES)))
def test_any_name_gives_well_formed_svg(name: str, kind: str) -> None:
    parse(DRAWN_WITH_NAMES[kind](name).standalone())


def test_a_name_cannot_change_colours() -> None:
    name = '="var(--plot-ink,#1f2328)"'
    shown = draw_bars("", (Bar(name, 1),)).flatten("dark")
    assert "var(--plot-ink,#1f2328)" in shown


@pytest.mark.parametrize(
    "drawing",
    [
        draw_forest(Forest("a", ())),
        draw_bars("nothing", ()),
        draw_bars("zero", (Bar("a", 0),)),
        draw_histogram(Histogram("nothing", "x", ())),
        draw_histogram(Histogram("zeros", "x", (HistogramGroup("a", (0.0, 0.0)),), is_log=True)),
        draw_histogram(Histogram("equal", "x", (HistogramGroup("a", (3.0, 3.0)),))),
        draw_heat_map(HeatMap((), ())),
        draw_scatter(Scatter("nothing", "x", "y", ())),
        draw_history(()),
        draw_pass_curves(()),
        draw_speed_curves(()),
        draw_divergence("", ()),
        draw_divergence("a", (0.0, float("nan"), float("inf"))),
    ],
    ids=lambda drawing: drawing.title,
)
def test_a_plot_without_data_is_still_a_plot(drawing: Drawing) -> None:
    parse(drawing.standalone())


def test_an_interval_of_a_forest_plot_is_drawn_to_scale() -> None:
    rows = (Difference("a", 0.0, -0.05, 0.05), Difference("b", 0.05, 0.0, 0.1, "better"))
    svg = draw_forest(Forest("base", rows)).embed()
    bars = re.findall(r'd="M([\d.]+) [\d.]+H([\d.]+)M[^"]*" stroke="[^"]*" stroke-width="2"', svg)
    (low, high), (zero, ten) = [(float(a), float(b)) for a, b in bars]
    assert high - low == pytest.approx(ten - zero, abs=0.02)
    assert zero == pytest.approx((low + high) / 2, abs=0.02)
    assert "+5.0 [0.0, +10.0]" in svg
    assert "\N{MINUS SIGN}5.0" in svg


def test_a_heat_map_of_bigcodebench_is_small() -> None:
    assert len(heat_map(1140, 12).embed()) < 100_000
    assert len(heat_map(1140, 12, 10).embed()) < 120_000


def test_a_heat_map_covers_every_judged_cell_once() -> None:
    shares = ((1.0, 0.0, 0.5, None), (0.0, 0.0, 1.0, -1.0))
    data = HeatMap(tuple("abcd"), tuple(HeatRow(str(n), s) for n, s in enumerate(shares)))
    cells = [
        int(count)
        for path in re.findall(r'<path d="(M[^"]*)" stroke="', draw_heat_map(data).embed())
        for count in re.findall(r"h(\d+)", path)
    ]
    assert sum(cells) == 7
    assert order_problems(data)[:2] == [2, 0]


def test_only_full_and_empty_shares_have_the_outer_levels() -> None:
    assert [level_of(s) for s in (0.0, 0.01, 0.5, 0.99, 1.0)] == [0, 1, 3, 4, 5]
    assert level_of(None) != level_of(-1.0)


def test_labels_of_a_scatter_plot_do_not_overlap() -> None:
    boxes = []
    for found in parse(scatter().embed()).iter(f"{SVG}text"):
        if found.get("paint-order"):
            x, y = float(found.get("x", 0)), float(found.get("y", 0))
            wide = measure(found.text or "", 11)
            left = x - wide if found.get("text-anchor") == "end" else x
            boxes.append((left, y, left + wide))
    assert len(boxes) == 12
    for i, (left, y, right) in enumerate(boxes):
        for other_left, other_y, other_right in boxes[i + 1 :]:
            assert abs(y - other_y) >= 13.9 or right <= other_left or other_right <= left


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_colours_have_enough_contrast(theme: int) -> None:
    paper = COLOURS["paper"][theme]
    least = {"ink": 7.0, "muted": 4.5, "axis": 3.0}
    for name, pair in COLOURS.items():
        if name.startswith("series") or name in ("good", "bad", "equal", "other", "invalid"):
            least[name] = 3.0
        if name in least:
            assert contrast(pair[theme], paper) >= least[name], name


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(2, 10))
def test_linear_ticks_contain_the_range(low: float, span: float, count: int) -> None:
    ticks = linear_ticks(low, low + span, count)
    slack = 1e-6 * max(1, abs(low) + span)
    assert ticks[0].value <= low + slack
    assert ticks[-1].value >= low + span - slack
    assert len(ticks) <= count + 2
    assert len({tick.label for tick in ticks}) == len(ticks)


@given(st.floats(1e-12, 1e12), st.floats(1.05, 1e9))
def test_log_ticks_lie_in_the_range_and_are_few(low: float, factor: float) -> None:
    ticks = log_ticks(low, low * factor)
    assert 2 <= len(ticks) <= 10
    assert all(low * 0.999 <= tick.value <= low * factor * 1.001 for tick in ticks)


def test_an_axis_of_time_says_the_day_or_the_year() -> None:
    noon = 1_780_000_000.0
    assert describe_period(noon, noon + 60) == "28 May 2026"
    assert describe_period(noon, noon + 1e6) == "2026"
    assert describe_period(noon, noon + 1e8) == "2026 to 2029"
    assert [tick.label for tick in time_ticks(noon, noon + 100)] == [
        "20:27:00", "20:27:30", "20:28:00",
    ]  # fmt: skip


@given(st.floats(0, 4e9), st.floats(60, 3e9))
def test_time_ticks_lie_in_the_range_and_are_few(low: float, span: float) -> None:
    ticks = time_ticks(low, low + span)
    assert len(ticks) <= 10
    assert all(low - 86_401 <= tick.value <= low + span for tick in ticks)


@given(st.lists(st.floats(0, 100), max_size=12))
def test_spread_keeps_order_and_distance(places: list[float]) -> None:
    found = spread(places, 5, 0, 100)
    ordered = sorted(found)
    assert all(b - a >= 5 - 1e-6 for a, b in itertools.pairwise(ordered))
    assert all(-1e-6 <= value <= 100 + 1e-6 for value in found)


@given(st.lists(st.floats(0.001, 1e5), min_size=1, max_size=50), st.booleans())
def test_every_value_is_in_one_bin(values: list[float], is_log: bool) -> None:
    edges = bin_edges(values, is_log=is_log)
    assert edges[0] <= min(values) * (1 + 1e-9)
    assert edges[-1] >= max(values) * (1 - 1e-9)
    assert sum(count_bins(values, edges)) == len(values)


def test_a_bin_includes_its_lower_edge() -> None:
    assert count_bins([0, 1, 1.5, 2], [0, 1, 2, 3]) == [1, 2, 1]


def test_a_long_name_keeps_both_ends() -> None:
    shown = fit("Qwen2.5-Coder-7B-Instruct-distilled-Q4_K_M", 150)
    assert shown.startswith("Qwen")
    assert shown.endswith("K_M")
    assert measure(shown) <= 150
    assert fit("short", 150) == "short"


def test_numbers_are_short_and_have_a_real_minus() -> None:
    assert [short(v) for v in (0.05, 2, 1500, 25_000, 1e6, 1e-6)] == [
        "0.05", "2", "1,500", "25k", "1M", "10⁻⁶",
    ]  # fmt: skip
    assert (signed(-1.25), signed(0.01), signed(3)) == ("\N{MINUS SIGN}1.2", "0.0", "+3.0")
