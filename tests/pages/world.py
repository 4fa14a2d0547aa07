"""A small project with one of everything and one person of every kind, for tests of pages."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from datetime import timedelta

from django.test import Client
from django.utils import timezone

from evaluation.core.roles import Role
from evaluation.criteria.services import draft_version
from evaluation.models import (
    Answer,
    ApiToken,
    CriterionVersion,
    ImportBatch,
    ImportWork,
    Project,
    QuestionSet,
    Run,
    SystemVersion,
    User,
)
from evaluation.runs.answer_uploads import store_answers
from review.models import Assignment, Draw, GoldSet, HoldoutTest, ItemEvent, ReviewQueue, Search
from review.ratings.leases import next_assignment
from tests.evaluation.criteria.written import spec
from tests.factories import make_answer_set, make_project, make_question_set, make_queue, make_scored_run, make_user

PEOPLE = ("anonymous", "stranger", "viewer", "member", "outsider", "evaluator", "lead", "admin")


@dataclass(frozen=True)
class World:
    """``member`` is the reviewer of the queue and holds ``assignment``; ``outsider`` is a reviewer of another queue."""

    project: Project
    people: dict[str, User]
    question_set: QuestionSet
    run: Run
    answer: Answer
    queue: ReviewQueue
    assignment: Assignment
    draw: Draw
    batch: ImportBatch

    def client(self, person: str) -> Client:
        """A browser of the person."""
        client = Client()
        if person != "anonymous":
            client.force_login(self.people[person])
        return client

    def token_of(self, person: str) -> ApiToken:
        """A token that the person made for themselves."""
        ends = timezone.now() + timedelta(days=1)
        own = {"user": self.people[person], "made_by": self.people[person], "project": self.project, "name": "own"}
        return ApiToken.objects.get_or_create(**own, sha256=person, scope="read", defaults={"expires_at": ends})[0]

    @property
    def escalation(self) -> ItemEvent:
        """Escalation of the member's item, created on first access."""
        event, _ = ItemEvent.objects.get_or_create(assignment=self.assignment, verb="escalate")
        return event

    @property
    def answer_batch(self) -> ImportBatch:
        """Uploaded file of answers that waits for its confirmation."""
        id_ = self.question_set.questions.order_by("position").values_list("external_id", flat=True)[0]
        content = json.dumps([{"question_id": id_, "answer": "Because."}]).encode()
        return store_answers(self.question_set, "uploaded", "a.json", content, self.people["evaluator"])

    @property
    def large_batch(self) -> ImportBatch:
        """Large uploaded file of questions, whose check waits for a worker."""
        batch, _ = ImportBatch.objects.get_or_create(
            project=self.project, kind="questions", name="large", file_name="large.jsonl", file_sha256="1" * 64,
            state="checking", created_by=self.people["evaluator"], defaults={"uuid": uuid.uuid4()},
        )  # fmt: skip
        ImportWork.objects.get_or_create(batch=batch, defaults={"size": 100, "total": 100})
        return batch

    @property
    def search(self) -> Search:
        """Prompt search on the hold-out test's gold set, created on first access."""
        about = {
            "gold_set": self.holdout_test.gold_set,
            "judge_version": self.holdout_test.judge_version,
            "family": "answer_quality",
        }
        new_search, _ = Search.objects.get_or_create(active=self.holdout_test.active, strategy="map", **about)
        return new_search

    @property
    def holdout_test(self) -> HoldoutTest:
        """Hold-out test of a gold set, both created on first access."""
        run_judge = self.run.judges.get()
        gold, _ = GoldSet.objects.get_or_create(project=self.project, name="gold", version=1, seed=0)
        rubric_versions = dict.fromkeys(("candidate", "active", "best"), run_judge.rubric_version)
        about = {"project": self.project, "lineage": "gold", "number": 1, "step": 1, "claim": "better"}
        holdout_test, _ = HoldoutTest.objects.get_or_create(
            gold_set=gold, judge_version=run_judge.judge_version, **rubric_versions, **about
        )
        return holdout_test

    @property
    def criterion(self) -> CriterionVersion:
        """Draft of a custom criterion, created on first access."""
        return draft_version(self.project, spec(name="tone_of_voice"), by=None)

    @property
    def system_version(self) -> SystemVersion:
        """The version of the system that answered."""
        return self.run.answer_set.system_version


def make_world() -> World:
    """The project with its people, a completed run, a queue and an item in the member's hands."""
    project = make_project()
    people = {
        "stranger": make_user(),
        "viewer": make_user(Role.VIEWER, project),
        "member": make_user(Role.REVIEWER, project),
        "outsider": make_user(Role.REVIEWER, project),
        "evaluator": make_user(Role.EVALUATOR, project),
        "lead": make_user(Role.LEAD, project),
        "admin": make_user(Role.ADMIN, project),
    }
    question_set = make_question_set(project)
    run = make_scored_run(make_answer_set(question_set), name="A run")
    queue = make_queue(run, [people["member"]], reveal_threshold=2.0)  # any judge value is that far from some rating
    assignment = next_assignment(queue, people["member"])
    assert assignment is not None
    content = b'[{"id": "a", "category": "c", "question": "Why?", "expected_keywords": ["so"]}]'
    batch = ImportBatch.objects.create(
        uuid=uuid.uuid4(), project=project, kind="questions", name="uploaded", file_name="u.json",
        file_sha256="0" * 64, content=content, rows=1, created_by=people["evaluator"],
    )  # fmt: skip
    return World(
        project, people, question_set, run, assignment.item.answer, queue, assignment, queue.draws.get(), batch,
    )  # fmt: skip
