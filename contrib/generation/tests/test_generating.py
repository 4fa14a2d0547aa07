"""Questions written by a model behind a real socket: drawn, written, filtered, decided on, and made a question set."""

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
from tests.jobs import catch_rings, work
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


def generated(corpus: Corpus, judge: JudgeVersion, wanted: GenerationSpec = SINGLE) -> Generation:
    made = open_generation(corpus, judge, wanted, by=None)
    while not process_generation(made):
        pass
    return made


def test_every_planted_bad_question_is_out_by_its_filter_and_every_good_one_waits(
    corpus: Corpus, judge: JudgeVersion
) -> None:
    made = generated(corpus, judge)
    drafts = list(made.drafts.all())
    assert len(drafts) == 40
    by_days = {draft.content["references"][0]: draft for draft in drafts if draft.position % 2 == 0}
    assert all(not draft.removed_by for draft in by_days.values())
    # days 11 to 30: each of the five kinds of bad ones four times
    bad = [draft for draft in drafts if draft.position % 2 == 1]
    assert Counter(draft.removed_by for draft in bad) == dict.fromkeys(map(str, BAD), 4)
    for draft in bad:
        (chunk,) = corpus.chunks.filter(chunk_id=draft.content["group"])
        assert draft.removed_by == BAD[facts(chunk.text)[2] % 5]
    result = GenerationResult.objects.get()
    assert result.figures == {
        **{"passages": 20, "unlinked": 0, "unread": 0, "written": 40, "left": 20},
        "removed": dict.fromkeys(map(str, BAD), 4),
    }
    # a call a passage; for the 20 good and the 12 bad ones that no word gave away, two more
    assert GenerationCall.objects.count() == GenerationReply.objects.count() == 20 + 2 * (20 + 12)


def test_kinds_take_turns_and_several_passages_are_linked(corpus: Corpus, judge: JudgeVersion) -> None:
    wanted = GenerationSpec("mixed", "en", passages=18, seed=3)
    made = generated(corpus, judge, wanted)
    kinds = Counter(draft.kind for draft in made.drafts.all())
    assert kinds == dict.fromkeys(wanted.kinds, 3)
    pair = made.drafts.filter(kind="multi_hop_2", removed_by="").first()
    assert pair is not None
    assert (len(pair.content["ground_truth_chunk_ids"]), pair.content["hops"]) == (2, 2)
    things = {facts(corpus.chunks.get(chunk_id=one).text)[1] for one in pair.content["ground_truth_chunk_ids"]}
    assert len(things) == 1  # the passage it is linked to speaks of the same thing
    negative = made.drafts.filter(kind="negative").first()
    assert negative is not None
    assert negative.content["ground_truth_chunk_ids"] == []


def test_the_same_command_goes_on_and_asks_nothing_twice(
    corpus: Corpus, judge: JudgeVersion, server: JudgeServer
) -> None:
    made = open_generation(corpus, judge, SINGLE, by=None)
    server.when(lambda request: "question" in request.block and not request.is_preflight, status(401))
    with pytest.raises(DomainError, match="judge_away"):
        process_generation(made)
    written = GenerationReply.objects.filter(outcome="ok").count()
    assert written == 20
    server.reset()
    server.behave(writer())
    assert open_generation(corpus, judge, SINGLE, by=None) == made
    while not process_generation(made):
        pass
    assert (
        Counter(GenerationCall.objects.filter(step__startswith="write").values_list("step")).most_common(1)[0][1] == 1
    )
    assert overview(made).waiting == 20


def test_the_budget_ends_it_and_what_could_not_be_checked_says_so(
    corpus: Corpus, judge: JudgeVersion, settings: Any, tmp_path: Path
) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text("prices:\n- {model: writer-1, since: 2025-01-01, input: '1000', output: '1000'}\n")
    settings.CONCORD_PRICES = str(file)
    whole = plan_generation(corpus, judge, SINGLE)
    assert whole.calls == 20 + 2 * 40
    assert whole.cost
    made = generated(corpus, judge, GenerationSpec(**{**vars_of(SINGLE), "budget": Decimal("0.0001")}))
    assert GenerationResult.objects.get(generation=made).outcome == "budget"
    assert overview(made).written <= 2 * 9  # what was out at once, and no more
    assert {draft.removed_by for draft in made.drafts.all()} <= {*map(str, BAD[:2]), str(Filter.UNCHECKED)}


def vars_of(wanted: GenerationSpec) -> dict[str, Any]:
    return {name: getattr(wanted, name) for name in GenerationSpec.__dataclass_fields__}


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
def test_what_cannot_be_is_refused_before_anything_is_asked(
    corpus: Corpus, judge: JudgeVersion, server: JudgeServer, changes: dict[str, Any], code: str
) -> None:
    with pytest.raises(DomainError, match=code):
        open_generation(corpus, judge, GenerationSpec(**{**vars_of(SINGLE), **changes}), by=None)
    assert server.calls == 0
    assert not Generation.objects.exists()


def test_a_lead_accepts_edits_and_rejects_and_the_accepted_ones_become_a_set(
    corpus: Corpus, judge: JudgeVersion
) -> None:
    made, lead = generated(corpus, judge), make_user()
    with pytest.raises(DomainError, match="generation_nothing_accepted"):
        create_question_set(made, by=lead)
    waiting = list(made.drafts.filter(removed_by=""))
    for draft in waiting[:8]:
        decide(draft, "accepted", by=lead)
    decide(waiting[8], "accepted", by=lead, content=edit_content(waiting[8], {"text": "In other words?"}))
    decide(waiting[9], "rejected", by=lead)
    decide(waiting[0], "rejected", by=lead)  # the latest counts
    leaked = made.drafts.filter(removed_by=Filter.LEAKED)[0]
    decide(leaked, "accepted", by=lead)  # a lead may know better than a filter
    seen = overview(made)
    assert (seen.waiting, seen.rejected, seen.acceptance.accepted, seen.acceptance.edited) == (10, 2, 9, 1)
    # 9 of 11: Clopper-Pearson 0.482 to 0.977
    assert seen.acceptance.share == pytest.approx(9 / 11)
    assert (seen.acceptance.low, seen.acceptance.high) == (
        pytest.approx(0.4822, abs=1e-4),
        pytest.approx(0.9772, abs=1e-4),
    )
    (by_writer,) = acceptance_by_writer(made.corpus.project)
    assert (by_writer.writer, by_writer.decided) == (made.writer, 11)
    first = create_question_set(made, by=lead)
    questions = Question.objects.filter(question_set=first.question_set)
    assert questions.count() == 9
    assert all("synthetic" in one.read().tags for one in questions)
    assert questions.filter(text="In other words?").count() == 1
    assert first.question_set.metadata["corpus_hash"] == corpus.content_hash
    assert create_question_set(made, by=lead).created is False


def test_nothing_is_decided_while_it_is_written_and_decisions_stay(corpus: Corpus, judge: JudgeVersion) -> None:
    made, lead = generated(corpus, judge), make_user()
    draft = made.drafts.all()[0]
    made_decision = decide(draft, "accepted", by=lead)
    with pytest.raises(IntegrityError), transaction.atomic():
        type(made_decision).objects.filter(pk=made_decision.pk).update(verb="rejected")
    with pytest.raises(DomainError, match="draft_empty"):
        edit_content(draft, {"text": " "})


def test_the_command_says_what_it_takes_and_then_does_it(corpus: Corpus, judge: JudgeVersion) -> None:
    asked = [
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
    out = StringIO()
    call_command("generate_questions", *asked, "--dry-run", stdout=out)
    assert "about 12 calls" in out.getvalue()
    assert not Generation.objects.exists()
    out = StringIO()
    call_command("generate_questions", *asked, "--format", "json", stdout=out)
    told = json.loads(out.getvalue())
    assert (told["outcome"], told["written"], told["left"], told["calls"]) == ("done", 4, 4, 12)
    with pytest.raises(CommandError, match="offline baseline"):
        call_command("generate_questions", *asked[:-4], "--judge", "baseline", stdout=out)


def test_workers_take_turns_and_a_sweep_wakes_them(corpus: Corpus, judge: JudgeVersion, monkeypatch: Any) -> None:
    rung = catch_rings(monkeypatch)
    made = open_generation(corpus, judge, SINGLE, by=None)
    enqueue_generation(made)
    enqueue_due()
    assert rung == [made.pk, made.pk]
    work(write_questions, made.pk)
    assert GenerationResult.objects.filter(generation=made).exists()
    enqueue_due()
    assert len(rung) == 2
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
    made = Generation.objects.get()
    assert page.headers["Location"] == reverse("generation", args=[made.pk])
    while not process_generation(made):
        pass
    draft = made.drafts.filter(removed_by="")[0]
    accept = reverse("draft-decide", args=[draft.pk])
    assert client.post(accept, {"verb": "accepted"}).status_code == 403
    client.force_login(lead)
    assert draft.content["text"] in client.get(reverse("generation", args=[made.pk])).content.decode()
    client.post(
        accept,
        {"verb": "accepted", "text": "며칠인가요?", "answer": "12일", "keywords": "12일|열이틀", "show": "waiting"},
    )
    assert overview(made).acceptance.edited == 1
    rest = Caller(Role.LEAD, project, user=lead)
    rows = rest.get(f"generations/{made.pk}/questions/").json()["results"]
    other = next(row for row in rows if row["verb"] is None and not row["removed_by"])
    told = rest.post(f"generated-questions/{other['id']}/decide/", {"verb": "accepted"}).json()
    assert told["verb"] == "accepted"
    client.post(reverse("generation-set", args=[made.pk]))
    (question_set,) = QuestionSet.objects.filter(name="질문")
    assert {one.read().keywords for one in question_set.questions.filter(text="며칠인가요?")} == {(("12일", "열이틀"),)}
