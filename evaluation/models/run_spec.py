"""Options of a run, each declared once with default, range and texts.

The form of a new evaluation, the REST body, the flags of ``evaluate`` and the keys of an experiment file derive from
:class:`RunSpec` and :class:`AskSpec`. Rows (answers, a question set, a system) are passed separately."""

from decimal import Decimal
from typing import Literal
from uuid import UUID

from django.utils.translation import gettext_lazy as _

from evaluation.connectors.protocol import FULL_RAG, RETRIEVAL_ONLY
from evaluation.judging.formulas import JuryRule
from evaluation.specs.setting import Flag, Input, Spec, setting, settings_of


class AskSpec(Spec):
    """Options for collecting answers from a system."""

    k: int = setting(
        5,
        limits=(1, 50),
        form=Input("main", _("Passages per question")),
        flag=Flag("passages to request per question", also=("-k",), metavar="1..50"),
        body="passages to request per question",
    )
    evaluation_type: Literal["full_rag", "retrieval_only"] = setting(
        FULL_RAG,
        form=Input(
            "main",
            _("Requested output"),
            choices={
                FULL_RAG: _("passages and answer"),
                RETRIEVAL_ONLY: _("passages only (no judge)"),
            },
            name="type",
        ),
        flag=Flag("output to request", name="type", also=("-t",)),
        body="output to request",
    )


class CallSpec(Spec):
    """Options of a run's calls to judges."""

    max_concurrency: int = setting(32, limits=(1, 1000))
    repeat: int = setting(
        1,
        limits=(1, 50),
        form=Input("more", _("Judgements per answer")),
        flag=Flag("judgements per answer"),
    )
    use_cache: bool = setting(True, flag=Flag("make every call, even if a cached reply exists", name="no_cache"))
    batch: bool = setting(
        False,
        flag=Flag("send calls in batches, which are cheaper and take up to a day"),
        body="send calls in batches if the judge's endpoint supports them",
    )


class RunSpec(CallSpec):
    """Options of a run.

    An empty ``judge`` means the project's default, else the baseline; ``None`` means no judge. Judges in ``beside`` are
    only compared with it or, with a ``jury``, are its other members. ``categories``, ``tags`` and ``question_ids`` each
    restrict the questions unless empty; ``limit`` takes the first of the remaining ones. ``budget`` is in US dollars.
    """

    profile: str = setting(
        "",
        limits=(0, 100),
        form=Input("main", _("Profile"), widget="radio", rows=True),
        flag=Flag("name of the profile; default: the project's"),
        body="name of the profile; default: the project's",
    )
    judge: str | None = setting(
        "",
        limits=(0, 120),
        form=Input("main", _("Judge"), rows=True),
        flag=Flag(
            "name of the judge; default: the project's default or only judge, or the offline baseline. "
            "Repeat to compare with more judges",
            several="again",
        ),
    )
    beside: tuple[str, ...] = setting(
        (), limits=(0, 120), flag=None, body="more judges, only to compare with; with `jury` its other members"
    )
    embeddings: str = setting(
        "",
        limits=(0, 120),
        flag=Flag(
            "embedding endpoint, 'local' or 'none'; default: the judge's endpoint, or the first that embeds",
            metavar="NAME",
        ),
        body="name of an embedding endpoint, `local` or `none`; default: the judge's, or the first that embeds",
    )
    metrics: tuple[str, ...] = setting(
        (),
        limits=(0, 64),
        most=100,
        flag=Flag("metrics and criteria in addition to the profile's", metavar="NAME", several="at_once"),
        body="metrics and criteria in addition to the profile's",
    )
    limit: int | None = setting(
        None,
        limits=(1, 10**6),
        form=Input("more", _("Only the first N questions")),
        flag=Flag("only the first questions, up to this number"),
    )
    categories: tuple[str, ...] = setting(
        (),
        limits=(0, 200),
        form=Input("more", _("Only these categories"), widget="checkboxes", rows=True),
        flag=Flag("only questions of this category; repeat for more", name="category", several="again"),
    )
    tags: tuple[str, ...] = setting(
        (),
        limits=(0, 200),
        flag=Flag("only questions with this tag; repeat for more", name="tag", several="again"),
    )
    question_ids: tuple[str, ...] = setting(
        (), limits=(0, 200), flag=Flag("only questions with these ids", name="ids", several="at_once")
    )
    rubrics: tuple[str, ...] = setting(
        (),
        limits=(0, 120),
        most=20,
        form=Input(
            "more",
            _("Judge prompts"),
            _(
                "Default: the versions in force. Of several in a family, the first counts and the others are "
                "compared with it."
            ),
            widget="checkboxes",
            rows=True,
        ),
        flag=Flag(
            "prompt version to judge with; default: the active one. Repeat to compare versions with the first",
            name="rubric",
            metavar="FAMILY@V",
            several="again",
        ),
        body="prompt versions as `FAMILY@V`; default: the active ones. Of several in a family, the first counts",
    )
    language: Literal["", "en", "ko"] = setting(
        "",
        form=Input(
            "main",
            _("Language of the judge's reasons"),
            _("Prompts use this language too. An approval applies only to a prompt's own language."),
            choices={"ko": _("Korean"), "en": _("English")},
        ),
        flag=Flag("language of judge prompts and reasons; default: each judge's"),
        body="language of judge prompts and reasons; default: each judge's",
    )
    budget: Decimal | None = setting(
        None,
        limits=(0, 99_999_999),
        form=Input(
            "more",
            _("Budget in US dollars"),
            _("The run pauses when judge calls reach this cost. Raise the budget on the run's page to resume."),
        ),
        flag=Flag("pause when judge calls reach this cost", metavar="USD"),
    )
    jury: JuryRule | Literal[""] = setting("", flag=Flag("count all named judges as a jury, combined by this rule"))
    baseline: bool = setting(
        True,
        flag=Flag("do not judge with the offline baseline as well", name="no_baseline"),
        body="also judge with the offline baseline",
    )
    name: str = setting("", limits=(0, 300), form=Input("main", _("Run name")), flag=Flag("name of the run"))
    start_token: UUID | None = setting(
        None, flag=None, body="chosen by the caller; a repeated request creates no second run"
    )


ASK_OPTIONS = settings_of(AskSpec)
RUN_OPTIONS = settings_of(RunSpec)
DEFAULT_SPEC = RunSpec()
