"""Loads the demo: its people, a question set, the recorded answers of two systems, judged runs, two review queues, a
comparison. Everything goes through the same doors as a user's own data; loading again changes nothing but passwords."""

import json
import secrets
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from evaluation.core.roles import Role
from evaluation.datasets.importing import import_question_set
from evaluation.extensions import features
from evaluation.formats.reading import read_questions
from evaluation.judges.shipping import baseline_judge, profile_row
from evaluation.models import Project, QuestionSet, Run, User
from evaluation.models.run_spec import RunSpec
from evaluation.runs.answer_files import import_answer_file
from evaluation.runs.draining import drain
from evaluation.runs.making import prepare_run
from evaluation.runs.provisioning import provision, read_setup
from evaluation.worker.lifecycle import start
from review.evidence.rating_input import Given
from review.models import Assignment, ReviewItem, ReviewQueue
from review.models.queue_spec import QueueSpec
from review.queues.making import close, make_queue
from review.ratings.leases import lease_end, loaded
from review.ratings.reveals import finalise, reveal
from review.ratings.submitting import submit

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class DemoUser:
    """A person to log in as."""

    username: str
    password: str
    role: Role


def set_people(project: Project) -> list[DemoUser]:
    """Make the demo's people where they are missing, and give each a new random password."""
    setup = read_setup(HERE / "provision.yaml")
    provision(setup.model_copy(update={"project": project.name}))
    made = []
    for person in setup.people:
        user, password = User.objects.get(username=person.username), secrets.token_urlsafe(9)
        user.set_password(password)
        user.save(update_fields=["password"])
        made += [DemoUser(person.username, password, role) for role in person.roles]
    return made


PROJECT = "Demo"
QUESTIONS = "demo"
SYSTEMS = {"demo-vector": "answers_vector.jsonl", "demo-graph": "answers_graph.jsonl"}
METRICS = ("correctness", "faithfulness", "completeness")
WAITING, EXAMPLE = 24, 26
GUIDELINE = """\
Rate what the answer says, not how it is written. The expected answer and the passages beside it are all you need: look
nothing else up. Where the question or the expected answer is wrong, flag the item instead of rating it.

문장력이 아니라 답변의 내용을 평가해 주세요. 화면에 있는 기대 답변과 문단만 보고 판단하시면 되며 따로 찾아보지 않으셔도
됩니다. 질문이나 기대 답변이 잘못되었으면 평가하지 말고 ‘문제 신고’를 눌러 주세요.
"""
SEED = 20261120


def demo_project() -> Project:
    """The demo's project; on a new site the one it starts with, so that commands need not be told which."""
    made = Project.objects.filter(name=PROJECT).first()
    first = list(Project.objects.all()[:2])
    if made is None and len(first) == 1 and not (first[0].grants.exists() or first[0].question_sets.exists()):
        made = first[0]
        made.name = PROJECT
        made.save(update_fields=["name"])
    return made or Project.objects.create(name=PROJECT)


def load_demo(project: Project) -> list[Run]:
    """Import, evaluate and fill the queues; the judged runs, the better system last."""
    lead = User.objects.get(username="lead")
    data = (HERE / "questions.yaml").read_bytes()
    questions = import_question_set(project, QUESTIONS, read_questions(data, "questions.yaml"), by=lead).question_set
    runs = [_judged(project, questions, system, file, lead) for system, file in SYSTEMS.items()]
    if not ReviewQueue.objects.filter(project=project).exists():
        with transaction.atomic():
            _example_queue(runs[-1], lead)  # first, so that nobody is handed again what they have seen the judge of
            spec = QueueSpec(name="Demo review · 데모 검토", size=WAITING, seed=SEED, guideline=GUIDELINE)
            make_queue(runs, spec, metrics=METRICS, reviewers=_reviewers(), by=lead)
    for feature in features():
        if feature.demo:
            feature.demo(runs[0], runs[-1], _reviewers(), lead)
    return runs


def _judged(project: Project, questions: QuestionSet, system: str, file: str, lead: User) -> Run:
    imported = import_answer_file(
        questions, system, (HERE / file).read_bytes(), file, by=lead, name=f"{QUESTIONS} · {system} · rules"
    )
    judged = Run.objects.filter(answer_set=imported.answer_set, judges__isnull=False).first()
    if judged:
        return judged
    judge = baseline_judge(project, settings.LANGUAGE_CODE)
    spec = RunSpec(name=f"{QUESTIONS} · {system}")
    run = prepare_run(imported.answer_set, profile_row(project, "graphrag"), spec, judge=judge, by=lead)
    start(run, lead)
    return drain(run.pk, seconds=120)


def _reviewers() -> list[User]:
    return list(User.objects.filter(username__in=["reviewer1", "reviewer2"]).order_by("username"))


def _example_queue(run: Run, lead: User) -> None:
    """A closed queue with ratings made for show, so that agreement and correction have something to tell."""
    spec = QueueSpec(name="Demo examples · 데모 예시", size=EXAMPLE, seed=SEED + 1, reviews_needed=2, example=True)
    queue = make_queue(run, spec, metrics=METRICS, reviewers=_reviewers(), by=lead)
    told, people = _told(), {user.username: user for user in _reviewers()}
    for item in queue.items.select_related("answer__question").order_by("shuffle_key"):
        given = told.get(item.answer.question.external_id, {})
        for slot, (username, values) in enumerate(sorted(given.items()), start=1):
            _rate(item, queue, people[username], slot, values)
    close(queue, by=lead)


def _rate(item: ReviewItem, queue: ReviewQueue, user: User, slot: int, values: Mapping[str, Given]) -> None:
    assignment = Assignment.objects.create(
        item=item, queue=queue, reviewer=user, slot=slot, lease_until=lease_end(queue), opened_at=Now()
    )
    held = loaded(assignment.pk)
    if submit(held, values, idempotency_key=f"demo-{held.pk}", by=user, active_ms=48_000).reveal:
        reveal(held)
        finalise(held, by=user)


def _told() -> dict[str, dict[str, dict[str, Given]]]:
    """Question -> reviewer -> metric -> what they gave."""
    told: dict[str, dict[str, dict[str, Given]]] = defaultdict(lambda: defaultdict(dict))
    for line in (HERE / "ratings.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["system"] == "demo-graph":
            given = Given(value=float(row["value"]), comment=row["comment"])
            told[row["question_id"]][row["reviewer"]][row["metric"]] = given
    return told
