"""Choice of profiles on the page of a new run."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from evaluation.judges.shipped import default_profile
from evaluation.metric_packages.declared import declared_metrics
from evaluation.models import AnswerSet, ProfileVersion
from evaluation.profiles.spec import ProfileSpec, shipped_profiles
from evaluation.runs.creation import CollectionRequest


@dataclass(frozen=True, slots=True)
class ProfileChoice:
    """A profile with its description, and the input fields it needs: those that questions and answers have, and those
    that are missing."""

    spec: ProfileSpec
    available: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def title(self) -> str:
        return self.spec.title.ko if _reads_korean() else self.spec.title.en

    @property
    def description(self) -> str:
        """The description in the reader's language; empty for a profile without one."""
        text = self.spec.description
        return "" if text is None else text.ko if _reads_korean() else text.en


def _reads_korean() -> bool:
    return (get_language() or "en").startswith("ko")


def profile_choices(source: AnswerSet | CollectionRequest) -> list[ProfileChoice]:
    """The shipped profiles and the newest versions of the project's own, the default first."""
    specs = {spec.name: spec for spec in shipped_profiles()}
    versions = ProfileVersion.objects.filter(project=source.project).order_by("version")
    specs |= {row.name: ProfileSpec.model_validate(row.spec) for row in versions.exclude(created_by=None)}
    available = _available_inputs(source)
    preselected = default_profile(source.project)
    return [
        _profile_choice(spec, available) for spec in sorted(specs.values(), key=lambda spec: spec.name != preselected)
    ]


INPUT_LABELS = {
    "reference": _("expected answer"),
    "keywords": _("expected keywords"),
    "check": _("negative-question check"),
    "required_info": _("required information"),
    "nuggets": _("core facts"),
    "ground_truth_chunk_ids": _("IDs of the passages to find"),
    "contexts": _("retrieved passages"),
    "retrieved_ids": _("IDs of the retrieved passages"),
    "latency": _("latency"),
}


def _profile_choice(spec: ProfileSpec, available: set[str]) -> ProfileChoice:
    metrics = declared_metrics()
    needed = dict.fromkeys(
        input_name for name in spec.metrics if name in metrics for input_name in metrics[name].inputs
    )
    # Other inputs, such as embeddings, are not in files.
    file_inputs = [input_name for input_name in needed if input_name in INPUT_LABELS]
    return ProfileChoice(
        spec,
        available=tuple(str(INPUT_LABELS[input_name]) for input_name in file_inputs if input_name in available),
        missing=tuple(str(INPUT_LABELS[input_name]) for input_name in file_inputs if input_name not in available),
    )


_QUESTION_FIELDS = {
    "reference": ("references",),
    "keywords": ("keywords",),
    "check": ("check",),
    "required_info": ("required_info",),
    "nuggets": ("nuggets",),
    "ground_truth_chunk_ids": ("ground_truth_chunk_ids",),
}


def _available_inputs(source: AnswerSet | CollectionRequest) -> set[str]:
    """The fields that at least one question or answer has."""
    inputs: set[str] = set()
    for spec in source.question_set.questions.values_list("spec", flat=True).iterator():
        inputs |= {name for name, fields in _QUESTION_FIELDS.items() if any(spec.get(field) for field in fields)}
        if len(inputs) == len(_QUESTION_FIELDS):
            break
    if isinstance(source, CollectionRequest):
        return inputs | {"contexts", "retrieved_ids", "latency"}
    answers = source.answers.all()
    answer_inputs = {
        "contexts": answers.filter(contexts__isnull=False),
        "retrieved_ids": answers.exclude(retrieved_ids=None) | answers.filter(contexts__isnull=False),
        "latency": answers.exclude(latency_seconds=None),
    }
    return inputs | {name for name, rows in answer_inputs.items() if rows.exists()}
