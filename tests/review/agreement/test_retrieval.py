"""A run's retrieval by depth."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.models import Answer
from evaluation.storage import append_only
from review.agreement.retrieval import retrieval_by_depth
from review.charts.curves import HEIGHT, WIDTH, curve_chart
from tests.factories import make_answer_set, make_question_set, make_scored_run, make_user, question_spec

pytestmark = pytest.mark.django_db


def test_curves_span_the_chart() -> None:
    chart = curve_chart([("all", (0.0, 0.5, 1.0)), ("some", (1.0, 1.0, 1.0))])
    assert chart.curves[0].points == f"0.0,{HEIGHT} {WIDTH / 2},{HEIGHT / 2} {WIDTH},0.0"
    assert [tick.text for tick in chart.x_ticks] == ["1", "2", "3"]
    assert curve_chart([("one", (0.25,))]).curves[0].points == f"{WIDTH / 2},{HEIGHT * 0.75}"


def test_retrieval_by_depth_category_and_hops() -> None:
    specs = [
        question_spec(n, category=category, hops=hops).model_copy(update={"ground_truth_chunk_ids": ids})
        for n, category, hops, ids in (
            (1, "single_hop", 1, ("a",)),
            (2, "multi_hop_2", 2, ("a", "b")),
            (3, "multi_hop_2", 2, ()),
            (4, "single_hop", 1, ("c",)),
        )
    ]
    run = make_scored_run(make_answer_set(make_question_set(specs=specs)))
    # An append-only table: what the answers retrieved is set when they are made.
    with append_only.suspended():
        for external, ids in (("q1", ["x", "a"]), ("q2", ["a", "b"]), ("q3", ["a"])):
            Answer.objects.filter(question__external_id=external).update(retrieved_ids=ids, retrieves=True)
        Answer.objects.filter(question__external_id="q4").update(retrieved_ids=None, retrieves=False)
    retrieval = retrieval_by_depth(run)
    assert retrieval.overall is not None
    assert (retrieval.depth, retrieval.overall.count, retrieval.unlabelled, retrieval.missing) == (5, 2, 1, 1)
    assert retrieval.overall.values["recall_at_k"][:2] == (0.25, 1.0)  # at 1: 0 and 1/2; at 2: 1 and 1
    assert retrieval.overall.values["reciprocal_rank"][:2] == (0.5, 0.75)
    assert [(curve.name, curve.count) for curve in retrieval.by_category] == [("single_hop", 1), ("multi_hop_2", 1)]
    assert [(curve.hops, curve.values["hit_at_k"][0]) for curve in retrieval.by_hops] == [(1, 0.0), (2, 1.0)]
    client = Client()
    client.force_login(make_user(Role.VIEWER, run.project))
    page = client.get(reverse("run-retrieval", args=[run.pk])).content.decode()
    assert "1 question names no relevant passage" in page
    assert page.count("<polyline") == 6 * 3
    assert "2 facts (n=1)" in client.get(reverse("run-retrieval", args=[run.pk]), {"by": "hops"}).content.decode()
