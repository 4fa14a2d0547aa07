"""Charts as values: positions, ticks and texts, checked by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.scales import Scale
from review.charts.axis import Axis, Plane, axis_around, scale_line
from review.charts.forest import DrawnRow, Figure, ForestRow, Shape, forest


def test_axis_is_as_narrow_as_is_readable() -> None:
    # 0.68 to 0.81: with steps of 0.05 it runs from 0.65 to 0.85, four steps, five ticks.
    axis = axis_around([0.68, 0.72, 0.76, 0.79, 0.81])
    assert (round(axis.low, 6), round(axis.high, 6)) == (0.65, 0.85)
    assert [t.text for t in axis.ticks] == ["0.65", "0.70", "0.75", "0.80", "0.85"]


def test_axis_uses_quarter_steps_where_fifths_need_too_many_ticks() -> None:
    # 0.35 to 1.35: six steps of 0.2 from 0.2 to 1.4, five of 0.25 from 0.25 to 1.5
    axis = axis_around([0.35, 1.35], high=5.0)
    assert [tick.text for tick in axis.ticks] == ["0.25", "0.50", "0.75", "1.00", "1.25", "1.50"]


def test_single_value_gets_a_tenth_of_the_scale() -> None:
    axis = axis_around([0.5])
    assert axis.high - axis.low >= 0.1 - 1e-9
    wider = axis_around([3.0], low=1.0, high=5.0)
    assert wider.high - wider.low == pytest.approx(0.4)


def test_positions_are_fractions_of_the_axis() -> None:
    axis = axis_around([0.0, 1.0])
    assert (axis.low, axis.high) == (0.0, 1.0)
    assert [axis.position(v) for v in (0.0, 0.25, 1.0, 2.0)] == ["0.00%", "25.00%", "100.00%", "100.00%"]


@given(st.lists(st.floats(-3, 8, allow_nan=False), min_size=1, max_size=6))
def test_every_value_within_the_scale_lies_on_the_axis(values: list[float]) -> None:
    axis = axis_around(values, low=1, high=5)
    clipped = [min(max(v, 1.0), 5.0) for v in values]
    assert axis.low - 1e-9 <= min(clipped)
    assert max(clipped) <= axis.high + 1e-9
    assert 1 <= len(axis.ticks) <= 7


def test_row_without_a_figure_shows_the_reason() -> None:
    rows = [ForestRow("corrected", Shape.CORRECTED, None, withheld="12 ratings are missing")]
    chart = forest(rows)
    assert chart.rows[0].row.withheld == "12 ratings are missing"
    assert not chart.has_figures
    with pytest.raises(ValueError, match="neither a figure nor a reason"):
        forest([ForestRow("corrected", Shape.CORRECTED, None)])


def test_row_without_a_figure_has_no_positions() -> None:
    row = ForestRow("faithfulness", Shape.CORRECTED, None, withheld="too few labels")
    assert forest([row]).rows == (DrawnRow(row, "", "", "", "", ""),)


@pytest.mark.parametrize(
    ("step", "texts"), [(0.1, ["0.0", "0.1", "0.2"]), (0.25, ["0.00", "0.25", "0.50"]), (1.0, ["0", "1", "2"])]
)
def test_ticks_have_as_many_decimals_as_their_step(step: float, texts: list[str]) -> None:
    assert [tick.text for tick in Axis(0.0, 2 * step, step).ticks] == texts


def test_plane_labels_up_to_eleven_levels_and_then_axis_ticks() -> None:
    assert [tick.text for tick in Plane(0, 10, range(11)).x_ticks] == [str(level) for level in range(11)]
    assert len(Plane(0, 11, range(12)).x_ticks) < 12


def test_row_shows_its_value_and_interval() -> None:
    row = forest([ForestRow("all", Shape.JUDGE, Figure(0.8125, 0.784, 0.8391))]).rows[0]
    assert (row.value, row.interval) == ("0.81", "0.78–0.84")


def test_scale_line_keeps_a_margin() -> None:
    # 1..5 with 5% free on both sides: 1 at 5%, 3 in the middle, 5 at 95%.
    line = scale_line(Scale.parse("1..5"), expert=3, judge=5)
    assert (line.start, line.expert, line.judge) == ("5.00%", "50.00%", "95.00%")
    assert [level.text for level in line.levels] == ["1", "2", "3", "4", "5"]


def test_judge_name_stays_inside_at_both_ends_of_the_scale() -> None:
    anchors = [scale_line(Scale.parse("1..5"), expert=3, judge=judge).judge_anchor for judge in (1, 2, 4, 5)]
    assert anchors == ["start", "middle", "middle", "end"]


def test_classes_cannot_be_drawn_on_a_line() -> None:
    with pytest.raises(ValueError, match="no order"):
        scale_line(Scale.parse("class right|wrong"), expert=0, judge=1)
