"""Hold-out labels are readable only by leads who opened the hold-out, in every run and by every selector."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evaluation.core.errors import DomainError
from evaluation.core.roles import Role
from evaluation.criteria.rubrics import draft, propose
from evaluation.models import Answer, Endpoint, HoldOutOpening, Project, Run, User
from review.calibration.openings import open_hold_outs
from review.calibration.retirement import retire
from review.calibration.search import open_search
from review.calibration.versions import freeze
from review.evidence.effective import effective_values, load_evidence, run_samples
from review.evidence.seals import LabelForm, fixed_label_form, label_form, read_as, readable, sealed_answers
from review.models import GoldItem, GoldSet, Override, Rating
from review.reports.inputs import load_inputs
from review.statistics.gold_split import Split
from tests.factories import make_answer_set, make_judge, make_project, make_question_set, make_user, question_spec
from tests.review.builders import answer_rows, imported_rating, metric, run_over, score
from tests.review.calibration.labelled import FAMILY, rubric_with_instruction

pytestmark = pytest.mark.django_db
ANSWERS = 20


def scored_run(project: Project | None = None) -> Run:
    """Create answers that the judge scores 3 and two experts 2 and 4 or 1 and 5."""
    project = project or make_project()
    specs = [question_spec(n) for n in range(ANSWERS)]
    texts = [f"Answer number {n}" for n in range(ANSWERS)]
    run = run_over(make_answer_set(make_question_set(project, specs), texts=texts), judged=False)
    for number, answer in enumerate(answer_rows(run)):
        score(run, answer, metric("correctness"), 3)
        imported_rating(answer, metric("correctness"), "a", 2 if number % 2 else 1, sampling="all")
        imported_rating(answer, metric("correctness"), "b", 4 if number % 2 else 5, sampling="all")
    return run


@pytest.fixture
def run() -> Run:
    return scored_run()


@pytest.fixture
def gold(run: Run) -> GoldSet:
    return freeze(run, "gold", by=None)


def locked_answers(gold: GoldSet) -> set[int]:
    return set(gold.items.filter(split=Split.HOLD_OUT).values_list("answer", flat=True))


def make_lead(run: Run) -> User:
    return make_user(Role.LEAD, run.project)


def test_nothing_is_excluded_without_a_gold_set(run: Run) -> None:
    evidence = load_evidence(run)
    assert evidence.sealed == frozenset()
    assert len(evidence.ratings) == 2 * ANSWERS
    assert label_form(run.project_id) is LabelForm.OPEN


def test_labels_of_locked_answers_count_as_unrated(run: Run, gold: GoldSet) -> None:
    evidence = load_evidence(run)
    assert evidence.sealed == locked_answers(gold)
    assert {row.answer_id for row in evidence.ratings} == set(evidence.answers) - locked_answers(gold)
    values = effective_values(run).values[metric("correctness").pk]
    assert all(values[answer].source == "judge" for answer in locked_answers(gold))
    assert all(row.value is None and row.label is None for row in evidence.withheld)


def test_overrides_of_locked_answers_are_sealed(run: Run, gold: GoldSet) -> None:
    person = make_lead(run)
    for answer in Answer.objects.filter(pk__in=locked_answers(gold)):
        Override.objects.create(
            answer=answer, metric=metric("correctness"), seq=1, kind="adjudication", value=1, reason="r", by=person
        )
    assert not load_evidence(run).decisions
    with fixed_label_form(LabelForm.FULL):
        assert len(load_evidence(run).decisions) == len(locked_answers(gold))


def test_labels_of_an_equal_answer_in_another_set_are_sealed(run: Run, gold: GoldSet) -> None:
    later_run = run_over(
        make_answer_set(run.answer_set.question_set, texts=[answer.text for answer in answer_rows(run)]), judged=False
    )
    evidence = load_evidence(later_run)
    assert len(evidence.sealed) == len(locked_answers(gold))
    assert {answer for answer, _ in evidence.carried} == set(evidence.answers) - evidence.sealed
    for answer in answer_rows(later_run):
        imported_rating(answer, metric("correctness"), "c", 2)
    assert {row.answer_id for row in load_evidence(later_run).ratings} == set(evidence.answers) - evidence.sealed


def test_equal_answers_of_other_projects_stay_open(run: Run, gold: GoldSet) -> None:
    other_run = scored_run(make_project())
    assert load_evidence(other_run).sealed == frozenset()


def test_another_answer_to_a_locked_question_stays_open(run: Run, gold: GoldSet) -> None:
    other_run = run_over(make_answer_set(run.answer_set.question_set, texts=["Something else"] * ANSWERS), judged=False)
    assert load_evidence(other_run).sealed == frozenset()


def test_open_answers_are_weighted_by_the_open_share(run: Run, gold: GoldSet) -> None:
    """All answers are rated: each open one stands for N / open answers, so the corrected mean is theirs."""
    basis = load_inputs(run)
    (pk,) = basis.correction.labels
    labels, places = (
        basis.correction.labels[pk],
        run_samples(run, basis.evidence).inclusions(pk, basis.evidence.ratings),
    )
    assert len(labels.means) == ANSWERS - len(locked_answers(gold))
    assert all(place.sampled and place.probability == 1.0 for place in places.values())
    assert labels.silent == frozenset()


def test_label_form_depends_on_the_reader(run: Run, gold: GoldSet) -> None:
    person, evaluator = make_lead(run), make_user(Role.EVALUATOR, run.project)
    with read_as(lambda: person):
        assert len(sealed_answers(run.project_id, run.answer_set_id)) == len(locked_answers(gold))
    open_hold_outs(run.project, by=person)
    with read_as(lambda: person):
        assert sealed_answers(run.project_id, run.answer_set_id) == frozenset()
        assert readable(Rating.objects.all()).count() == 2 * ANSWERS
    with read_as(lambda: evaluator):
        assert label_form(run.project_id) is LabelForm.OPEN
        assert readable(Rating.objects.all()).count() == 2 * (ANSWERS - len(locked_answers(gold)))


def test_full_form_ends_with_the_role_and_with_a_new_gold_set(run: Run, gold: GoldSet) -> None:
    person = make_lead(run)
    open_hold_outs(run.project, by=person)
    freeze(run, "second", by=None, seed=7)
    with read_as(lambda: person):
        assert label_form(run.project_id) is LabelForm.OPEN
    open_hold_outs(run.project, by=person)
    with read_as(lambda: person):
        assert label_form(run.project_id) is LabelForm.FULL
    person.grants.all().delete()
    with read_as(lambda: person):
        assert label_form(run.project_id) is LabelForm.OPEN


def test_lead_who_opened_the_holdout_cannot_draft_or_propose(run: Run, gold: GoldSet) -> None:
    person, other_lead = make_lead(run), make_lead(run)
    endpoint = Endpoint.objects.create(name="local", base_url="http://127.0.0.1:9/v1")
    judge = make_judge(run.project, "judge", endpoint=endpoint)
    version = draft(run.project, rubric_with_instruction("Before"), by=person)
    open_hold_outs(run.project, by=person)
    with pytest.raises(DomainError, match="drafter_opened"):
        draft(run.project, rubric_with_instruction("After"), by=person)
    with pytest.raises(DomainError, match="drafter_opened"):
        propose(version, judge, by=person)
    with pytest.raises(DomainError, match="drafter_opened"):
        open_search(gold, judge, FAMILY, "rewrite", by=person)
    draft(run.project, rubric_with_instruction("Somebody else's"), by=other_lead)
    assert [row.families for row in HoldOutOpening.objects.all()] == [[FAMILY]]


def test_retirement_opens_labels_to_everyone_and_lifts_the_bar(run: Run, gold: GoldSet) -> None:
    person = make_lead(run)
    open_hold_outs(run.project, by=person)
    retire(gold, by=person, reason="A larger one is next")
    assert load_evidence(run).sealed == frozenset()
    draft(run.project, rubric_with_instruction("After"), by=person)
    with pytest.raises(DomainError, match="nothing_sealed"):
        open_hold_outs(run.project, by=person)


def test_label_locked_by_another_gold_set_stays_sealed(run: Run, gold: GoldSet) -> None:
    second = freeze(run, "second", by=None, seed=7)
    retire(gold, by=None, reason="One of two")
    assert load_evidence(run).sealed == locked_answers(second)
    assert GoldItem.objects.filter(gold_set=gold, split=Split.HOLD_OUT).exists()


#: Modules that read tables of labels and need no selector, and why.
WITHOUT_SELECTOR = {
    "review/ratings/api.py": "`review.queues.access.visible_ratings`, which uses it",
    "review/calibration/workbench.py": "ratings behind labels of examples and validation",
    "review/comparisons/trend.py": "whether a run has ratings",
    "review/decisions/adjudication.py": "whether the person rated the answer; the rows a new decision follows",
    "review/evidence/answers.py": "which answers were rated",
    "review/evidence/carried.py": "read by `load_evidence`, which leaves sealed answers out",
    "review/evidence/experts.py": "read by `load_evidence`, which leaves sealed answers out",
    "review/ratings/import_files.py": "which metrics were rated",
    "review/queues/draws.py": "which answers were rated",
    "review/queues/pace.py": "the time that ratings took",
    "review/queues/sampling.py": "which answers were rated, and by whom",
    "review/ratings/reveals.py": "ratings of the assignment in the person's hands",
    "review/ratings/submitting.py": "ratings of the assignment in the person's hands",
    "config/back_office_page.py": "whether anything was rated",
}
LABELS = re.compile(
    r"\b(Rating|Override|RatingPart|SuggestedAnswer)\.objects\b|\b(visible_ratings|read_ratings_with|standing_decisions|carried_ratings)\(|"
    r"\.(ratings|overrides)\.(all|filter|order_by|values|values_list|exclude)\("
)


PRODUCT = ("config", "contrib", "evaluation", "review")


def test_every_module_that_reads_labels_uses_the_selector() -> None:
    """A new module that reads ratings or decisions fails here until it uses :mod:`review.evidence.seals` or is listed
    above."""
    root = Path(__file__).parents[3]
    paths = [path for package in PRODUCT for path in (root / package).rglob("*.py")]
    paths = [path for path in paths if "tests" not in path.relative_to(root).parts]
    sources = {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in paths}
    readers = {name for name, source in sources.items() if LABELS.search(source)}
    assert {name for name in readers if "review.evidence.seals" not in sources[name]} == set(WITHOUT_SELECTOR)
