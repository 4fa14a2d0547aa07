"""The answer page: every score with its reason, decisions, the history, and recorded exposures."""

from __future__ import annotations

import json
import re
from datetime import datetime

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import translation

from evaluation.core.roles import Role
from evaluation.judging.lexical import BaselineReason
from evaluation.models import Answer, Run, Score, User
from evaluation.storage import append_only
from review.evidence.rating_input import RatingInput
from review.models import Exposure, Override, ReviewQueue
from review.ratings.pages.item import TextPiece, TextSpan, split_at_spans
from review.ratings.submitting import submit
from tests.factories import make_answer_set, make_question_set, make_scored_run, make_user, question_spec
from tests.pages.markup import compact
from tests.pages.world import World, make_world
from tests.review.builders import (
    FAILED,
    NOT_APPLICABLE,
    answer_rows,
    answers_to,
    assignment_of,
    draw_into,
    make_report,
    metric,
    queue_for,
    rate,
    run_over,
    score_all,
)
from tests.review.sampled import fill

pytestmark = pytest.mark.django_db


@pytest.fixture
def world() -> World:
    return make_world()


def answer_address(world: World) -> str:
    return f"{reverse('answer', args=[world.answer.pk])}?run={world.run.pk}"


def decision_form(world: World, **fields: object) -> dict[str, object]:
    metric = world.queue.metrics.get(metric__name="correctness").metric_id
    return {
        "metric": metric,
        "run": world.run.pk,
        "value:correctness": 2,
        "reason": "It names the wrong city.",
    } | fields


def post_override(world: World, role: str, **fields: object) -> int:
    url = reverse("answer-override", args=[world.answer.pk])
    return world.client(role).post(url, decision_form(world, **fields)).status_code


def test_page_shows_every_score_with_its_reason(world: World) -> None:
    page = compact(world.client("viewer").get(answer_address(world)).content.decode())
    assert page.count("The judge&#x27;s reason.") >= 2  # correctness and faithfulness, and again in the history
    assert world.answer.question.text in page


def test_page_links_to_the_answers_before_and_after(world: World) -> None:
    answers = list(Answer.objects.filter(answer_set=world.answer.answer_set).order_by("pk"))
    for position, answer in enumerate(answers):
        page = world.client("viewer").get(reverse("answer", args=[answer.pk])).content.decode()
        for rel, neighbour in (
            ("prev", answers[position - 1 : position]),
            ("next", answers[position + 1 : position + 2]),
        ):
            links = re.findall(rf'rel="{rel}"\s+href="/answers/(\d+)/', page)
            assert links == [str(row.pk) for row in neighbour]


def test_baseline_reasons_are_translated_and_written_reasons_are_not(world: World) -> None:
    with append_only.suspended():
        Score.objects.filter(answer=world.answer).update(reason=BaselineReason.ECHO.value.ko)
    post_override(world, "lead", reason=BaselineReason.NO_CLAIM.value.ko)
    page = compact(world.client("viewer").get(answer_address(world)).content.decode())
    assert page.count(BaselineReason.ECHO.value.en) >= 2
    assert BaselineReason.ECHO.value.ko not in page
    assert BaselineReason.NO_CLAIM.value.ko in page


def test_decision_reports_its_effect_on_score_and_none_on_agreement() -> None:
    run = fill(run_over(answers_to(["a"] * 4)), [5, 5, 5, 5])
    lead = Client()
    lead.force_login(make_user(Role.LEAD, run.project))
    answer = answer_rows(run)[0]
    url, row = reverse("answer-override", args=[answer.pk]), metric("correctness")
    fields = {"metric": row.pk, "run": run.pk, "value:correctness": 1, "reason": "It names the wrong city."}
    page = compact(lead.post(url, fields, follow=True).content.decode())
    # .75 + .25 x 5 / 5 before; the mean of 1, 5, 5 and 5 is 4: .75 + .25 x 4 / 5
    assert "Reviewed score of the run: 1.000 before, 0.950 now. Agreement doesn&#x27;t change" in page
    expert = make_user()
    queue = queue_for(run, [row], [expert])
    draw_into(queue, run, [("all", 1.0, True)] * 4)
    rate(assignment_of(queue, answer, expert, run), row, 4)
    expert_client = Client()
    expert_client.force_login(expert)
    content = expert_client.post(url, fields | {"value:correctness": 2}, follow=True).content.decode()
    assert "because decisions made after seeing the judge are not blind" in content
    assert "Reviewed score" not in content  # who sees no runs is not told of them


def test_override_counts_and_history_keeps_the_judge(world: World) -> None:
    assert post_override(world, "lead") == 302
    page = compact(world.client("lead").get(answer_address(world)).content.decode())
    history = page.partition('id="history"')[2]
    assert "It names the wrong city." in history
    assert "The judge&#x27;s reason." in history
    correctness = page.partition(">Correctness</h3>")[2][:300]
    assert re.search(r'class="mark expert"[^>]*></span><b>2</b>', correctness)


@pytest.mark.parametrize(
    ("fields", "expected_input"),
    [
        ({"reason": " "}, 'value="2" checked'),
        ({"reason": "r" * 10_001}, "r" * 10_001),
        ({"value:correctness": "9"}, "It names the wrong city."),
        ({"value:correctness": "nan"}, "It names the wrong city."),
        ({"value:correctness": ""}, "It names the wrong city."),
    ],
)
def test_refused_override_keeps_input(world: World, fields: dict[str, object], expected_input: str) -> None:
    response = world.client("lead").post(
        reverse("answer-override", args=[world.answer.pk]), decision_form(world, **fields)
    )
    assert response.status_code == 409
    assert 'role="alert"' in response.content.decode()
    assert expected_input in re.sub(r' data-digit="\d"', "", compact(response.content.decode()))
    assert not Override.objects.exists()


def test_revert_adds_a_new_row(world: World) -> None:
    post_override(world, "lead")
    url = reverse("answer-revert", args=[world.answer.pk])
    assert world.client("lead").post(url, decision_form(world, reason="A slip.")).status_code == 302
    assert list(Override.objects.order_by("seq").values_list("kind", flat=True)) == ["override", "revert"]


def test_expert_may_override_after_rating_and_sees_no_other_rating(world: World) -> None:
    ratings = {"value:correctness": 1, "value:faithfulness": 1, "form_key": "k", "comment": "mine alone"}
    member = world.client("member")
    assert member.get(answer_address(world)).status_code == 404
    member.post(reverse("review-submit", args=[world.assignment.pk]), ratings)
    page = member.get(answer_address(world))
    assert page.status_code == 200
    assert "mine alone" in page.content.decode()
    assert post_override(world, "member") == 302
    assert post_override(world, "evaluator") == 403


def test_exposure_is_recorded_once(world: World) -> None:
    for _ in range(2):
        world.client("viewer").get(answer_address(world))
        world.client("evaluator").get(answer_address(world))
    exposures = Exposure.objects.order_by("pk").values_list("user", "object_id")
    assert list(exposures) == [(world.people[role].pk, world.answer.pk) for role in ("viewer", "evaluator")]


def test_run_without_the_answer_is_not_found(world: World) -> None:
    foreign = make_scored_run()
    for query in (f"run={foreign.pk}", "run=x", "run=999999"):
        assert world.client("lead").get(f"{reverse('answer', args=[world.answer.pk])}?{query}").status_code == 404
    assert world.client("lead").get(reverse("answer", args=[world.answer.pk])).status_code == 200


def test_page_links_the_answer_in_other_runs(world: World) -> None:
    other_run = make_scored_run(world.run.answer_set, name="Judged again")
    make_user(Role.LEAD, world.project)
    assert f"?run={other_run.pk}" in world.client("lead").get(answer_address(world)).content.decode()


def test_text_pieces_lose_nothing_and_never_overlap() -> None:
    # "The fee is 100 won.": 4-7 "fee", 11-18 "100 won"; 12-15 lies inside the second, 40-50 outside of the text.
    text = "The fee is 100 won."
    spans = [TextSpan(11, 18, "keyword"), TextSpan(4, 7, "keyword"), TextSpan(12, 15, "flag"), TextSpan(40, 50, "flag")]
    pieces = split_at_spans(text, spans)
    assert pieces == (
        TextPiece("The ", ""), TextPiece("fee", "keyword"), TextPiece(" is ", ""), TextPiece("100 won", "keyword"),
        TextPiece(".", ""),
    )  # fmt: skip
    assert "".join(piece.text for piece in pieces) == text


def test_override_offers_anchors_of_a_real_scale() -> None:
    run = make_scored_run(values=[0.5], metrics=["accuracy"])
    client = Client()
    client.force_login(make_user(Role.LEAD, run.project))
    page = compact(client.get(reverse("answer", args=[run.answer_set.answers.first().pk])).content.decode())
    # the levels of the rubric regulation_quality, some of them written there as whole numbers
    assert re.findall(r'name="value:accuracy" value="([\d.]+)"', page) == ["0", "0.3", "0.5", "0.7", "0.85", "1"]


def test_inapplicable_metrics_and_history_are_folded() -> None:
    run = run_over(answers_to(["a"]))
    score_all(run, {"correctness": [4], "keyword_hit": [NOT_APPLICABLE], "faithfulness": [FAILED]})
    client = Client(headers={"accept-language": "en"})
    client.force_login(make_user(Role.LEAD, run.project))
    page = compact(client.get(reverse("answer", args=[answer_rows(run)[0].pk]), {"run": run.pk}).content.decode())
    visible, folded = page.split("<summary>1 metric does not apply to this answer</summary>")
    keys = {name: f'id="metric-{metric(name).pk}"' for name in ("correctness", "faithfulness", "keyword_hit")}
    assert {name: key in visible for name, key in keys.items()} == {
        "correctness": True,
        "faithfulness": True,
        "keyword_hit": False,
    }
    assert keys["keyword_hit"] in folded
    assert '<details class="card" id="history">' in page


def test_unnamed_run_is_labelled_by_system_and_date() -> None:
    run = make_scored_run(make_answer_set(system="my-rag"))
    Run.objects.filter(pk=run.pk).update(created_at=datetime.fromisoformat("2026-11-22T23:30:00+00:00"))
    named_run = make_scored_run(run.answer_set, name="second look")
    client = Client(headers={"accept-language": "en"})
    client.force_login(make_user(Role.LEAD, run.project))
    label = f"my-rag v1 · 2026-11-22 (#{run.pk})"
    pages = [
        reverse("answer", args=[run.answer_set.answers.first().pk]),
        reverse("run", args=[run.pk]),
        reverse("run-list"),
        f"{reverse('run-compare')}?runs={run.pk},{named_run.pk}",
        f"{reverse('queue-new')}?run={named_run.pk}",
        reverse("run-agreement", args=[run.pk]),
    ]
    assert [path for path in pages if label not in client.get(path).content.decode()] == []
    with translation.override("en"):
        assert make_report(run).header.name == label


def test_history_names_runs_and_metrics(world: World) -> None:
    make_scored_run(world.run.answer_set, values=[1 / 3], metrics=["keyword_coverage"], name="second look")
    User.objects.filter(pk=world.people["lead"].pk).update(last_name="김", first_name="서연")
    assert post_override(world, "lead") == 302
    lead = Client(headers={"accept-language": "en"})
    lead.force_login(world.people["lead"])
    history = compact(lead.get(answer_address(world)).content.decode()).partition('id="history"')[2]
    assert "<small>second look</small>" in history
    assert "<td>Keyword coverage</td>" in history
    assert "<b>0.33</b>" in history
    assert "김서연" in history


def test_expert_may_override_after_queue_closes_without_run_link(
    world: World,
) -> None:
    ratings = {"correctness": RatingInput(value=3), "faithfulness": RatingInput(value=3)}
    submit(world.assignment, ratings, idempotency_key="k", by=world.people["member"])
    member = world.client("member")
    assert answer_address(world) not in member.get(reverse("my-ratings")).content.decode()  # rating again comes before
    ReviewQueue.objects.filter(pk=world.queue.pk).update(state=ReviewQueue.State.CLOSED)
    assert answer_address(world) in member.get(reverse("my-ratings")).content.decode()
    page = compact(member.get(answer_address(world)).content.decode())
    assert f'href="{reverse("run", args=[world.run.pk])}"' not in page
    assert (
        f'href="{reverse("run", args=[world.run.pk])}"'
        in world.client("lead").get(answer_address(world)).content.decode()
    )


def test_graph_path_is_shown_as_diagram_and_text(world: World) -> None:
    question_set = make_question_set(world.project, [question_spec(1, hops=2)])
    answers = make_answer_set(question_set, texts=["A city."])
    row = answers.answers.get()
    graph = {
        "entities": ["Fund <b>", {"name": "지수"}],
        "relations": [["Fund <b>", "tracks", "지수"]],
        "paths": [[["Fund <b>", "tracks", "지수"], ["지수", "", "A very long name of a company that goes on"]]],
        "communities": [4],
    }
    with append_only.suspended():
        Answer.objects.filter(pk=row.pk).update(metadata={"graph": graph})
    run = run_over(answers, judged=False)
    page = compact(world.client("lead").get(reverse("answer", args=[row.pk]), {"run": run.pk}).content.decode())
    assert "Path through the graph" in page
    assert re.search(r"2 hops\.\s+The question requires 2\.", page)
    assert "<b>" not in page.split('id="graph"')[1].split("</section>")[0]
    assert "Fund &lt;b&gt; → <i>tracks</i> → 지수 → A very long name of a company that goes on" in page
    assert page.count("<rect") == 3
    assert "1 relation" in page


def test_answer_without_graph_shows_no_graph_section(world: World) -> None:
    assert "through the graph" not in world.client("lead").get(answer_address(world)).content.decode()


def test_run_page_shows_results_by_hops(world: World) -> None:
    question_set = make_question_set(world.project, [question_spec(n, hops=1 + n % 2, category="a") for n in range(4)])
    run = run_over(make_answer_set(question_set))
    score_all(run, {"correctness": [5, 1, 5, 1], "faithfulness": [5, 1, 5, 1], "completeness": [5, 1, 5, 1]})
    lines = make_report(run).hops
    assert [(group.hops, group.answers) for group in lines] == [(1, 2), (2, 2)]
    page = compact(world.client("lead").get(reverse("run", args=[run.pk])).content.decode())
    # without an overall score there would be dashes only
    has_overall = any(group.judge_only.value is not None for group in lines)
    assert ("By the number of facts to link" in page) == has_overall
    report = world.client("lead").get(reverse("run-report", args=[run.pk]), {"format": "json"})
    by_hops = json.loads(b"".join(report.streaming_content))["by_hops"]
    assert {name: group["answers"] for name, group in by_hops.items()} == {"1": 2, "2": 2}
