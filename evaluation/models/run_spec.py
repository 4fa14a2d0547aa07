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
        flag=Flag("passages to ask for", also=("-k",), metavar="1..50"),
        body="passages to ask for",
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
        flag=Flag("what to ask for", name="type", also=("-t",)),
        body="what to ask for",
    )


class CallSpec(Spec):
    """Options of a run's calls to judges."""

    max_concurrency: int = setting(32, limits=(1, 1000))
    repeat: int = setting(
        1,
        limits=(1, 50),
        form=Input("more", _("Judgements per answer")),
        flag=Flag("judgements of each answer"),
    )
    use_cache: bool = setting(True, flag=Flag("make every call, paid for before or not", name="no_cache"))
    batch: bool = setting(
        False,
        flag=Flag("hand calls over in batches: cheaper, within a day"),
        body="hand calls over in batches where the judge's endpoint takes them",
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
        flag=Flag("name of a profile; else the project's default"),
        body="name of a profile; else the project's default",
    )
    judge: str | None = setting(
        "",
        limits=(0, 120),
        form=Input("main", _("Judge"), rows=True),
        flag=Flag(
            "name of a judge; else the project's default or only one, else the offline baseline. "
            "Named again: judges to compare with",
            several="again",
        ),
    )
    beside: tuple[str, ...] = setting(
        (), limits=(0, 120), flag=None, body="further judges, compared only; with `jury` its other members"
    )
    embeddings: str = setting(
        "",
        limits=(0, 120),
        flag=Flag(
            "endpoint to embed with, 'local' or 'none'; the judge's own endpoint, else the first that embeds",
            metavar="NAME",
        ),
        body="name of an endpoint that embeds, `local` or `none`; else the judge's own, else the first that does",
    )
    metrics: tuple[str, ...] = setting(
        (),
        limits=(0, 64),
        most=100,
        flag=Flag("metrics and criteria beside the profile's", metavar="NAME", several="at_once"),
        body="metrics and criteria beside the profile's",
    )
    limit: int | None = setting(
        None,
        limits=(1, 10**6),
        form=Input("more", _("Only the first N questions")),
        flag=Flag("only the first so many questions"),
    )
    categories: tuple[str, ...] = setting(
        (),
        limits=(0, 200),
        form=Input("more", _("Only these categories"), widget="checkboxes", rows=True),
        flag=Flag("only questions of it; named again: or of that", name="category", several="again"),
    )
    tags: tuple[str, ...] = setting(
        (),
        limits=(0, 200),
        flag=Flag("only questions with it; named again: or with that", name="tag", several="again"),
    )
    question_ids: tuple[str, ...] = setting(
        (), limits=(0, 200), flag=Flag("only these questions, by their ids", name="ids", several="at_once")
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
            "version to judge by, else the one in force. Named again: versions to compare with the first",
            name="rubric",
            metavar="FAMILY@V",
            several="again",
        ),
        body="versions to judge by as `FAMILY@V`, else those in force; of several of a family the first counts",
    )
    language: Literal["", "en", "ko"] = setting(
        "",
        form=Input(
            "main",
            _("Language of the judge's reasons"),
            _("Prompts use this language too. Proof applies only to a prompt's own language."),
            choices={"ko": _("Korean"), "en": _("English")},
        ),
        flag=Flag("of the judges' prompts and reasons; else each its own"),
        body="of the judges' prompts and reasons; else each its own",
    )
    budget: Decimal | None = setting(
        None,
        limits=(0, 99_999_999),
        form=Input(
            "more",
            _("Budget in US dollars"),
            _("The run pauses when judge calls reach this cost. Raise the budget on the run's page to resume."),
        ),
        flag=Flag("pause when judges' calls have cost so much", metavar="USD"),
    )
    jury: JuryRule | Literal[""] = setting("", flag=Flag("let all judges named count, joined so"))
    baseline: bool = setting(
        True,
        flag=Flag("without the offline baseline beside the judge", name="no_baseline"),
        body="the offline baseline judges as well",
    )
    name: str = setting("", limits=(0, 300), form=Input("main", _("Run name")), flag=Flag("name of the run"))
    start_token: UUID | None = setting(None, flag=None, body="chosen by the caller; asking twice makes one run")


ASK_OPTIONS = settings_of(AskSpec)
RUN_OPTIONS = settings_of(RunSpec)
DEFAULT_SPEC = RunSpec()
