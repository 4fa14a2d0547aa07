"""Load the demo: users, and for each language a question set, recorded answers of two systems, judged runs and review
queues.

It uses the services that real data uses. Loading again changes nothing but passwords."""

import json
import secrets
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.db import transaction
from django.db.models.functions import Now

from evaluation.core.roles import Role
from evaluation.datasets.importing import import_question_set
from evaluation.extensions import features
from evaluation.formats.reading import read_questions
from evaluation.judges.shipped import baseline_judge, profile_row
from evaluation.models import Project, QuestionSet, Run, User
from evaluation.models.run_spec import RunSpec
from evaluation.runs.answer_files import import_answer_file
from evaluation.runs.creation import prepare_run
from evaluation.runs.execution import drain
from evaluation.runs.provisioning import provision, read_provision_file
from evaluation.worker.lifecycle import start
from review.evidence.rating_input import RatingInput
from review.models import Assignment, ReviewItem, ReviewQueue
from review.models.queue_spec import QueueSpec
from review.queues.creation import close_queue, make_queue
from review.ratings.leases import lease_end, load_assignment
from review.ratings.reveals import finalise, reveal
from review.ratings.submitting import submit

DATA_DIR = Path(__file__).parent
RatingsByQuestion = Mapping[str, Mapping[str, Mapping[str, RatingInput]]]


@dataclass(frozen=True, slots=True)
class DemoUser:
    """A demo account with its password."""

    username: str
    password: str
    role: Role


def create_demo_users(project: Project) -> list[DemoUser]:
    """Create missing demo users and give all of them one new random password."""
    setup = read_provision_file(DATA_DIR / "provision.yaml")
    provision(setup.model_copy(update={"project": project.name}))
    password = secrets.token_urlsafe(9)
    # Hashed once: hashing is slow on purpose.
    User.objects.filter(username__in=[person.username for person in setup.people]).update(
        password=make_password(password)
    )
    return [DemoUser(person.username, password, role) for person in setup.people for role in person.roles]


PROJECT = "Demo"
SYSTEMS = {"demo-vector": "answers_vector.jsonl", "demo-graph": "answers_graph.jsonl"}
METRICS = ("correctness", "faithfulness", "completeness")
QUEUE_SIZE, EXAMPLE_QUEUE_SIZE = 24, 26
SEED = 20261130


@dataclass(frozen=True, slots=True)
class QueueTexts:
    """Names and guideline of the queues in one language."""

    review: str
    examples: str
    guideline: str


QUEUE_TEXTS = {
    "en": QueueTexts(
        review="Demo review",
        examples="Demo examples",
        guideline="Rate the content of the answer, not its style. Use only the expected answer and the passages shown; "
        "don't look anything up. If the question or the expected answer is wrong, flag the item instead of rating it.",
    ),
    "ko": QueueTexts(
        review="데모 검토",
        examples="데모 예시",
        guideline="문장력이 아니라 답변의 내용을 평가해 주세요. 화면에 있는 기대 답변과 문단만 보고 판단하시면 되며"
        " 따로 찾아보지 않으셔도 됩니다. 질문이나 기대 답변이 잘못되었으면 평가하지 말고 ‘문제 신고’를 눌러 주세요.",
    ),
}


def demo_project() -> Project:
    """Return the demo project. On a new site it reuses the initial project, so that commands need no ``--project``."""
    project = Project.objects.filter(name=PROJECT).first()
    projects = list(Project.objects.all()[:2])
    if (
        project is None
        and len(projects) == 1
        and not (projects[0].grants.exists() or projects[0].question_sets.exists())
    ):
        project = projects[0]
        project.name = PROJECT
        project.save(update_fields=["name"])
    return project or Project.objects.create(name=PROJECT)


def load_demo(project: Project, language: str) -> list[Run]:
    """Import and evaluate the demo in a language and fill its queues. Return the judged runs, the better system
    last."""
    lead = User.objects.get(username="lead")
    name, folder = f"demo-{language}", DATA_DIR / language
    question_file = read_questions((folder / "questions.yaml").read_bytes(), "questions.yaml")
    questions = import_question_set(project, name, question_file, by=lead).question_set
    runs = [_judged_run(questions, system, folder / file, lead) for system, file in SYSTEMS.items()]
    if not ReviewQueue.objects.filter(draws__run__in=runs).exists():
        texts = QUEUE_TEXTS[language]
        with transaction.atomic():
            # Comes first, so that reviewers are not assigned answers whose judge values they have seen.
            examples = _example_queue(runs[-1], texts.examples, _read_ratings(folder), lead)
            spec = QueueSpec(name=texts.review, size=QUEUE_SIZE, seed=SEED, guideline=texts.guideline)
            make_queue(runs, spec, metrics=METRICS, reviewers=_reviewers(), by=lead, previous=examples)
    for feature in features():
        if feature.demo:
            feature.demo(runs[0], runs[-1], _reviewers(), lead)
    return runs


def _judged_run(questions: QuestionSet, system: str, file: Path, lead: User) -> Run:
    project, name = questions.project, f"{questions.name} · {system}"
    imported = import_answer_file(questions, system, file.read_bytes(), file.name, by=lead, name=f"{name} · rules")
    existing = Run.objects.filter(answer_set=imported.answer_set, judges__isnull=False).first()
    if existing:
        return existing
    judge = baseline_judge(project, settings.LANGUAGE_CODE)
    run = prepare_run(imported.answer_set, profile_row(project, "graphrag"), RunSpec(name=name), judge=judge, by=lead)
    start(run, lead)
    return drain(run.pk, seconds=120)


def _reviewers() -> list[User]:
    return list(User.objects.filter(username__in=["reviewer1", "reviewer2"]).order_by("username"))


def _example_queue(run: Run, name: str, ratings: RatingsByQuestion, lead: User) -> ReviewQueue:
    """Create a closed queue with example ratings, so that agreement and correction have data. It is a first round."""
    spec = QueueSpec(name=name, size=EXAMPLE_QUEUE_SIZE, seed=SEED + 1, reviews_needed=2, example=True)
    queue = make_queue(run, spec, metrics=METRICS, reviewers=_reviewers(), by=lead)
    people = {user.username: user for user in _reviewers()}
    for item in queue.items.select_related("answer__question").order_by("shuffle_key"):
        by_reviewer = ratings.get(item.answer.question.external_id, {})
        for slot, (username, values) in enumerate(sorted(by_reviewer.items()), start=1):
            _rate(item, queue, people[username], slot, values)
    close_queue(queue, by=lead)
    return queue


def _rate(item: ReviewItem, queue: ReviewQueue, user: User, slot: int, values: Mapping[str, RatingInput]) -> None:
    assignment = Assignment.objects.create(
        item=item, queue=queue, reviewer=user, slot=slot, lease_until=lease_end(queue), opened_at=Now()
    )
    loaded_assignment = load_assignment(assignment.pk)
    if submit(
        loaded_assignment, values, idempotency_key=f"demo-{loaded_assignment.pk}", by=user, active_ms=48_000
    ).reveal:
        reveal(loaded_assignment)
        finalise(loaded_assignment, by=user)


def _read_ratings(folder: Path) -> RatingsByQuestion:
    """Return the example ratings by question, reviewer and metric."""
    ratings: dict[str, dict[str, dict[str, RatingInput]]] = defaultdict(lambda: defaultdict(dict))
    for line in (folder / "ratings.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["system"] == "demo-graph":
            rating = RatingInput(value=float(row["value"]), comment=row["comment"])
            ratings[row["question_id"]][row["reviewer"]][row["metric"]] = rating
    return ratings
