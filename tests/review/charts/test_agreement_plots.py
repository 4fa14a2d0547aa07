"""The plots of agreement as values: positions worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from review.charts.axis import Plane
from review.charts.forest import Moment, timeline
from review.charts.judge_against_expert import confusion_grid, judge_against_expert, reliability_plot

LEVELS = Plane(1, 5, (1, 2, 3, 4, 5))


def share(at: str) -> float:
    return float(at.rstrip("%"))


def test_a_plane_keeps_a_margin_and_higher_values_stand_higher() -> None:
    # 7% free at each edge: 1 at 7%, 3 in the middle, 5 at 93%; from the top the other way round
    assert [LEVELS.across(value) for value in (1, 3, 5, 9)] == ["7.00%", "50.00%", "93.00%", "93.00%"]
    assert [LEVELS.down(value) for value in (1, 5)] == ["93.00%", "7.00%"]
    assert [tick.text for tick in LEVELS.down_ticks] == ["1", "2", "3", "4", "5"]


def test_a_plane_of_reals_has_few_ticks_over_the_whole_scale() -> None:
    ticks = Plane(0, 1).across_ticks
    assert (ticks[0].text, ticks[-1].text) == ("0.0", "1.0")
    assert len(ticks) <= 6
    with pytest.raises(ValueError, match="empty"):
        Plane(1, 1)


def test_confusion_cells_lie_side_by_side_and_darken_with_their_share_of_the_row() -> None:
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
    assert (grid.size, grid.columns[1].at, grid.rows[0].text) == ("50.00%", "75.00%", "no")


def test_a_matrix_with_too_many_categories_is_a_table_only() -> None:
    assert confusion_grid([[0] * 12 for _ in range(12)], [str(at) for at in range(12)]) is None
    with pytest.raises(ValueError, match="one row and one column"):
        confusion_grid([[1, 2]], ["a", "b"])


def test_the_area_of_a_bubble_is_its_number_of_answers() -> None:
    # 100 answers: radius 15; 25 answers: half of it; 1 answer would be 1.5, which nobody sees: 2.5
    found = judge_against_expert([(1, 1, 1), (3, 4, 25), (5, 5, 100)], LEVELS)
    assert [(one.count, one.radius) for one in found.bubbles] == [(100, "15.0"), (25, "7.5"), (1, "2.5")]
    middle = found.bubbles[1]
    assert (middle.x, middle.y) == ("50.00%", "28.50%")  # expert 3; judge 4: 100 - (7 + 3/4 x 86)
    assert (found.start, found.end) == (("7.00%", "93.00%"), ("93.00%", "7.00%"))


def test_the_curve_joins_its_marks_and_leaves_out_intervals_that_do_not_exist() -> None:
    found = reliability_plot([(2, 3, None, None), (4, 4, 3, 5)], LEVELS)
    assert [(one.bottom, one.top) for one in found.marks] == [("", ""), ("50.00%", "7.00%")]
    assert [(one.x, two.x) for one, two in found.segments] == [("28.50%", "71.50%")]


def test_a_timeline_marks_changes_between_runs_and_breaks_the_line_there() -> None:
    moments = [Moment("1 Nov", 0.4, 0.3, 0.5), Moment("8 Nov", 0.5), Moment("9 Nov", 0.7, change="new judge")]
    found = timeline(moments)
    # places 6%, 50%, 94%: the change lies halfway between the second and the third
    assert [mark.x for mark in found.marks] == ["6.00%", "50.00%", "94.00%"]
    assert [(tick.at, tick.text) for tick in found.changes] == [("72.00%", "new judge")]
    assert [(one.moment.label, two.moment.label) for one, two in found.segments] == [("1 Nov", "8 Nov")]
    assert share(found.marks[2].y) < share(found.marks[1].y) < share(found.marks[0].y)
    assert share(found.marks[0].top) < share(found.marks[0].y) < share(found.marks[0].bottom)


def test_words_of_changes_never_run_into_each_other_and_no_line_is_lost() -> None:
    # five moments 22% apart: changes at 17%, 39%, 61%, 83%; words need 34%, so the second and the fourth have none
    found = timeline([Moment(str(at), 0.5, change="new judge" if at else "") for at in range(5)])
    assert [tick.at for tick in found.changes] == ["17.00%", "39.00%", "61.00%", "83.00%"]
    assert [bool(tick.text) for tick in found.changes] == [True, False, True, False]


def test_a_moment_without_a_figure_keeps_its_place_and_joins_nothing() -> None:
    found = timeline([Moment("a", 0.4), Moment("b", None), Moment("c", 0.4)])
    assert [bool(mark.y) for mark in found.marks] == [True, False, True]
    assert found.segments == ()


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30))
def test_every_moment_lies_within_the_picture_and_few_have_labels(values: list[float]) -> None:
    found = timeline([Moment(str(at), value) for at, value in enumerate(values)])
    assert all(0 <= share(mark.x) <= 100 and 0 <= share(mark.y) <= 100 for mark in found.marks)
    assert 1 <= len(found.labels) <= 3
    assert all(0 <= share(tick.at) <= 100 for tick in found.down)
