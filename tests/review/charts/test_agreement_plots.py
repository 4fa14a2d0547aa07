"""Agreement plots as values: positions worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from review.charts.axis import Plane
from review.charts.forest import Moment, timeline
from review.charts.judge_against_expert import confusion_grid, judge_against_expert, reliability_plot

LEVELS = Plane(1, 5, (1, 2, 3, 4, 5))


def share(position: str) -> float:
    return float(position.rstrip("%"))


def test_plane_keeps_a_margin_and_puts_higher_values_higher() -> None:
    # 7% free at each edge: 1 at 7%, 3 in the middle, 5 at 93%; from the top the other way round
    assert [LEVELS.from_left(value) for value in (1, 3, 5, 9)] == ["7.00%", "50.00%", "93.00%", "93.00%"]
    assert [LEVELS.from_top(value) for value in (1, 5)] == ["93.00%", "7.00%"]
    assert [tick.text for tick in LEVELS.y_ticks] == ["1", "2", "3", "4", "5"]


def test_plane_of_reals_has_few_ticks_over_the_whole_scale() -> None:
    ticks = Plane(0, 1).x_ticks
    assert (ticks[0].text, ticks[-1].text) == ("0.0", "1.0")
    assert len(ticks) <= 6
    with pytest.raises(ValueError, match="empty"):
        Plane(1, 1)


def test_confusion_cells_are_adjacent_and_shaded_by_their_row_share() -> None:
    # rows 3 1 and 0 4: shares 75% (three quarters: shade 3), 25% (1), 0 (0), 100% (4)
    grid = confusion_grid([[3, 1], [0, 4]], ["no", "yes"])
    assert grid is not None
    assert [cell.shade for cell in grid.cells] == [3, 1, 0, 4]
    assert [(cell.x, cell.y) for cell in grid.cells] == [
        ("0.00%", "0.00%"),
        ("50.00%", "0.00%"),
        ("0.00%", "50.00%"),
        ("50.00%", "50.00%"),
    ]
    assert [cell.same for cell in grid.cells] == [True, False, False, True]
    assert (grid.size, grid.columns[1].position, grid.rows[0].text) == ("50.00%", "75.00%", "no")


def test_matrix_with_too_many_categories_has_no_chart() -> None:
    assert confusion_grid([[0] * 12 for _ in range(12)], [str(category) for category in range(12)]) is None
    with pytest.raises(ValueError, match="one row and one column"):
        confusion_grid([[1, 2]], ["a", "b"])


def test_bubble_area_is_the_number_of_answers() -> None:
    # 100 answers: radius 15; 25 answers: half of it; 1 answer would be 1.5, which nobody sees: 2.5
    plot = judge_against_expert([(1, 1, 1), (3, 4, 25), (5, 5, 100)], LEVELS)
    assert [(bubble.count, bubble.radius) for bubble in plot.bubbles] == [(100, "15.0"), (25, "7.5"), (1, "2.5")]
    middle = plot.bubbles[1]
    assert (middle.x, middle.y) == ("50.00%", "28.50%")  # expert 3; judge 4: 100 - (7 + 3/4 x 86)
    assert (plot.start, plot.end) == (("7.00%", "93.00%"), ("93.00%", "7.00%"))


def test_curve_joins_its_marks_and_omits_missing_intervals() -> None:
    plot = reliability_plot([(2, 3, None, None), (4, 4, 3, 5)], LEVELS)
    assert [(start.bottom, start.top) for start in plot.marks] == [("", ""), ("50.00%", "7.00%")]
    assert [(start.x, end.x) for start, end in plot.segments] == [("28.50%", "71.50%")]


def test_timeline_marks_changes_between_runs_and_breaks_its_line() -> None:
    moments = [Moment("1 Nov", 0.4, 0.3, 0.5), Moment("8 Nov", 0.5), Moment("9 Nov", 0.7, change="new judge")]
    chart = timeline(moments)
    # places 6%, 50%, 94%: the change lies halfway between the second and the third
    assert [mark.x for mark in chart.marks] == ["6.00%", "50.00%", "94.00%"]
    assert [(tick.position, tick.text) for tick in chart.changes] == [("72.00%", "new judge")]
    assert [(start.moment.label, end.moment.label) for start, end in chart.segments] == [("1 Nov", "8 Nov")]
    assert share(chart.marks[2].y) < share(chart.marks[1].y) < share(chart.marks[0].y)
    assert share(chart.marks[0].top) < share(chart.marks[0].y) < share(chart.marks[0].bottom)


def test_change_labels_never_overlap_and_every_line_is_drawn() -> None:
    # five moments 22% apart: changes at 17%, 39%, 61%, 83%; words need 34%, so the second and the fourth have none
    chart = timeline([Moment(str(index), 0.5, change="new judge" if index else "") for index in range(5)])
    assert [tick.position for tick in chart.changes] == ["17.00%", "39.00%", "61.00%", "83.00%"]
    assert [bool(tick.text) for tick in chart.changes] == [True, False, True, False]


def test_moment_without_figure_keeps_its_place_and_joins_nothing() -> None:
    chart = timeline([Moment("a", 0.4), Moment("b", None), Moment("c", 0.4)])
    assert [bool(mark.y) for mark in chart.marks] == [True, False, True]
    assert chart.segments == ()


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30))
def test_every_moment_lies_inside_and_few_have_labels(values: list[float]) -> None:
    chart = timeline([Moment(str(index), value) for index, value in enumerate(values)])
    assert all(0 <= share(mark.x) <= 100 and 0 <= share(mark.y) <= 100 for mark in chart.marks)
    assert 1 <= len(chart.labels) <= 3
    assert all(0 <= share(tick.position) <= 100 for tick in chart.y_ticks)
