"""Choice of profiles on the page of a new run."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from evaluation.judges.shipping import declared, default_profile
from evaluation.models import AnswerSet, ProfileVersion
from evaluation.profiles.spec import ProfileSpec, shipped_profiles
from evaluation.runs.making import Asking


@dataclass(frozen=True, slots=True)
class ProfileChoice:
    """A profile, what it measures in a sentence, and which fields it needs: those that questions and answers have, and
    those that none of them has."""

    spec: ProfileSpec
    there: tuple[str, ...]
    lacking: tuple[str, ...]

    @property
    def title(self) -> str:
        """In the reader's language."""
        return self.spec.title.ko if _korean() else self.spec.title.en

    @property
    def description(self) -> str:
        """In the reader's language; empty for a profile without one."""
        text = self.spec.description
        return "" if text is None else text.ko if _korean() else text.en


def _korean() -> bool:
    return (get_language() or "en").startswith("ko")


def profile_choices(source: AnswerSet | Asking) -> list[ProfileChoice]:
    """The profiles that ship and those of the project in their newest version; the one that is preselected first."""
    specs = {spec.name: spec for spec in shipped_profiles()}
    written = ProfileVersion.objects.filter(project=source.project).order_by("version")
    specs |= {row.name: ProfileSpec.model_validate(row.spec) for row in written.exclude(created_by=None)}
    held = _held(source)
    preselected = default_profile(source.project)
    return [_choice(spec, held) for spec in sorted(specs.values(), key=lambda spec: spec.name != preselected)]


INPUTS = {
    "reference": _("expected answer"),
    "keywords": _("expected keywords"),
    "check": _("check for negative questions"),
    "required_info": _("required information"),
    "nuggets": _("core facts"),
    "ground_truth_chunk_ids": _("ids of the passages that should be found"),
    "contexts": _("retrieved passages"),
    "retrieved_ids": _("ids of retrieved passages"),
    "latency": _("latency"),
}


def _choice(spec: ProfileSpec, held: set[str]) -> ProfileChoice:
    metrics = declared()
    needed = dict.fromkeys(one for name in spec.metrics if name in metrics for one in metrics[name].inputs)
    named = [one for one in needed if one in INPUTS]  # others, such as embeddings, are not in files
    return ProfileChoice(
        spec,
        there=tuple(str(INPUTS[one]) for one in named if one in held),
        lacking=tuple(str(INPUTS[one]) for one in named if one not in held),
    )


_QUESTION_FIELDS = {
    "reference": ("references",),
    "keywords": ("keywords",),
    "check": ("check",),
    "required_info": ("required_info",),
    "nuggets": ("nuggets",),
    "ground_truth_chunk_ids": ("ground_truth_chunk_ids",),
}


def _held(source: AnswerSet | Asking) -> set[str]:
    """The fields that at least one question, or answer, has."""
    found: set[str] = set()
    for spec in source.question_set.questions.values_list("spec", flat=True).iterator():
        found |= {name for name, fields in _QUESTION_FIELDS.items() if any(spec.get(field) for field in fields)}
        if len(found) == len(_QUESTION_FIELDS):
            break
    if isinstance(source, Asking):
        return found | {"contexts", "retrieved_ids", "latency"}
    answers = source.answers.all()
    shown = {
        "contexts": answers.filter(contexts__isnull=False),
        "retrieved_ids": answers.exclude(retrieved_ids=None) | answers.filter(contexts__isnull=False),
        "latency": answers.exclude(latency_seconds=None),
    }
    return found | {name for name, rows in shown.items() if rows.exists()}
