"""Comparison of the demo."""

from __future__ import annotations

from typing import Any

import pytest

from contrib.pairs.feature import DEMO_NAMES, preferences_file
from contrib.pairs.figures import pair_figures
from contrib.pairs.models import PairSet, Preference
from evaluation.models import User
from review.comparisons.summaries import load_open_work
from review.management.demo.loader import create_demo_users, demo_project, load_demo
from tests.review.test_demo_content import answers, records

DEMO_NAME = DEMO_NAMES["en"]


@pytest.mark.django_db
@pytest.mark.slow
def test_demo_comparison_is_partly_rated_fully_judged_and_loaded_once(settings: Any) -> None:
    settings.CONCORD_DISPATCHER = "local"
    project = demo_project()
    create_demo_users(project)
    for _ in range(2):
        load_demo(project, "en")
    found = PairSet.objects.get(name=DEMO_NAME)
    assert found.pairs.count() == 12
    figures = pair_figures(found)["preference"]
    # of the 12 pairs one goes to the vector system (single-05), two are ties (single-04, agg-04)
    assert (figures.experts.n, figures.experts.a, figures.experts.ties, figures.experts.b) == (12, 1, 2, 9)
    # single-02 .5, two-hop-07 1, single-05 -1.5, three-hop-02 2, single-04 0, agg-01 1, three-hop-05 2, agg-04 0,
    # two-hop-01 1, inf-04 2, two-hop-02 2, neg-05 2: 12 / 12
    assert figures.experts.mean == pytest.approx(1.0)
    (judge_figures,) = figures.judges.values()
    assert judge_figures.n == 12
    assert Preference.objects.filter(by_judge=False).count() == 17
    usernames = ("reviewer1", "reviewer2", "lead")
    waiting = {name: load_open_work(User.objects.get(username=name)).todos for name in usernames}
    open_counts = {name: {(todo.name, todo.count) for todo in found} for name, found in waiting.items()}
    assert open_counts == {"reviewer1": {(DEMO_NAME, 4)}, "reviewer2": {(DEMO_NAME, 3)}, "lead": set()}


@pytest.mark.parametrize("language", ["en", "ko"])
def test_preferences_are_unique_and_follow_the_faults(language: str) -> None:
    preferences = records(preferences_file(language))
    rated_pairs = [(row["question_id"], row["reviewer"]) for row in preferences]
    assert len(rated_pairs) == len(set(rated_pairs))
    for row in preferences:
        assert row["reviewer"] in {"reviewer1", "reviewer2"}
        vector, graph = (
            "demo_fault" in answers(language, name)[row["question_id"]] for name in ("demo-vector", "demo-graph")
        )
        if vector != graph:  # whoever has no fault is preferred, if anybody
            assert row["value"] in ({0, 1, 2} if vector else {0, -1, -2}), row
        assert -2 <= row["value"] <= 2
