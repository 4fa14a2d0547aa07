"""From answers to a run by web: a file with its preview, answers that are there, a system that is asked; what it takes;
the start. Nothing is stored before a person confirms it."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from evaluation.core.errors import DomainError
from evaluation.core.roles import Role
from evaluation.core.samples import QuestionSpec
from evaluation.judges.prices import price_table
from evaluation.judges.shipped import default_judge, judge_row, save_judge
from evaluation.models import AnswerSet, Attempt, Endpoint, ImportBatch, Project, QuestionSet, Reply, Run, WorkUnit
from evaluation.models.run_spec import RunSpec
from evaluation.runs.creation import CollectionRequest, launch_run
from evaluation.runs.execution import drain
from evaluation.runs.planning import plan_run, plan_sentences
from examples.rag_service import RagService
from tests.evaluation.systems.asking import questions, toy_system
from tests.evaluation.systems.conftest import asked, service
from tests.factories import make_answer_set, make_project, make_question_set, make_user, question_spec

__all__ = ["asked", "service"]

pytestmark = pytest.mark.django_db
NEW = "evaluation-new"


@pytest.fixture
def project() -> Project:
    return make_project()


@pytest.fixture
def client(project: Project) -> Client:
    client = Client(headers={"accept-language": "en"})
    client.force_login(make_user(Role.EVALUATOR, project))
    return client


@pytest.fixture
def asked_about(project: Project) -> QuestionSet:
    return make_question_set(project)


@pytest.fixture
def endpoint(project: Project) -> Endpoint:
    return Endpoint.objects.create(name="llm", base_url="https://llm.example/v1", max_concurrency=4)


@pytest.fixture
def priced(settings: Any, tmp_path: Any) -> None:
    """A dollar for a million tokens in, two for a million out."""
    file = tmp_path / "prices.yaml"
    file.write_text('prices: [{model: m, since: 2026-01-01, input: "1", output: "2"}]')
    settings.CONCORD_PRICES = str(file)
    price_table()


def rows(asked_about: QuestionSet, **more: Any) -> list[dict[str, Any]]:
    return [
        {"question_id": one.external_id, "answer": "Because.", "contexts": ["A passage."], "mood": "good", **more}
        for one in asked_about.questions.order_by("position")
    ]


def upload(client: Client, asked_about: QuestionSet, content: Any, system: str = "my-rag") -> Any:
    file = SimpleUploadedFile("answers.json", json.dumps(content).encode())
    return client.post(reverse(NEW), {"questions": asked_about.pk, "system": system, "file": file})


def test_a_file_is_previewed_imported_and_leads_to_what_is_measured(client: Client, asked_about: QuestionSet) -> None:
    found = rows(asked_about)[:-1]
    preview = upload(client, asked_about, found).headers["Location"]
    page = client.get(preview).content.decode()
    assert not AnswerSet.objects.exists()
    assert f"{len(found)} answers were understood." in page
    assert "Kept as metadata, without influence on any figure: mood" in page
    assert asked_about.questions.order_by("-position")[0].external_id in page  # the one without an answer
    twice = [client.post(f"{preview}confirm/").headers["Location"] for _ in range(2)]
    answers = AnswerSet.objects.get()
    assert twice == [f"{reverse('evaluation-run')}?answers={answers.pk}"] * 2
    assert (answers.answers.count(), answers.system_version.system.name) == (len(found), "my-rag")
    assert client.get(preview).headers["Location"] == twice[0]


def test_what_is_wrong_with_a_file_is_said_by_its_place(client: Client, asked_about: QuestionSet) -> None:
    response = upload(client, asked_about, [{"question_id": "nobody", "answer": "x"}])
    assert response.status_code == 400
    assert "nobody" in response.content.decode()
    assert not ImportBatch.objects.exists()


def test_an_upload_of_questions_is_none_of_answers(client: Client, project: Project, asked_about: QuestionSet) -> None:
    upload(client, asked_about, rows(asked_about))
    uuid = ImportBatch.objects.get().uuid
    assert client.get(reverse("question-set-preview", args=[uuid])).status_code == 404


def start_page(client: Client, answers: AnswerSet, **said: Any) -> Any:
    fields = {"profile": "graphrag", "judge": "-", "repeat": 1, "token": str(uuid4()), **said}
    return client.post(f"{reverse('evaluation-run')}?answers={answers.pk}", fields)


def test_a_run_starts_after_its_plan_was_shown_and_once(client: Client, asked_about: QuestionSet) -> None:
    answers = make_answer_set(asked_about)
    token = str(uuid4())
    shown = start_page(client, answers, token=token, start="1")
    assert not Run.objects.exists()
    assert "costs nothing" in shown.content.decode()
    planned_for = shown.context["page"].form.digest
    other = start_page(client, answers, token=token, start="1", planned=planned_for, judge="baseline")
    assert other.status_code == 200  # something else was chosen meanwhile: its plan first
    assert not Run.objects.exists()
    started = [start_page(client, answers, token=token, start="1", planned=planned_for) for _ in range(2)]
    run = Run.objects.get()
    assert [one.headers["Location"] for one in started] == [reverse("run", args=[run.pk])] * 2
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED


def test_a_profile_says_what_it_needs_and_what_this_set_lacks(client: Client, project: Project) -> None:
    answers = make_answer_set(make_question_set(project, specs=[QuestionSpec(id="q", category="c", text="Why?")]))
    page = client.get(f"{reverse('evaluation-run')}?answers={answers.pk}").context["page"]
    found = {one.spec.name: one for one in page.profiles}
    assert page.profiles[0].spec.name == "standard"
    assert "expected keywords" in found["graphrag"].missing
    assert "expected keywords" not in found["graphrag"].available
    assert found["standard"].description.startswith("For each answer")


def test_a_system_is_asked_from_the_page(client: Client, asked: RagService) -> None:
    questioned = questions(3)
    version = toy_system(asked, questioned)
    client.force_login(make_user(Role.EVALUATOR, questioned.project))
    chosen = {"questions": questioned.pk, "system": version.pk, "type": "full_rag", "k": 2}
    address = reverse("evaluation-run", query=chosen)
    fields = {"profile": "graphrag", "judge": "-", "repeat": 1, "token": str(uuid4())}
    shown = client.post(address, fields | {"plan": "1"})
    assert "3 questions to the system" in shown.content.decode()
    assert (AnswerSet.objects.count(), len(asked.asked)) == (0, 0)
    client.post(address, fields | {"start": "1", "planned": shown.context["page"].form.digest})
    run = drain(Run.objects.get().pk, seconds=30)
    assert (run.state, run.answer_set.k, len(asked.asked)) == (Run.State.COMPLETED, 2, 3)


def test_one_question_is_tried_and_nothing_stored(client: Client, asked: RagService) -> None:
    questioned = questions(2)
    good, bad = toy_system(asked, questioned), toy_system(asked, questioned, "/fault/html")
    client.force_login(make_user(Role.EVALUATOR, questioned.project))
    fields = {"questions": questioned.pk, "type": "full_rag", "k": 2}
    address = reverse("evaluation-try")
    assert client.get(address, fields | {"system": bad.pk}).context["form"]["k"].value() == 2
    failed = client.post(address, fields | {"system": bad.pk})
    assert "There is no answer" in failed.content.decode()
    # Only the newest version is offered, which is what a run would ask.
    assert client.post(address, fields | {"system": good.pk}).status_code == 400
    fine = toy_system(asked, questioned, "/ask", timeout_seconds=2.0)
    page = client.post(address, fields | {"system": fine.pk, "question": "How long <b>?"}).content.decode()
    assert "The system answered" in page
    assert "How long &lt;b&gt;?" in page
    assert not AnswerSet.objects.exists()


def test_passages_alone_are_asked_for_without_a_judge(client: Client, asked: RagService) -> None:
    questioned = questions(1)
    version = toy_system(asked, questioned)
    client.force_login(make_user(Role.EVALUATOR, questioned.project))
    chosen = {"questions": questioned.pk, "system": version.pk, "type": "retrieval_only", "k": 2}
    page = client.get(reverse("evaluation-run", query=chosen)).context["page"]
    assert [value for value, _ in page.form.fields["judge"].choices] == ["-"]


def test_questions_and_system_of_two_projects_are_refused(client: Client, asked: RagService) -> None:
    ours, foreign = questions(1), questions(1)
    version = toy_system(asked, foreign)
    user = make_user(Role.EVALUATOR, ours.project)
    user.grants.create(project=foreign.project, role=Role.EVALUATOR)
    client.force_login(user)
    chosen = {"questions": ours.pk, "system": version.pk, "type": "full_rag", "k": 2}
    response = client.get(reverse("evaluation-run", query=chosen))
    assert response.status_code == 400
    assert "another project" in response.content.decode()


def test_nothing_of_other_projects_is_offered_or_taken(client: Client, asked_about: QuestionSet) -> None:
    foreign = make_answer_set(make_question_set(make_project()))
    page = client.get(reverse(NEW)).content.decode()
    assert foreign.question_set.name not in page
    assert upload(client, foreign.question_set, rows(foreign.question_set)).status_code == 400
    assert client.get(f"{reverse('evaluation-run')}?answers={foreign.pk}").status_code == 404


def test_without_a_name_the_default_judges_the_only_one_or_nobody_by_chance(
    project: Project, endpoint: Endpoint
) -> None:
    assert judge_row(project).is_baseline
    save_judge(project, "first", endpoint, model="m", language="en")
    assert default_judge(project) == "first"
    save_judge(project, "second", endpoint, model="m", language="ko")
    with pytest.raises(DomainError, match="judge_needed"):
        judge_row(project)
    project.default_judge = "first"
    assert judge_row(project).name == "first"
    project.default_judge = "baseline"
    assert judge_row(project).is_baseline


def test_the_form_preselects_the_default_and_asks_where_there_is_none(
    client: Client, project: Project, endpoint: Endpoint, asked_about: QuestionSet
) -> None:
    answers = make_answer_set(asked_about)
    for name in ("first", "second"):
        save_judge(project, name, endpoint, model=name, language="en")
    address = f"{reverse('evaluation-run')}?answers={answers.pk}"
    assert client.get(address).context["page"].form["judge"].initial == ""
    assert start_page(client, answers, judge="", plan="1").status_code == 400
    Project.objects.filter(pk=project.pk).update(default_judge="second")
    assert client.get(address).context["page"].form["judge"].initial == "second"


@pytest.mark.parametrize(("default", "selected"), [("", "standard"), ("graphrag", "graphrag"), ("ragas", "ragas")])
def test_the_form_lists_and_selects_the_default_profile_first(
    client: Client, project: Project, asked_about: QuestionSet, default: str, selected: str
) -> None:
    Project.objects.filter(pk=project.pk).update(default_profile=default)
    page = client.get(f"{reverse('evaluation-run')}?answers={make_answer_set(asked_about).pk}").context["page"]
    assert page.form["profile"].initial == selected
    assert page.profiles[0].spec.name == selected


@pytest.mark.usefixtures("priced")
def test_the_plan_tells_calls_tokens_money_and_time(
    project: Project, endpoint: Endpoint, asked_about: QuestionSet
) -> None:
    save_judge(project, "first", endpoint, model="m", language="en")
    answers = make_answer_set(asked_about)
    wanted = RunSpec(profile="graphrag", judge="first", baseline=False)
    plan = plan_run(answers, wanted, None)
    assert not Run.objects.exists()
    (calls,) = plan.paid
    assert (plan.answers, calls.measured, calls.seconds) == (asked_about.questions.count(), False, None)
    assert calls.tokens_out == 300 * calls.calls  # what a reply is taken for that nobody has seen
    assert calls.tokens_in > 100 * calls.calls  # the prompts hold the rubric
    assert plan.cost == Decimal(calls.tokens_in + 2 * calls.tokens_out) / 1_000_000

    remember(answers, wanted, tokens_in=1000, tokens_out=50, elapsed_seconds=2.0)
    plan = plan_run(answers, wanted, None)
    (calls,) = plan.paid
    judged = plan.calls
    assert (calls.measured, calls.tokens_in, calls.tokens_out) == (True, 1000 * judged, 50 * judged)
    assert calls.seconds == 2.0 * -(-judged // 4)  # four calls at a time
    Endpoint.objects.update(requests_per_minute=1)
    assert plan_run(answers, wanted, None).seconds == 60.0 * judged


@pytest.mark.usefixtures("priced")
def test_the_plan_tells_between_what_the_cost_will_likely_be(
    project: Project, endpoint: Endpoint, asked_about: QuestionSet
) -> None:
    save_judge(project, "first", endpoint, model="m", language="en")
    answers = make_answer_set(asked_about)
    wanted = RunSpec(profile="graphrag", judge="first", baseline=False)
    remember(answers, wanted, tokens_in=1000, tokens_out=50)
    plan = plan_run(answers, wanted, None)
    assert plan.cost is not None  # a single reply tells nothing of how they differ: a third either way
    assert plan.cost_high == pytest.approx(plan.cost * 4 / 3)
    remember(answers, wanted, tokens_in=1400, tokens_out=50)
    plan = plan_run(answers, wanted, None)
    (calls,) = plan.paid
    # 1,050 and 1,450 tokens: mean 1,250, standard deviation 282.84
    assert calls.spread == pytest.approx(1.96 * 282.84 / 1250 * (1 / 2 + 1 / calls.calls) ** 0.5, rel=1e-4)
    assert plan.cost is not None
    assert plan.cost_low is not None
    assert float(plan.cost_low) == pytest.approx(float(plan.cost) * (1 - calls.spread))
    assert "$" in plan_sentences(plan)[1]
    assert " to " in plan_sentences(plan)[1]


def remember(answers: AnswerSet, wanted: RunSpec, **reply: Any) -> None:
    """One call of an earlier run like this."""
    run = launch_run(answers, wanted, None)
    unit = WorkUnit.objects.filter(run=run, kind="judge").earliest("pk")
    attempt = Attempt.objects.create(unit=unit, fence=1, round=0, number=1)
    Reply.objects.create(attempt=attempt, outcome="ok", **reply)


def test_asking_takes_as_long_as_the_system_took_before(asked: RagService) -> None:
    questioned = questions(3)
    version = toy_system(asked, questioned)
    source, wanted = (
        CollectionRequest(question_set=questioned, version=version),
        RunSpec(profile="graphrag", judge=None),
    )
    assert plan_run(source, wanted, None).seconds is None
    earlier = make_answer_set(questioned)
    earlier.system_version = version
    earlier.save()
    earlier.answers.model.objects.create(
        answer_set=earlier, question=questioned.questions.earliest("pk"), sample=7, status="ok", latency_seconds=4.0
    )
    version.system.max_concurrency = 2
    version.system.save()
    assert plan_run(source, wanted, None).questions == 3
    assert plan_run(source, wanted, None).seconds == pytest.approx(4.25)  # 2 rounds of two × 2.125 s


def test_runs_are_steered_from_the_back_office(project: Project, asked_about: QuestionSet) -> None:
    lead, foreign = Client(headers={"accept-language": "en"}), make_answer_set()
    lead.force_login(make_user(Role.LEAD, project))
    mine = launch_run(make_answer_set(asked_about), RunSpec(profile="graphrag", judge=None), None)
    other = launch_run(foreign, RunSpec(profile="graphrag", judge=None), None)
    chosen = {"action": "pause", "_selected_action": [mine.pk, other.pk]}
    lead.post(reverse("admin:evaluation_run_changelist"), chosen)
    mine.refresh_from_db()
    other.refresh_from_db()
    assert (mine.state, other.state) == (Run.State.PAUSED, Run.State.RUNNING)
    for model in ("run", "answerset"):
        assert lead.get(reverse(f"admin:evaluation_{model}_add")).headers["Location"] == reverse(NEW)
    viewer = Client()
    viewer.force_login(make_user(Role.VIEWER, project))
    assert viewer.post(reverse("admin:evaluation_run_changelist"), chosen | {"action": "resume"}).status_code in {
        302,
        403,
    }
    mine.refresh_from_db()
    assert mine.state == Run.State.PAUSED


def test_reasons_come_in_the_language_of_the_questions_unless_another_is_chosen(
    client: Client, project: Project, endpoint: Endpoint
) -> None:
    save_judge(project, "gpt", endpoint, model="m", language="en")
    korean = [QuestionSpec(id=f"q{n}", category="c", text=text) for n, text in enumerate(["왜요?", "누구요?", "Why?"])]
    answers = make_answer_set(make_question_set(project, specs=korean))
    page = client.get(f"{reverse('evaluation-run')}?answers={answers.pk}").context["page"]
    assert page.form["language"].initial == "ko"
    assert page.form.fields["judge"].initial == "gpt"
    for language in ("ko", "en"):
        shown = start_page(client, answers, judge="gpt", language=language, token=str(uuid4()))
        assert shown.context["page"].form.spec.language == language
    run = launch_run(answers, shown.context["page"].form.spec, None)
    assert set(run.judges.values_list("rubric_version__language", flat=True)) == {"en"}


def test_the_preview_asks_where_no_passage_is_one_that_should_be_found(client: Client, project: Project) -> None:
    asked_about = make_question_set(project, [question_spec(1, ground_truth_chunk_ids=("guide-1",))])
    page = upload(client, asked_about, rows(asked_about, contexts=[{"id": "Guide 1", "text": "A guide."}]))
    preview = client.get(page.headers["Location"]).content.decode()
    assert "The file has: Guide 1. The questions have: guide-1." in preview
    client.post(f"{page.headers['Location']}confirm/")
    assert AnswerSet.objects.get().answers.count() == 1  # the person saw it and confirmed


def test_the_offline_baseline_is_no_judge_call(project: Project, endpoint: Endpoint, asked_about: QuestionSet) -> None:
    save_judge(project, "first", endpoint, model="m", language="en")
    answers = make_answer_set(asked_about)
    alone = plan_run(answers, RunSpec(profile="graphrag", judge="first", baseline=False), None)
    both = plan_run(answers, RunSpec(profile="graphrag", judge="first", baseline=True), None)
    assert both.units > alone.units
    assert both.calls == alone.calls == sum(one.calls for one in both.paid)
    assert plan_run(answers, RunSpec(profile="graphrag", judge="baseline"), None).calls == 0
