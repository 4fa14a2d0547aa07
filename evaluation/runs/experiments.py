"""Experiment files: what a run is made of, as YAML that ``evaluate --config`` reads and every run can be written as.

Its keys are the options of ``evaluate``, so that what a command line can say a file can. The configuration of an
experiment as source 000 has it (``response_llm``, ``judge_llm``) is read as well: of it the judge is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from evaluation.core.described import read_yaml
from evaluation.core.errors import InvalidFile, Problem, UnknownName
from evaluation.criteria.rubrics import slot_of
from evaluation.judging.catalogue import family_named
from evaluation.judging.rubric import FAMILY_PREFIX, is_criterion
from evaluation.models import Endpoint, JudgeVersion, Project, RubricVersion, Run, RunJudge
from evaluation.profiles.spec import ProfileSpec
from evaluation.worker.lifecycle import RunConfig

#: Models of an experiment of source 000, the one that judges first.
MODELS = ("judge_llm", "response_llm")


def read_experiment(path: Path, model: type[BaseModel]) -> dict[str, Any]:
    """What a file says, by the names of the options that its model has.

    :raises InvalidFile: ``experiment_not_yaml`` and ``experiment_invalid`` with line and field;
        ``experiment_has_questions`` for one of source 000 that still lists its questions.
    :raises OSError: where it cannot be read.
    """
    text = path.read_text(encoding="utf-8", errors="replace")
    options = _of_source_000(text, path) or read_yaml(model, text, path.name, "experiment").model_dump()
    return {name: list(value) if isinstance(value, tuple) else value for name, value in options.items()}


def _of_source_000(text: str, path: Path) -> dict[str, Any] | None:
    """A configuration of source 000: its name and who judges; how its graph was made is no part of an evaluation.
    ``None`` where it is none."""
    try:
        whole = yaml.load(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError:
        return None
    if not isinstance(whole, dict) or not whole.keys() & set(MODELS):
        return None
    if "eval_queries" in whole:
        raise InvalidFile([Problem("experiment_has_questions", path.name, field="eval_queries")])
    judge = next(model for name in MODELS if (model := _model(whole.get(name))))
    return {"name": str(whole.get("name") or path.stem)[:200], "judge": (judge,)}


def _model(said: Any) -> str:
    """The model that a setting names, by itself or among others."""
    if isinstance(said, dict):
        said = next((said[key] for key in ("model", "model_id", "name") if said.get(key)), "")
    return str(said or "")


def judges_named(project: Project, names: Sequence[str]) -> list[str]:
    """The names, where one is no judge's the judge whose model it is: source 000 names models.

    :raises UnknownName: for a model that several judges are.
    """
    rows = JudgeVersion.objects.filter(project=project).order_by("version")
    known = {one.name: one.model for one in rows}
    found = []
    for name in names:
        by_model = sorted(judge for judge, model in known.items() if model == name)
        if name not in known and len(by_model) > 1:
            raise UnknownName("judge", name, by_model)
        found.append(by_model[0] if name not in known and by_model else name)
    return found


def experiment_of(run: Run) -> str:
    """A run as such a file. Run again, it judges the same answers, and the configuration has the same hash."""
    config = RunConfig.model_validate(run.config)
    seats = list(run.judges.select_related("judge_version", "rubric_version").order_by("-primary", "pk"))
    judges = list(dict.fromkeys(seat.judge_version for seat in seats))
    jury = next((one.params["jury"]["rule"] for one in judges if one.is_jury), "")
    named = [one.name for place, one in enumerate(judges) if not one.is_jury and (place == 0 or not one.is_baseline)]
    asked = [seat.rubric_version for seat in seats if seat.judge_version.endpoint_id is not None]
    pinned = (f"{one.family}@{one.version}" for one in asked if not is_criterion(one.family))
    said: dict[str, Any] = {
        "questions": f"{run.answer_set.question_set.name}@{run.answer_set.question_set.version}",
        "system": run.answer_set.system_version.system.name,
        "project": run.project.name,
        "name": run.name,
        "profile": run.profile_version.name,
        "judge": named,
        "no_judge": not seats,
        "no_baseline": bool(seats) and not any(one.is_baseline for one in judges),
        "jury": jury,
        "rubric": list(dict.fromkeys(pinned)),
        "language": _language(seats),
        "embeddings": _embedding(config),
        "metrics": _beside(run, config, [seat.rubric_version for seat in seats]),
        "reuse_answers": run.pk,
        "ids": list(config.question_ids),
        "repeat": config.repeat,
        "max_concurrency": config.max_concurrency,
        "budget": None if run.budget is None else float(run.budget),
        "no_cache": not config.use_cache,
        "batch": config.batch,
    }
    kept = {name: value for name, value in said.items() if value not in (None, "", False, [])}
    return yaml.safe_dump(kept, sort_keys=False, allow_unicode=True)


def _beside(run: Run, config: RunConfig, rubrics: Iterable[RubricVersion]) -> list[str]:
    """The metrics that the run computes beside its profile's, one for each further rubric family."""
    profile = ProfileSpec.model_validate(run.profile_version.spec).metrics
    found = dict.fromkeys(name for name in (*config.rules, *config.embeddings) if name not in profile)
    for rubric in rubrics:
        names = (
            [rubric.family.removeprefix(FAMILY_PREFIX)]
            if is_criterion(rubric.family)
            else [spec.name for spec in family_named(rubric.family).given]
        )
        if not set(names) & set(profile):
            found.setdefault(names[0])
    return list(found)


def _language(seats: Iterable[RunJudge]) -> str:
    """The language of the prompts where it is not the judges' own."""
    other = (seat for seat in seats if seat.rubric_version.language != slot_of(seat.judge_version, "").language)
    return next((seat.rubric_version.language for seat in other), "")


def _embedding(config: RunConfig) -> str:
    if config.embedding is None:
        return "none"
    if config.embedding.endpoint is None:
        return "local"
    return Endpoint.objects.values_list("name", flat=True).get(pk=config.embedding.endpoint)
