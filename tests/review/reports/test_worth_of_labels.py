"""Pages state the worth of ratings only with enough ratings."""

from __future__ import annotations

import pytest
from django.utils.translation import override

from review.reports.figure import Figure, withheld
from review.reports.figure_cards import label_efficiency_remarks


@pytest.mark.parametrize(
    ("labels", "effective", "remarks"),
    [
        (49, 90.0, []),
        (50, 90.4, ["50 expert ratings were as precise as 90 random ones."]),
        (120, 100.0, ["120 expert ratings were as precise as 100 random ones."]),
        (60, 60.3, []),
        (60, None, []),
    ],
)
def test_worth_is_stated_from_fifty_labels_on(labels: int, effective: float | None, remarks: list[str]) -> None:
    figure = Figure(0.8, 0.7, 0.9, extra={"labels": labels, "effective_labels": effective})
    with override("en"):
        assert label_efficiency_remarks(figure) == remarks


def test_worth_is_not_stated_without_a_corrected_score() -> None:
    assert label_efficiency_remarks(withheld("too_few_labels", labels=80, effective_labels=100.0)) == []
