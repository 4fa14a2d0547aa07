"""Look-ups by name: projects, question sets, answers, and selected questions of a set."""

from __future__ import annotations

from evaluation.core.canonical import normalize_nfc
from evaluation.core.errors import DomainError, UnknownName
from evaluation.models import AnswerSet, Project, QuestionSet, Run, System
from evaluation.models.run_spec import RunSpec


def selected_questions(questions: QuestionSet, spec: RunSpec) -> tuple[str, ...]:
    """External ids of the questions of a run, in the order of the set; empty if nothing restricts them.

    :raises DomainError: ``no_question_selected`` if the options leave none."""
    if not (spec.categories or spec.tags or spec.question_ids or spec.limit):
        return ()
    ids, tags = frozenset(map(normalize_nfc, spec.question_ids)), set(map(normalize_nfc, spec.tags))
    categories = frozenset(map(normalize_nfc, spec.categories))
    rows = questions.questions.order_by("position").values_list("external_id", "category", "spec__tags")
    selected = [
        name
        for name, category, question_tags in rows.iterator()
        if (not ids or name in ids)
        and (not categories or category in categories)
        and (not tags or (isinstance(question_tags, list) and not tags.isdisjoint(map(str, question_tags))))
    ]
    if not selected:
        raise DomainError("no_question_selected")
    return tuple(selected[: spec.limit])


def get_project(name: str = "") -> Project:
    """The named project, or the only one.

    :raises UnknownName: for an unknown name.
    :raises DomainError: ``project_needed`` if several projects exist and none is named, ``no_project`` if none
    exists."""
    projects = list(Project.objects.order_by("id"))
    if name:
        for project in projects:
            if project.name == name:
                return project
        raise UnknownName("project", name, [row.name for row in projects])
    if not projects:
        raise DomainError("no_project")
    if len(projects) > 1:
        raise DomainError("project_needed", names=", ".join(row.name for row in projects))
    return projects[0]


def get_question_set(project: Project, name: str) -> QuestionSet:
    """The newest version of a set, or ``NAME@VERSION``.

    :raises UnknownName: if the project has no such set."""
    name = normalize_nfc(name)
    plain, _, version = name.partition("@")
    sets = QuestionSet.objects.filter(project=project)
    candidates = sets.filter(name=plain, version=int(version)) if version.isdigit() else sets.filter(name=name)
    question_set = candidates.order_by("-version").first()
    if question_set is None:
        raise UnknownName("question set", name, list(sets.values_list("name", flat=True).distinct()))
    return question_set


def newest_answers(question_set: QuestionSet, system: str) -> AnswerSet:
    """The newest answers of a system to a question set.

    :raises UnknownName: for an unknown system.
    :raises DomainError: ``no_answers`` if the system has not answered this version of the set."""
    system = normalize_nfc(system)
    systems = System.objects.filter(project_id=question_set.project_id)
    if not systems.filter(name=system).exists():
        raise UnknownName("system", system, list(systems.values_list("name", flat=True)))
    answer_sets = AnswerSet.objects.filter(question_set=question_set, system_version__system__name=system)
    newest = answer_sets.exclude(content_hash=None).order_by("-id").first()
    if newest is None:
        raise DomainError("no_answers", system=system, questions=str(question_set))
    return newest


def answers_of_run(run_id: int, project: str = "", questions: str = "") -> AnswerSet:
    """The answers of an earlier run, to be judged again. A named project or question set must be the run's.

    :raises UnknownName: for an unknown project or question set.
    :raises DomainError: ``no_run`` if the project has no such run, ``other_questions`` if it answered another question
    set.
    """
    rows = Run.objects.select_related("answer_set__question_set__project")
    run = rows.filter(pk=run_id, **({"project": get_project(project)} if project else {})).first()
    if run is None:
        raise DomainError("no_run", run=run_id)
    if questions:
        question_set = get_question_set(run.project, questions)
        if run.answer_set.question_set_id != question_set.pk:
            raise DomainError("other_questions", run=run_id, questions=str(question_set))
    return run.answer_set
