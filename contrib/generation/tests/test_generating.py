"""Question generation with a model behind a real socket: draws, writing, filters, decisions, and the resulting set."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import IntegrityError, transaction
from django.test import Client
from django.urls import reverse

from contrib.corpora.models import Corpus
from contrib.generation.models import (
    DraftQuestion,
    Generation,
    GenerationCall,
    GenerationReply,
    GenerationResult,
)
from contrib.generation.runner import enqueue_generation, process_generation, write_questions
from contrib.generation.selectors import acceptance_by_writer, overview
from contrib.generation.services import (
    GenerationSpec,
    create_question_set,
    decide,
    edit_content,
    open_generation,
    plan_generation,
)
from contrib.generation.tests.writing import BAD, corpus_of, facts, writer
from evaluation.core.errors import DomainError
from evaluation.core.roles import Role
from evaluation.judges.shipped import save_judge
from evaluation.models import Endpoint, Job, JudgeVersion, Project, Question, QuestionSet
from evaluation.worker.jobs import enqueue_due
from tests.evaluation.rest.clients import Caller
from tests.factories import make_project, make_user
from tests.jobs import record_wakeups, work_on_job
from tests.judge_server import JudgeServer
from tests.judge_server.actions import status

pytestmark = pytest.mark.django_db
SINGLE = GenerationSpec("asked", "en", kinds=("single_hop",), passages=20, per_passage=2, seed=1)
Filter = DraftQuestion.Filter


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer() as running:
        running.behave(writer())
        yield running


@pytest.fixture
def project() -> Project:
    return make_project()


@pytest.fixture
def judge(project: Project, server: JudgeServer, settings: Any) -> JudgeVersion:
    settings.CONCORD_JUDGE_ORIGINS = [server.origin]
    endpoint = Endpoint.objects.create(name="local", base_url=server.base_url)
    return save_judge(project, "writer", endpoint, model="writer-1", language="en")


@pytest.fixture
def corpus(project: Project) -> Corpus:
    return corpus_of(project)


def run_generation(corpus: Corpus, judge: JudgeVersion, spec: GenerationSpec = SINGLE) -> Generation:
    generation = open_generation(corpus, judge, spec, by=None)
    while not process_generation(generation):
        pass
    return generation


def test_every_planted_bad_question_is_removed_and_every_good_one_waits(corpus: Corpus, judge: JudgeVersion) -> None:
    generation = run_generation(corpus, judge)
    drafts = list(generation.drafts.all())
    assert len(drafts) == 40
    by_days = {draft.content["references"][0]: draft for draft in drafts if draft.position % 2 == 0}
    assert all(not draft.removed_by for draft in by_days.values())
    # days 11 to 30: each of the five kinds of bad ones four times
    bad_drafts = [draft for draft in drafts if draft.position % 2 == 1]
    assert Counter(draft.removed_by for draft in bad_drafts) == dict.fromkeys(map(str, BAD), 4)
    for draft in bad_drafts:
        (chunk,) = corpus.chunks.filter(chunk_id=draft.content["group"])
        assert draft.removed_by == BAD[facts(chunk.text)[2] % 5]
    result = GenerationResult.objects.get()
    assert result.figures == {
        **{"passages": 20, "unlinked": 0, "unread": 0, "written": 40, "left": 20},
        "removed": dict.fromkeys(map(str, BAD), 4),
    }
    # a call a passage; for the 20 good and the 12 bad ones that no word gave away, two more
    assert GenerationCall.objects.count() == GenerationReply.objects.count() == 20 + 2 * (20 + 12)


def test_kinds_alternate_and_several_passages_are_linked(corpus: Corpus, judge: JudgeVersion) -> None:
    spec = GenerationSpec("mixed", "en", passages=18, seed=3)
    generation = run_generation(corpus, judge, spec)
    kinds = Counter(draft.kind for draft in generation.drafts.all())
    assert kinds == dict.fromkeys(spec.kinds, 3)
    pair = generation.drafts.filter(kind="multi_hop_2", removed_by="").first()
    assert pair is not None
    assert (len(pair.content["ground_truth_chunk_ids"]), pair.content["hops"]) == (2, 2)
    topics = {
        facts(corpus.chunks.get(chunk_id=chunk_id).text)[1] for chunk_id in pair.content["ground_truth_chunk_ids"]
    }
    assert len(topics) == 1  # the passage it is linked to speaks of the same thing
    negative = generation.drafts.filter(kind="negative").first()
    assert negative is not None
    assert negative.content["ground_truth_chunk_ids"] == []


def test_repeated_command_resumes_and_repeats_no_call(corpus: Corpus, judge: JudgeVersion, server: JudgeServer) -> None:
    generation = open_generation(corpus, judge, SINGLE, by=None)
    server.when(lambda request: "question" in request.block and not request.is_preflight, status(401))
    with pytest.raises(DomainError, match="judge_away"):
        process_generation(generation)
    reply_count = GenerationReply.objects.filter(outcome="ok").count()
    assert reply_count == 20
    server.reset()
    server.behave(writer())
    assert open_generation(corpus, judge, SINGLE, by=None) == generation
    while not process_generation(generation):
        pass
    assert (
        Counter(GenerationCall.objects.filter(step__startswith="write").values_list("step")).most_common(1)[0][1] == 1
    )
    assert overview(generation).waiting == 20


def test_budget_ends_a_generation_and_marks_unchecked_questions(
    corpus: Corpus, judge: JudgeVersion, settings: Any, tmp_path: Path
) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text("prices:\n- {model: writer-1, since: 2025-01-01, input: '1000', output: '1000'}\n")
    settings.CONCORD_PRICES = str(file)
    plan = plan_generation(corpus, judge, SINGLE)
    assert plan.calls == 20 + 2 * 40
    assert plan.cost
    generation = run_generation(corpus, judge, GenerationSpec(**{**spec_fields(SINGLE), "budget": Decimal("0.0001")}))
    assert GenerationResult.objects.get(generation=generation).outcome == "budget"
    assert overview(generation).written <= 2 * 9  # what was out at once, and no more
    assert {draft.removed_by for draft in generation.drafts.all()} <= {*map(str, BAD[:2]), str(Filter.UNCHECKED)}


def spec_fields(spec: GenerationSpec) -> dict[str, Any]:
    return {name: getattr(spec, name) for name in GenerationSpec.__dataclass_fields__}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"passages": 0}, "generation_size"),
        ({"per_passage": 11}, "generation_size"),
        ({"kinds": ()}, "generation_size"),
        ({"name": " "}, "bad_name"),
        ({"budget": Decimal(1)}, "budget_unpriced"),
    ],
)
def test_invalid_generation_is_refused_before_any_call(
    corpus: Corpus, judge: JudgeVersion, server: JudgeServer, changes: dict[str, Any], code: str
) -> None:
    with pytest.raises(DomainError, match=code):
        open_generation(corpus, judge, GenerationSpec(**{**spec_fields(SINGLE), **changes}), by=None)
    assert server.calls == 0
    assert not Generation.objects.exists()


def test_lead_decisions_turn_accepted_drafts_into_a_set(corpus: Corpus, judge: JudgeVersion) -> None:
    generation, lead = run_generation(corpus, judge), make_user()
    with pytest.raises(DomainError, match="generation_nothing_accepted"):
        create_question_set(generation, by=lead)
    waiting = list(generation.drafts.filter(removed_by=""))
    for draft in waiting[:8]:
        decide(draft, "accepted", by=lead)
    decide(waiting[8], "accepted", by=lead, content=edit_content(waiting[8], {"text": "In other words?"}))
    decide(waiting[9], "rejected", by=lead)
    decide(waiting[0], "rejected", by=lead)  # the latest counts
    leaked = generation.drafts.filter(removed_by=Filter.LEAKED)[0]
    decide(leaked, "accepted", by=lead)  # a lead may know better than a filter
    summary = overview(generation)
    assert (summary.waiting, summary.rejected, summary.acceptance.accepted, summary.acceptance.edited) == (10, 2, 9, 1)
    # 9 of 11: Clopper-Pearson 0.482 to 0.977
    assert summary.acceptance.share == pytest.approx(9 / 11)
    assert (summary.acceptance.low, summary.acceptance.high) == (
        pytest.approx(0.4822, abs=1e-4),
        pytest.approx(0.9772, abs=1e-4),
    )
    (by_writer,) = acceptance_by_writer(generation.corpus.project)
    assert (by_writer.writer, by_writer.decided) == (generation.writer, 11)
    first = create_question_set(generation, by=lead)
    questions = Question.objects.filter(question_set=first.question_set)
    assert questions.count() == 9
    assert all("synthetic" in question.read().tags for question in questions)
    assert questions.filter(text="In other words?").count() == 1
    assert first.question_set.metadata["corpus_hash"] == corpus.content_hash
    assert create_question_set(generation, by=lead).created is False


def test_decisions_are_permanent_and_empty_edits_are_refused(corpus: Corpus, judge: JudgeVersion) -> None:
    generation, lead = run_generation(corpus, judge), make_user()
    draft = generation.drafts.all()[0]
    decision = decide(draft, "accepted", by=lead)
    with pytest.raises(IntegrityError), transaction.atomic():
        type(decision).objects.filter(pk=decision.pk).update(verb="rejected")
    with pytest.raises(DomainError, match="draft_empty"):
        edit_content(draft, {"text": " "})


def test_command_shows_the_plan_and_then_runs_it(corpus: Corpus, judge: JudgeVersion) -> None:
    arguments = [
        corpus.name,
        "-n",
        "asked",
        "-q",
        "1",
        "-m",
        "4",
        "--kinds",
        "single_hop",
        "--judge",
        "writer",
        "--seed",
        "2",
    ]
    output = StringIO()
    call_command("generate_questions", *arguments, "--dry-run", stdout=output)
    assert "about 12 calls" in output.getvalue()
    assert not Generation.objects.exists()
    output = StringIO()
    call_command("generate_questions", *arguments, "--format", "json", stdout=output)
    report = json.loads(output.getvalue())
    assert (report["outcome"], report["written"], report["left"], report["calls"]) == ("done", 4, 4, 12)
    with pytest.raises(CommandError, match="offline baseline"):
        call_command("generate_questions", *arguments[:-4], "--judge", "baseline", stdout=output)


def test_workers_share_a_generation_and_periodic_tasks_wake_them(
    corpus: Corpus, judge: JudgeVersion, monkeypatch: Any
) -> None:
    enqueued = record_wakeups(monkeypatch)
    generation = open_generation(corpus, judge, SINGLE, by=None)
    enqueue_generation(generation)
    enqueue_due()
    assert enqueued == [generation.pk, generation.pk]
    work_on_job(write_questions, generation.pk)
    assert GenerationResult.objects.filter(generation=generation).exists()
    enqueue_due()
    assert len(enqueued) == 2
    assert Job.objects.get().state == "done"


def test_korean_questions_over_pages_and_rest(project: Project, judge: JudgeVersion, client: Client) -> None:
    corpus, lead = corpus_of(project, "ko"), make_user(Role.LEAD, project)
    evaluator = make_user(Role.EVALUATOR, project)
    client.force_login(evaluator)
    form = {"corpus": corpus.pk, "judge": judge.pk, "name": "질문", "language": "ko", "kinds": ["single_hop"]}
    form |= {"passages": 20, "per_passage": 1}
    page = client.post(reverse("generation-new"), form | {"plan": "1"})
    assert "60" in page.content.decode()
    page = client.post(reverse("generation-new"), form | {"begin": "1"})
    generation = Generation.objects.get()
    assert page.headers["Location"] == reverse("generation", args=[generation.pk])
    while not process_generation(generation):
        pass
    draft = generation.drafts.filter(removed_by="")[0]
    accept = reverse("draft-decide", args=[draft.pk])
    assert client.post(accept, {"verb": "accepted"}).status_code == 403
    client.force_login(lead)
    assert draft.content["text"] in client.get(reverse("generation", args=[generation.pk])).content.decode()
    client.post(
        accept,
        {"verb": "accepted", "text": "며칠인가요?", "answer": "12일", "keywords": "12일|열이틀", "show": "waiting"},
    )
    assert overview(generation).acceptance.edited == 1
    api = Caller(Role.LEAD, project, user=lead)
    rows = api.get(f"generations/{generation.pk}/questions/").json()["results"]
    other_row = next(row for row in rows if row["verb"] is None and not row["removed_by"])
    decision = api.post(f"generated-questions/{other_row['id']}/decide/", {"verb": "accepted"}).json()
    assert decision["verb"] == "accepted"
    client.post(reverse("generation-set", args=[generation.pk]))
    (question_set,) = QuestionSet.objects.filter(name="질문")
    assert {question.read().keywords for question in question_set.questions.filter(text="며칠인가요?")} == {
        (("12일", "열이틀"),)
    }
