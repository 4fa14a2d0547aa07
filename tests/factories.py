"""Builders of the core graph for tests: explicit, small, and only what a test names differs from the default."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.core.canonical import content_hash
from evaluation.core.roles import Role
from evaluation.core.samples import QuestionSpec, questions_hash
from evaluation.judges.shipped import definitions, shipped_rubric_row
from evaluation.models import (
    Answer,
    AnswerSet,
    Context,
    JudgeVersion,
    MetricDefinition,
    ProfileVersion,
    Project,
    Question,
    QuestionSet,
    RoleGrant,
    RubricVersion,
    Run,
    Score,
    System,
    SystemVersion,
    User,
    WorkUnit,
)
from evaluation.worker.lifecycle import RunConfig
from evaluation.worker.lifecycle import make_run as make_draft
from review.models import ReviewQueue
from review.models.queue_spec import SETTINGS, QueueSpec
from review.queues.creation import make_queue as new_queue

_numbers = itertools.count(1)
CATEGORIES = ("single_hop", "multi_hop_2", "negative")


def unique(word: str) -> str:
    """A name that no other test object has."""
    return f"{word}-{next(_numbers)}"


def make_project() -> Project:
    """A project with a name of its own."""
    return Project.objects.create(name=unique("project"))


def make_user(role: Role | str | None = None, project: Project | None = None, **fields: Any) -> User:
    """A person, with a role where one is named; without a role they are a stranger."""
    user = User.objects.create_user(
        username=fields.pop("username", unique("user")), password="a good password", **fields
    )
    if role is not None:
        RoleGrant.objects.create(user=user, project=project or make_project(), role=role)
    return user


def question_spec(number: int, **fields: Any) -> QuestionSpec:
    """The n-th question: category by turns, one keyword, one reference."""
    defaults: dict[str, Any] = {
        "id": f"q{number}",
        "category": CATEGORIES[number % 3],
        "text": f"What is the capital of country {number}?",
        "references": (f"The capital is city {number}.",),
        "keywords": ((f"city {number}",),),
    }
    if CATEGORIES[number % 3] == "negative" and "category" not in fields:
        defaults |= {"check": "should_not_hallucinate", "keywords": ()}
    return QuestionSpec(**(defaults | fields))


def make_question_set(
    project: Project | None = None, specs: Sequence[QuestionSpec] | int = 6, name: str = ""
) -> QuestionSet:
    """A question set of the given questions, or of so many default ones."""
    question_specs = [question_spec(n) for n in range(1, specs + 1)] if isinstance(specs, int) else list(specs)
    question_set = QuestionSet.objects.create(
        project=project or make_project(),
        name=name or unique("questions"),
        version=1,
        content_hash=questions_hash(question_specs),
    )
    Question.objects.bulk_create(
        Question(
            question_set=question_set,
            external_id=spec.id,
            position=i,
            category=spec.category,
            difficulty=spec.difficulty,
            group=spec.group,
            text=spec.text,
            spec=spec.model_dump(mode="json"),
        )
        for i, spec in enumerate(question_specs)
    )
    return question_set


def make_answer_set(
    question_set: QuestionSet | None = None, system: str = "", texts: Sequence[str] | None = None, **fields: Any
) -> AnswerSet:
    """An answer to every question: the given texts in turn, else a right one with one context."""
    questions = question_set or make_question_set()
    owner = System.objects.create(project=questions.project, name=system or unique("system"))
    version = SystemVersion.objects.create(system=owner, version=1, content_hash=content_hash(owner.name))
    answer_set = AnswerSet.objects.create(
        project=questions.project, question_set=questions, system_version=version, content_hash="0" * 64, **fields
    )
    answers = Answer.objects.bulk_create(
        _answer(answer_set, question, texts[question.position % len(texts)] if texts else None)
        for question in questions.questions.all()
    )
    Context.objects.bulk_create(_context(answer) for answer in answers)
    return answer_set


def make_answer(answer_set: AnswerSet, question: Question, text: str | None = None, **fields: Any) -> Answer:
    """An answer with one context that holds its text."""
    answer = _answer(answer_set, question, text, **fields)
    answer.save()
    _context(answer).save()
    return answer


def _answer(answer_set: AnswerSet, question: Question, text: str | None, **fields: Any) -> Answer:
    answer_text = f"The capital is city {question.external_id[1:]}." if text is None else text
    defaults: dict[str, Any] = {
        "status": "ok",
        "text": answer_text,
        "text_hash": hashlib.sha256(answer_text.encode()).hexdigest(),
        "latency_seconds": 1.5,
        "retrieves": True,
    }
    return Answer(answer_set=answer_set, question=question, **(defaults | fields))


def _context(answer: Answer) -> Context:
    return Context(answer=answer, position=0, chunk_id="c1", text=answer.text, score=0.9, source="atlas")


def make_profile(project: Project, spec: dict[str, Any] | None = None, name: str = "plain") -> ProfileVersion:
    """A profile row; the empty spec does for tests that compute no figure."""
    return ProfileVersion.objects.create(
        project=project, name=unique(name), version=1, spec=spec or {}, content_hash=content_hash(spec or {})
    )


def make_draft_run(answer_set: AnswerSet | None = None, **fields: Any) -> Run:
    """A draft run without judges."""
    answers = answer_set or make_answer_set()
    profile = fields.pop("profile", None) or make_profile(answers.project)
    config = fields.pop("config", None) or RunConfig(rules=("keyword_hit",))
    return make_draft(answers, profile, config, **fields)


def make_judge(project: Project, name: str = "", endpoint: Any = None, **fields: Any) -> JudgeVersion:
    """A judge version; without an endpoint it is the baseline."""
    return JudgeVersion.objects.create(
        project=project,
        name=name or unique("judge"),
        version=1,
        endpoint=endpoint,
        model=fields.pop("model", "test-model"),
        content_hash=content_hash([name, unique("j")]),
        **fields,
    )


def make_units(run: Run, count: int, kind: str = WorkUnit.Kind.ASK) -> list[WorkUnit]:
    """Open units of a run that need no answer: for tests of the ledger alone."""
    question = run.answer_set.question_set.questions.first()
    return [
        WorkUnit.objects.create(run=run, kind=kind, question=question, key=content_hash([run.pk, kind, unique("unit")]))
        for _ in range(count)
    ]


def make_scored_run(
    answer_set: AnswerSet | None = None,
    values: Sequence[float | None] = (1, 2, 3, 4, 5),
    *,
    metrics: Sequence[str] = ("correctness", "faithfulness"),
    reason: str = "The judge's reason.",
    judge: JudgeVersion | None = None,
    family: str = "answer_quality",
    **fields: Any,
) -> Run:
    """A completed run with a judge value per answer and metric, from ``values`` in turn; ``None`` is a failed one."""
    answers = answer_set or make_answer_set()
    project = answers.project
    profile = fields.pop("profile", None) or make_profile(
        project, {"name": "plain", "title": {"en": "Plain", "ko": "기본"}, "reported": list(metrics)}
    )
    scorer = judge or make_judge(project)
    rubric = shipped_rubric_row(family, "en")
    run = make_draft_run(answers, profile=profile, judges=[(scorer, rubric, True)], **fields)
    Run.objects.filter(pk=run.pk).update(state=Run.State.COMPLETED)
    run.refresh_from_db()
    answer_rows = answers.answers.filter(status="ok").order_by("pk")
    measured = list(definitions(metrics).values())
    Score.objects.bulk_create(
        _score(run, answer, metric, values[position % len(values)], reason, scorer, rubric)
        for position, answer in enumerate(answer_rows)
        for metric in measured
    )
    return run


def _score(
    run: Run,
    answer: Answer,
    metric: MetricDefinition,
    value: float | None,
    reason: str,
    judge: JudgeVersion,
    rubric: RubricVersion,
) -> Score:
    return Score(
        run=run,
        answer=answer,
        metric=metric,
        origin=content_hash(["test", run.pk, answer.pk, judge.pk]),
        judge_version=judge,
        rubric_version=rubric,
        status="failed" if value is None else "scored",
        value=value,
        reason="timeout" if value is None else reason,
    )


def make_queue(run: Run | None = None, reviewers: Sequence[User] | int = 1, **fields: Any) -> ReviewQueue:
    """A queue over all answers of a run for so many new reviewers, or the given ones."""
    scored_run = run or make_scored_run()
    members = (
        [make_user(Role.REVIEWER, scored_run.project) for _ in range(reviewers)]
        if isinstance(reviewers, int)
        else list(reviewers)
    )
    defaults: dict[str, Any] = {"metrics": ["correctness", "faithfulness"], "strategy": "all", "seed": 1}
    defaults["reveal_share"] = 0.0  # chance goes by the ids of rows, which differ from run to run
    spec, other_fields = queue_spec(defaults | fields)
    return new_queue(scored_run, spec, reviewers=members, **other_fields)


def queue_spec(fields: Mapping[str, Any]) -> tuple[QueueSpec, dict[str, Any]]:
    """The settings of a queue, and what else is given for it."""
    settings = {name: value for name, value in fields.items() if name in SETTINGS}
    return QueueSpec(**settings), {name: value for name, value in fields.items() if name not in SETTINGS}
