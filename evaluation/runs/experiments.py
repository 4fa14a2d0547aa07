"""Experiment files: the configuration of a run as YAML, for ``evaluate --config`` and for export from a run.

Keys are the options of ``evaluate``. The experiment configuration of the ``graphrag`` kind (``response_llm``,
``judge_llm``) is read too; only its judge is used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from evaluation.core.errors import InvalidFile, Problem, UnknownName
from evaluation.core.yaml_models import read_yaml
from evaluation.criteria.rubrics import rubric_scope
from evaluation.judging.catalogue import family_for
from evaluation.judging.rubric import FAMILY_PREFIX, is_criterion
from evaluation.models import Endpoint, JudgeVersion, Project, RubricVersion, Run, RunJudge
from evaluation.profiles.spec import ProfileSpec
from evaluation.worker.lifecycle import RunConfig

# Keys of models in an experiment of the graphrag kind; the judge's comes first.
GRAPHRAG_MODEL_KEYS = ("judge_llm", "response_llm")


def read_experiment(path: Path, model: type[BaseModel]) -> dict[str, Any]:
    """Read an experiment file into option values, by the option names of its model.

    :raises InvalidFile: ``experiment_not_yaml`` and ``experiment_invalid`` with line and field;
        ``experiment_has_questions`` for a graphrag experiment that still lists its questions.
    :raises OSError: if the file cannot be read."""
    text = path.read_text(encoding="utf-8", errors="replace")
    options = _read_graphrag_config(text, path) or read_yaml(model, text, path.name, "experiment").model_dump()
    return {name: list(value) if isinstance(value, tuple) else value for name, value in options.items()}


def _read_graphrag_config(text: str, path: Path) -> dict[str, Any] | None:
    """The name and judge of a graphrag experiment; ``None`` for other files."""
    try:
        document = yaml.load(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError:
        return None
    if not isinstance(document, dict) or not document.keys() & set(GRAPHRAG_MODEL_KEYS):
        return None
    if "eval_queries" in document:
        raise InvalidFile([Problem("experiment_has_questions", path.name, field="eval_queries")])
    judge = next(model for name in GRAPHRAG_MODEL_KEYS if (model := _model_name(document.get(name))))
    return {"name": str(document.get("name") or path.stem)[:200], "judge": (judge,)}


def _model_name(setting: Any) -> str:
    """The model name in a setting, which may be a text or a mapping."""
    if isinstance(setting, dict):
        setting = next((setting[key] for key in ("model", "model_id", "name") if setting.get(key)), "")
    return str(setting or "")


def resolve_judges(project: Project, names: Sequence[str]) -> list[str]:
    """Replace model names, as graphrag experiments have them, by the judges of those models.

    :raises UnknownName: for a model that several judges use."""
    rows = JudgeVersion.objects.filter(project=project).order_by("version")
    model_by_judge = {version.name: version.model for version in rows}
    resolved = []
    for name in names:
        by_model = sorted(judge for judge, model in model_by_judge.items() if model == name)
        if name not in model_by_judge and len(by_model) > 1:
            raise UnknownName("judge", name, by_model)
        resolved.append(by_model[0] if name not in model_by_judge and by_model else name)
    return resolved


def export_experiment(run: Run) -> str:
    """Export a run as an experiment file. Running it judges the same answers with the same configuration hash."""
    config = RunConfig.model_validate(run.config)
    run_judges = list(run.judges.select_related("judge_version", "rubric_version").order_by("-primary", "pk"))
    judges = list(dict.fromkeys(run_judge.judge_version for run_judge in run_judges))
    jury = next((version.params["jury"]["rule"] for version in judges if version.is_jury), "")
    judge_names = [
        version.name
        for index, version in enumerate(judges)
        if not version.is_jury and (index == 0 or not version.is_baseline)
    ]
    rubric_versions = [
        run_judge.rubric_version for run_judge in run_judges if run_judge.judge_version.endpoint_id is not None
    ]
    pinned = (f"{version.family}@{version.version}" for version in rubric_versions if not is_criterion(version.family))
    options: dict[str, Any] = {
        "questions": f"{run.answer_set.question_set.name}@{run.answer_set.question_set.version}",
        "system": run.answer_set.system_version.system.name,
        "project": run.project.name,
        "name": run.name,
        "profile": run.profile_version.name,
        "judge": judge_names,
        "no_judge": not run_judges,
        "no_baseline": bool(run_judges) and not any(version.is_baseline for version in judges),
        "jury": jury,
        "rubric": list(dict.fromkeys(pinned)),
        "language": _prompt_language(run_judges),
        "embeddings": _embedding_name(config),
        "metrics": _extra_metrics(run, config, [run_judge.rubric_version for run_judge in run_judges]),
        "reuse_answers": run.pk,
        "ids": list(config.question_ids),
        "repeat": config.repeat,
        "max_concurrency": config.max_concurrency,
        "budget": None if run.budget is None else float(run.budget),
        "no_cache": not config.use_cache,
        "batch": config.batch,
    }
    non_empty = {name: value for name, value in options.items() if value not in (None, "", False, [])}
    return yaml.safe_dump(non_empty, sort_keys=False, allow_unicode=True)


def _extra_metrics(run: Run, config: RunConfig, rubrics: Iterable[RubricVersion]) -> list[str]:
    """The metrics that the run computes in addition to its profile's, one for each further rubric family."""
    profile = ProfileSpec.model_validate(run.profile_version.spec).metrics
    extra = dict.fromkeys(
        name for name in (*config.rules, *config.own_rules, *config.embeddings) if name not in profile
    )
    for rubric in rubrics:
        names = (
            [rubric.family.removeprefix(FAMILY_PREFIX)]
            if is_criterion(rubric.family)
            else [spec.name for spec in family_for(rubric.rubric).produced_metrics]
        )
        if not set(names) & set(profile):
            extra.setdefault(names[0])
    return list(extra)


def _prompt_language(run_judges: Iterable[RunJudge]) -> str:
    """The language of the prompts if it differs from the judges' own."""
    different = (
        run_judge
        for run_judge in run_judges
        if run_judge.rubric_version.language != rubric_scope(run_judge.judge_version, "").language
    )
    return next((run_judge.rubric_version.language for run_judge in different), "")


def _embedding_name(config: RunConfig) -> str:
    if config.embedding is None:
        return "none"
    if config.embedding.endpoint is None:
        return "local"
    return Endpoint.objects.values_list("name", flat=True).get(pk=config.embedding.endpoint)
