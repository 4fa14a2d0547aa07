"""The demo as it is after loading: a comparison that a newcomer can read and go on with."""

from __future__ import annotations

from typing import Any

import pytest

from contrib.pairs.feature import NAME
from contrib.pairs.figures import pair_figures
from contrib.pairs.models import PairSet, Preference
from evaluation.models import Run, User
from review.comparisons.summaries import attention
from review.management.demo.loading import demo_project, load_demo, set_people
from review.models import Exposure, ReviewQueue
from review.reports.estimates import three_scores
from review.reports.gathering import gather

pytestmark = pytest.mark.django_db


def test_the_comparison_is_rated_in_part_judged_whole_and_loaded_once(settings: Any) -> None:
    settings.CONCORD_DISPATCHER = "local"
    project = demo_project()
    set_people(project)
    for _ in range(2):
        load_demo(project)
    found = PairSet.objects.get(name=NAME)
    assert found.pairs.count() == 12
    figures = pair_figures(found)["preference"]
    # of the 12 pairs one goes to the vector system (single-05), two are ties (single-04, agg-04)
    assert (figures.experts.n, figures.experts.a, figures.experts.ties, figures.experts.b) == (12, 1, 2, 9)
    # single-02 .5, two-hop-07 1, single-05 -1.5, three-hop-02 2, single-04 0, agg-01 1, three-hop-05 2, agg-04 0,
    # two-hop-01 1, inf-04 2, two-hop-02 2, neg-05 2: 12 / 12
    assert figures.experts.mean == pytest.approx(1.0)
    (judged,) = figures.judges.values()
    assert judged.n == 12
    assert Preference.objects.filter(by_judge=False).count() == 17
    people = ("reviewer1", "reviewer2", "lead")
    waiting = {name: attention(User.objects.get(username=name)).others for name in people}
    left = {name: {(one.name, one.count) for one in found} for name, found in waiting.items()}
    assert left == {"reviewer1": {(NAME, 4)}, "reviewer2": {(NAME, 3)}, "lead": set()}


def test_nobody_is_handed_an_answer_whose_judge_they_have_seen(settings: Any) -> None:
    settings.CONCORD_DISPATCHER = "local"
    project = demo_project()
    set_people(project)
    load_demo(project)
    queue = ReviewQueue.objects.get(project=project, example=False)
    assert queue.items.count() == 24
    assert queue.draws.filter(planned_after_looking=True).count() == 1  # of the system that the examples are about
    seen = Exposure.objects.filter(user__in=queue.members.values("reviewer"), scope="answer")
    assert seen.exists()
    assert not queue.items.filter(answer__in=seen.values("object_id")).exists()
    judged = gather(Run.objects.get(pk=queue.draws.latest("pk").run_id))
    assert three_scores(judged).reviewed_answers == 26  # the examples still tell something
