"""Uploads of answers and runs by web: preview of a file, existing answers, collection from a system, estimates, and the
start. Nothing is stored before a user confirms it."""

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
from tests.evaluation.systems.asking import make_questions, toy_system
from tests.evaluation.systems.conftest import rag_service, service
from tests.factories import make_answer_set, make_project, make_question_set, make_user, question_spec

__all__ = ["rag_service", "service"]

pytestmark = pytest.mark.django_db
UPLOAD_ROUTE = "evaluation-new"


@pytest.fixture
def project() -> Project:
    return make_project()


@pytest.fixture
def client(project: Project) -> Client:
    client = Client(headers={"accept-language": "en"})
    client.force_login(make_user(Role.EVALUATOR, project))
    return client


@pytest.fixture
def question_set(project: Project) -> QuestionSet:
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


def answer_rows(question_set: QuestionSet, **extra_fields: Any) -> list[dict[str, Any]]:
    return [
        {
            "question_id": question.external_id,
            "answer": "Because.",
            "contexts": ["A passage."],
            "mood": "good",
            **extra_fields,
        }
        for question in question_set.questions.order_by("position")
    ]


def upload(client: Client, question_set: QuestionSet, content: Any, system: str = "my-rag") -> Any:
    file = SimpleUploadedFile("answers.json", json.dumps(content).encode())
    return client.post(reverse(UPLOAD_ROUTE), {"questions": question_set.pk, "system": system, "file": file})


def test_file_is_previewed_and_imported_before_the_run_form(client: Client, question_set: QuestionSet) -> None:
    uploaded = answer_rows(question_set)[:-1]
    preview = upload(client, question_set, uploaded).headers["Location"]
    page = client.get(preview).content.decode()
    assert not AnswerSet.objects.exists()
    assert f"{len(uploaded)} answers were read." in page
    assert "Kept as metadata, not used in any figure: mood" in page
    assert question_set.questions.order_by("-position")[0].external_id in page  # the one without an answer
    redirects = [client.post(f"{preview}confirm/").headers["Location"] for _ in range(2)]
    answers = AnswerSet.objects.get()
    assert redirects == [f"{reverse('evaluation-run')}?answers={answers.pk}"] * 2
    assert (answers.answers.count(), answers.system_version.system.name) == (len(uploaded), "my-rag")
    assert client.get(preview).headers["Location"] == redirects[0]


def test_file_errors_are_reported_with_their_place(client: Client, question_set: QuestionSet) -> None:
    response = upload(client, question_set, [{"question_id": "nobody", "answer": "x"}])
    assert response.status_code == 400
    assert "nobody" in response.content.decode()
    assert not ImportBatch.objects.exists()


def test_answer_upload_is_not_shown_as_question_upload(
    client: Client, project: Project, question_set: QuestionSet
) -> None:
    upload(client, question_set, answer_rows(question_set))
    uuid = ImportBatch.objects.get().uuid
    assert client.get(reverse("question-set-preview", args=[uuid])).status_code == 404


def post_run_form(client: Client, answers: AnswerSet, **overrides: Any) -> Any:
    fields = {"profile": "graphrag", "judge": "-", "repeat": 1, "token": str(uuid4()), **overrides}
    return client.post(f"{reverse('evaluation-run')}?answers={answers.pk}", fields)


def test_run_starts_once_after_its_plan_was_shown(client: Client, question_set: QuestionSet) -> None:
    answers = make_answer_set(question_set)
    token = str(uuid4())
    plan_response = post_run_form(client, answers, token=token, start="1")
    assert not Run.objects.exists()
    assert "no cost" in plan_response.content.decode()
    planned_for = plan_response.context["page"].form.digest
    changed_response = post_run_form(client, answers, token=token, start="1", planned=planned_for, judge="baseline")
    assert changed_response.status_code == 200  # something else was chosen meanwhile: its plan first
    assert not Run.objects.exists()
    responses = [post_run_form(client, answers, token=token, start="1", planned=planned_for) for _ in range(2)]
    run = Run.objects.get()
    assert [response.headers["Location"] for response in responses] == [reverse("run", args=[run.pk])] * 2
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED


def test_profile_shows_needed_and_missing_inputs(client: Client, project: Project) -> None:
    answers = make_answer_set(make_question_set(project, specs=[QuestionSpec(id="q", category="c", text="Why?")]))
    page = client.get(f"{reverse('evaluation-run')}?answers={answers.pk}").context["page"]
    profiles_by_name = {profile.spec.name: profile for profile in page.profiles}
    assert page.profiles[0].spec.name == "standard"
    assert "expected keywords" in profiles_by_name["graphrag"].missing
    assert "expected keywords" not in profiles_by_name["graphrag"].available
    assert profiles_by_name["standard"].description.startswith("For each answer")


def test_run_form_collects_answers_from_a_system(client: Client, rag_service: RagService) -> None:
    questioned = make_questions(3)
    version = toy_system(rag_service, questioned)
    client.force_login(make_user(Role.EVALUATOR, questioned.project))
    query = {"questions": questioned.pk, "system": version.pk, "type": "full_rag", "k": 2}
    address = reverse("evaluation-run", query=query)
    fields = {"profile": "graphrag", "judge": "-", "repeat": 1, "token": str(uuid4())}
    response = client.post(address, fields | {"plan": "1"})
    assert "3 questions to the system" in response.content.decode()
    assert (AnswerSet.objects.count(), len(rag_service.asked)) == (0, 0)
    client.post(address, fields | {"start": "1", "planned": response.context["page"].form.digest})
    run = drain(Run.objects.get().pk, seconds=30)
    assert (run.state, run.answer_set.k, len(rag_service.asked)) == (Run.State.COMPLETED, 2, 3)


def test_trying_one_question_stores_nothing(client: Client, rag_service: RagService) -> None:
    questioned = make_questions(2)
    working_system, failing_system = (
        toy_system(rag_service, questioned),
        toy_system(rag_service, questioned, "/fault/html"),
    )
    client.force_login(make_user(Role.EVALUATOR, questioned.project))
    fields = {"questions": questioned.pk, "type": "full_rag", "k": 2}
    address = reverse("evaluation-try")
    assert client.get(address, fields | {"system": failing_system.pk}).context["form"]["k"].value() == 2
    response = client.post(address, fields | {"system": failing_system.pk})
    assert "No answer" in response.content.decode()
    # Only the newest version is offered, which is what a run would ask.
    assert client.post(address, fields | {"system": working_system.pk}).status_code == 400
    fine = toy_system(rag_service, questioned, "/ask", timeout_seconds=2.0)
    page = client.post(address, fields | {"system": fine.pk, "question": "How long <b>?"}).content.decode()
    assert "The system answered" in page
    assert "How long &lt;b&gt;?" in page
    assert not AnswerSet.objects.exists()


def test_retrieval_only_collection_offers_no_judge(client: Client, rag_service: RagService) -> None:
    questioned = make_questions(1)
    version = toy_system(rag_service, questioned)
    client.force_login(make_user(Role.EVALUATOR, questioned.project))
    query = {"questions": questioned.pk, "system": version.pk, "type": "retrieval_only", "k": 2}
    page = client.get(reverse("evaluation-run", query=query)).context["page"]
    assert [value for value, _ in page.form.fields["judge"].choices] == ["-"]


def test_questions_and_system_of_different_projects_are_refused(client: Client, rag_service: RagService) -> None:
    own_questions, foreign_questions = make_questions(1), make_questions(1)
    version = toy_system(rag_service, foreign_questions)
    user = make_user(Role.EVALUATOR, own_questions.project)
    user.grants.create(project=foreign_questions.project, role=Role.EVALUATOR)
    client.force_login(user)
    query = {"questions": own_questions.pk, "system": version.pk, "type": "full_rag", "k": 2}
    response = client.get(reverse("evaluation-run", query=query))
    assert response.status_code == 400
    assert "different projects" in response.content.decode()


def test_other_projects_are_neither_offered_nor_accepted(client: Client, question_set: QuestionSet) -> None:
    foreign = make_answer_set(make_question_set(make_project()))
    page = client.get(reverse(UPLOAD_ROUTE)).content.decode()
    assert foreign.question_set.name not in page
    assert upload(client, foreign.question_set, answer_rows(foreign.question_set)).status_code == 400
    assert client.get(f"{reverse('evaluation-run')}?answers={foreign.pk}").status_code == 404


def test_default_judge_is_used_and_ambiguity_is_an_error(project: Project, endpoint: Endpoint) -> None:
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


def test_form_preselects_default_judge_or_requires_a_choice(
    client: Client, project: Project, endpoint: Endpoint, question_set: QuestionSet
) -> None:
    answers = make_answer_set(question_set)
    for name in ("first", "second"):
        save_judge(project, name, endpoint, model=name, language="en")
    address = f"{reverse('evaluation-run')}?answers={answers.pk}"
    assert client.get(address).context["page"].form["judge"].initial == ""
    assert post_run_form(client, answers, judge="", plan="1").status_code == 400
    Project.objects.filter(pk=project.pk).update(default_judge="second")
    assert client.get(address).context["page"].form["judge"].initial == "second"


@pytest.mark.parametrize(("default", "selected"), [("", "standard"), ("graphrag", "graphrag"), ("ragas", "ragas")])
def test_form_lists_and_selects_default_profile_first(
    client: Client, project: Project, question_set: QuestionSet, default: str, selected: str
) -> None:
    Project.objects.filter(pk=project.pk).update(default_profile=default)
    page = client.get(f"{reverse('evaluation-run')}?answers={make_answer_set(question_set).pk}").context["page"]
    assert page.form["profile"].initial == selected
    assert page.profiles[0].spec.name == selected


@pytest.mark.usefixtures("priced")
def test_plan_shows_calls_tokens_cost_and_time(project: Project, endpoint: Endpoint, question_set: QuestionSet) -> None:
    save_judge(project, "first", endpoint, model="m", language="en")
    answers = make_answer_set(question_set)
    run_spec = RunSpec(profile="graphrag", judge="first", baseline=False)
    plan = plan_run(answers, run_spec, None)
    assert not Run.objects.exists()
    (calls,) = plan.paid
    assert (plan.answers, calls.measured, calls.seconds) == (question_set.questions.count(), False, None)
    assert calls.tokens_out == 300 * calls.calls  # what a reply is taken for that nobody has seen
    assert calls.tokens_in > 100 * calls.calls  # the prompts hold the rubric
    assert plan.cost == Decimal(calls.tokens_in + 2 * calls.tokens_out) / 1_000_000

    record_call(answers, run_spec, tokens_in=1000, tokens_out=50, elapsed_seconds=2.0)
    plan = plan_run(answers, run_spec, None)
    (calls,) = plan.paid
    call_count = plan.calls
    assert (calls.measured, calls.tokens_in, calls.tokens_out) == (True, 1000 * call_count, 50 * call_count)
    assert calls.seconds == 2.0 * -(-call_count // 4)  # four calls at a time
    Endpoint.objects.update(requests_per_minute=1)
    assert plan_run(answers, run_spec, None).seconds == 60.0 * call_count


@pytest.mark.usefixtures("priced")
def test_plan_shows_cost_interval(project: Project, endpoint: Endpoint, question_set: QuestionSet) -> None:
    save_judge(project, "first", endpoint, model="m", language="en")
    answers = make_answer_set(question_set)
    run_spec = RunSpec(profile="graphrag", judge="first", baseline=False)
    record_call(answers, run_spec, tokens_in=1000, tokens_out=50)
    plan = plan_run(answers, run_spec, None)
    assert plan.cost is not None  # a single reply tells nothing of how they differ: a third either way
    assert plan.cost_high == pytest.approx(plan.cost * 4 / 3)
    record_call(answers, run_spec, tokens_in=1400, tokens_out=50)
    plan = plan_run(answers, run_spec, None)
    (calls,) = plan.paid
    # 1,050 and 1,450 tokens: mean 1,250, standard deviation 282.84
    assert calls.spread == pytest.approx(1.96 * 282.84 / 1250 * (1 / 2 + 1 / calls.calls) ** 0.5, rel=1e-4)
    assert plan.cost is not None
    assert plan.cost_low is not None
    assert float(plan.cost_low) == pytest.approx(float(plan.cost) * (1 - calls.spread))
    assert "$" in plan_sentences(plan)[1]
    assert " to " in plan_sentences(plan)[1]


def record_call(answers: AnswerSet, run_spec: RunSpec, **reply: Any) -> None:
    """Store one call of an earlier run with this specification."""
    run = launch_run(answers, run_spec, None)
    unit = WorkUnit.objects.filter(run=run, kind="judge").earliest("pk")
    attempt = Attempt.objects.create(unit=unit, fence=1, round=0, number=1)
    Reply.objects.create(attempt=attempt, outcome="ok", **reply)


def test_collection_time_is_estimated_from_earlier_latency(rag_service: RagService) -> None:
    questioned = make_questions(3)
    version = toy_system(rag_service, questioned)
    source, run_spec = (
        CollectionRequest(question_set=questioned, version=version),
        RunSpec(profile="graphrag", judge=None),
    )
    assert plan_run(source, run_spec, None).seconds is None
    earlier_answers = make_answer_set(questioned)
    earlier_answers.system_version = version
    earlier_answers.save()
    earlier_answers.answers.model.objects.create(
        answer_set=earlier_answers,
        question=questioned.questions.earliest("pk"),
        sample=7,
        status="ok",
        latency_seconds=4.0,
    )
    version.system.max_concurrency = 2
    version.system.save()
    assert plan_run(source, run_spec, None).questions == 3
    assert plan_run(source, run_spec, None).seconds == pytest.approx(4.25)  # 2 rounds of two × 2.125 s


def test_back_office_actions_control_own_runs_only(project: Project, question_set: QuestionSet) -> None:
    lead, foreign = Client(headers={"accept-language": "en"}), make_answer_set()
    lead.force_login(make_user(Role.LEAD, project))
    own_run = launch_run(make_answer_set(question_set), RunSpec(profile="graphrag", judge=None), None)
    foreign_run = launch_run(foreign, RunSpec(profile="graphrag", judge=None), None)
    action_data = {"action": "pause", "_selected_action": [own_run.pk, foreign_run.pk]}
    lead.post(reverse("admin:evaluation_run_changelist"), action_data)
    own_run.refresh_from_db()
    foreign_run.refresh_from_db()
    assert (own_run.state, foreign_run.state) == (Run.State.PAUSED, Run.State.RUNNING)
    for model in ("run", "answerset"):
        assert lead.get(reverse(f"admin:evaluation_{model}_add")).headers["Location"] == reverse(UPLOAD_ROUTE)
    viewer = Client()
    viewer.force_login(make_user(Role.VIEWER, project))
    assert viewer.post(reverse("admin:evaluation_run_changelist"), action_data | {"action": "resume"}).status_code in {
        302,
        403,
    }
    own_run.refresh_from_db()
    assert own_run.state == Run.State.PAUSED


def test_reason_language_defaults_to_language_of_questions(
    client: Client, project: Project, endpoint: Endpoint
) -> None:
    save_judge(project, "gpt", endpoint, model="m", language="en")
    korean = [QuestionSpec(id=f"q{n}", category="c", text=text) for n, text in enumerate(["왜요?", "누구요?", "Why?"])]
    answers = make_answer_set(make_question_set(project, specs=korean))
    page = client.get(f"{reverse('evaluation-run')}?answers={answers.pk}").context["page"]
    assert page.form["language"].initial == "ko"
    assert page.form.fields["judge"].initial == "gpt"
    for language in ("ko", "en"):
        response = post_run_form(client, answers, judge="gpt", language=language, token=str(uuid4()))
        assert response.context["page"].form.spec.language == language
    run = launch_run(answers, response.context["page"].form.spec, None)
    assert set(run.judges.values_list("rubric_version__language", flat=True)) == {"en"}


def test_preview_warns_when_no_passage_id_matches(client: Client, project: Project) -> None:
    question_set = make_question_set(project, [question_spec(1, ground_truth_chunk_ids=("guide-1",))])
    page = upload(client, question_set, answer_rows(question_set, contexts=[{"id": "Guide 1", "text": "A guide."}]))
    preview = client.get(page.headers["Location"]).content.decode()
    assert "IDs in the file: Guide 1. IDs in the questions: guide-1." in preview
    client.post(f"{page.headers['Location']}confirm/")
    assert AnswerSet.objects.get().answers.count() == 1  # the person saw it and confirmed


def test_offline_baseline_makes_no_judge_call(project: Project, endpoint: Endpoint, question_set: QuestionSet) -> None:
    save_judge(project, "first", endpoint, model="m", language="en")
    answers = make_answer_set(question_set)
    plan_without_baseline = plan_run(answers, RunSpec(profile="graphrag", judge="first", baseline=False), None)
    plan_with_baseline = plan_run(answers, RunSpec(profile="graphrag", judge="first", baseline=True), None)
    assert plan_with_baseline.units > plan_without_baseline.units
    assert (
        plan_with_baseline.calls == plan_without_baseline.calls == sum(paid.calls for paid in plan_with_baseline.paid)
    )
    assert plan_run(answers, RunSpec(profile="graphrag", judge="baseline"), None).calls == 0


def test_answers_with_unknown_headings_are_imported_from_the_mapping_page(
    client: Client, question_set: QuestionSet
) -> None:
    ids = list(question_set.questions.order_by("position").values_list("external_id", flat=True)[:2])
    text = "Query-Nr;BOT Reply;ctx_1;ctx_2;Ctx 3\n" + "".join(f"{id_};yes;a {id_};;c; d\n" for id_ in ids)
    file = SimpleUploadedFile("answers.csv", text.replace("c; d", '"c; d"').encode("utf-16"))
    data = {"questions": question_set.pk, "system": "my-rag", "file": file}
    address = client.post(reverse(UPLOAD_ROUTE), data).headers["Location"]
    fields = {field.html_name: field.value() for field in client.get(address).context["columns"]}
    assert list(fields.values()) == ["question_id", "answer", "contexts", "contexts", "contexts"]
    page = client.post(f"{address}columns/", fields, follow=True).content.decode()
    assert "2 of them have retrieved passages" in page
    assert f"1. a {ids[0]}" in page
    assert "2. c; d" in page
    client.post(f"{address}confirm/")
    answer = AnswerSet.objects.get().answers.order_by("pk")[0]
    assert [context.text for context in answer.contexts.order_by("position")] == [f"a {ids[0]}", "c; d"]
