"""Graph paths as pictures: all elements lie inside, in order, and long texts are cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.graph import Relation
from review.charts.graph_path import MAX_ROW_WIDTH, MAX_STEPS, draw_path

NAMES = st.text(min_size=1, max_size=60)


def test_hop_is_two_boxes_with_an_arrow_between_them() -> None:
    picture = draw_path([Relation("Fund", "tracks", "Index")])
    source_box, target_box = picture.boxes
    (arrow,) = picture.arrows
    # four letters of 7.5 and 10 on either side; the arrow ends 6 before the next box
    assert (source_box.x, source_box.width, target_box.x) == (0.0, 50.0, 146.0)
    assert (arrow.x1, arrow.x2, arrow.y1 == arrow.y2, arrow.label) == (50.0, 140.0, True, "tracks")
    assert picture.left_out == 0


def test_arrow_enters_the_next_row_from_above() -> None:
    first, _, third = draw_path(
        [Relation("a" * 20, "leads to", "b" * 20), Relation("b" * 20, "ends in", "c" * 20)]
    ).boxes
    *_, arrow = draw_path([Relation("a" * 20, "leads to", "b" * 20), Relation("b" * 20, "ends in", "c" * 20)]).arrows
    assert third.y > first.y
    # from the middle of the lower edge, 28 below the upper one, to 6 above the next box
    assert (arrow.y1, arrow.y2, arrow.x2) == (first.y + 28.0, third.y - 6.0, third.middle)


@given(st.lists(st.tuples(NAMES, st.text(max_size=40), NAMES), min_size=1, max_size=20))
def test_every_element_lies_inside_the_picture(path: list[tuple[str, str, str]]) -> None:
    picture = draw_path([Relation(*step) for step in path])
    assert len(picture.boxes) == min(len(path), MAX_STEPS) + 1
    assert picture.left_out == max(0, len(path) - MAX_STEPS)
    assert all(box.x >= 0 and box.x + box.width <= picture.width for box in picture.boxes)
    assert all(box.y + 28 <= picture.height for box in picture.boxes)
    assert all(box.x == 0 or box.x + box.width <= MAX_ROW_WIDTH for box in picture.boxes)
    assert all(len(box.label) <= 22 for box in picture.boxes)
