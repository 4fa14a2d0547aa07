"""Settings of a review queue, each declared once: default, range, labels and help texts.

Table columns and checks, the form, the REST body, the command's flags, validation and the table in ``docs/queues.md``
follow from :class:`QueueSpec`. Choices of rows (runs, criteria, people, answers) are no settings."""

from datetime import datetime
from typing import Any

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _

from evaluation.specs.setting import Flag, Input, Spec, setting, settings_of
from review.statistics.sampling.member import Strategy

MAX_REVIEWS = 10
MAX_NAME_LENGTH = 200
# Limit of criteria per answer where the product chooses them.
CRITERIA_PER_ANSWER = 3


class Mode(TextChoices):
    """Visibility of the judge before the rating."""

    BLIND = "blind", _("blind")
    ASSISTED = "assisted", _("assisted")


class Reveal(TextChoices):
    """Rule for showing the judge after a blind rating."""

    ON_DIFFERENCE = "on_difference", _("when they differ")
    ALWAYS = "always", _("always")
    NEVER = "never", _("never")


class Coverage(TextChoices):
    """Criteria to ask for if none are named, and their spread over the answers."""

    CORRECTED = "corrected_overall", _("every judged criterion of the overall score, in rotation")
    FEWEST = "fewest_keys", _("the two or three most important criteria")


class Distribution(TextChoices):
    """Distribution of items to reviewers."""

    POOL = "pool", _("anyone available")
    ROUND_ROBIN = "round_robin", _("in rotation")
    BALANCED = "balanced", _("the least busy reviewer")
    PER_ITEM = "per_item", _("assigned answer by answer")
    BY_TAG = "by_tag", _("by question tag or category")


class QueueSpec(Spec):
    """Settings for sampling, distribution, rating and reveal.

    Without a ``seed`` a random one is used. ``fail_below`` and ``share`` belong to the strategy ``fails_plus_share``.

    :raises DomainError: ``setting_range`` for a number out of range.
    :raises UnknownName: for an unknown choice."""

    size: int = setting(
        60,
        who="everybody",
        limits=(0, 1_000_000),
        form=Input("main", _("Number of answers"), limits=(1, 100_000)),
        flag=Flag("answers to draw"),
    )
    coverage: Coverage = setting(
        Coverage.CORRECTED,
        who="who wants fewer keys for each answer, or all of the named criteria of every answer (`fewest_keys`)",
        form=Input(
            "main",
            _("Purpose"),
            _("At most three criteria per answer, and only those that apply."),
            choices={
                Coverage.CORRECTED: _("Full review: every judged criterion (needed for a corrected score)"),
                Coverage.FEWEST: _("Quick review: the two or three most important criteria"),
            },
            widget="radio",
        ),
        flag=Flag("which criteria, and of which answers: every judged part in turn, or the few that matter most"),
        body="More than three criteria are asked in turn, or (fewest_keys) all of every answer. None named: every "
        "judged part of the overall score, or the three that matter most.",
    )
    strategy: Strategy = setting(
        Strategy.STRATIFIED,
        who="who looks for the judge's errors, or picks the answers",
        form=Input(
            "main",
            _("Answers to review"),
            choices={
                Strategy.STRATIFIED: _("Spread across judge scores and categories (recommended)"),
                Strategy.UNIFORM: _("Random"),
                Strategy.ALL: _("Every answer"),
                Strategy.FAILS_PLUS_SHARE: _("All answers the judge failed, plus a sample of the rest"),
                Strategy.UNCERTAINTY: _("Where the judge is least consistent"),
                Strategy.HAND_PICKED: _("Questions I choose (no corrected score)"),
                Strategy.SECOND_OPINION: _("Already rated answers (second opinion)"),
            },
        ),
    )
    reviews_needed: int = setting(
        1,
        who="who wants to know how far experts agree",
        limits=(1, MAX_REVIEWS),
        column=_("reviewers per answer"),
        form=Input(
            "main", _("Reviewers per answer"), _("Two or more are needed to measure agreement between experts.")
        ),
        flag=Flag("reviewers per answer, {low} to {high}"),
    )
    mode: Mode = setting(
        Mode.BLIND,
        who="who wants answers rated faster, and no agreement from it",
        column=_("mode"),
        form=Input(
            "more",
            _("Mode"),
            choices={
                Mode.BLIND: _("Blind: experts rate before seeing the judge"),
                Mode.ASSISTED: _("Assisted: the judge is shown immediately (not used for agreement)"),
            },
            widget="radio",
        ),
    )
    reveal: Reveal = setting(
        Reveal.ON_DIFFERENCE,
        who="who trains reviewers (`always`), or wants no rating changed by the judge (`never`)",
        column=_("show the judge"),
        form=Input(
            "more",
            _("Show the judge afterwards"),
            choices={
                Reveal.ON_DIFFERENCE: _("when they differ, and sometimes at random"),
                Reveal.ALWAYS: _("always"),
                Reveal.NEVER: _("never"),
            },
        ),
    )
    reveal_threshold: float = setting(
        3.0,
        who="who has finer or coarser scales; 0: no difference shows the judge",
        limits=(0, 1e6),
        column=_("difference that reveals the judge"),
        form=Input("more", _("Show the judge when they differ by (levels)"), limits=(0, 100)),
        flag=Flag("levels apart that show the judge"),
    )
    reveal_share: float = setting(
        0.1,
        who="who does not want the judge's appearance to say that the two differ",
        limits=(0, 1),
        column=_("share shown at random"),
        form=Input("more", _("Also show the judge at random (%)"), name="reveal_percent", percent=True),
        flag=Flag("share shown the judge by chance, {low} to {high}"),
    )
    adjudicate_from: float = setting(
        2.0,
        who="who has a lead decide on smaller differences, or on none (0)",
        limits=(0, 1e6),
        column=_("reviewer difference sent to a lead"),
        form=Input(
            "more",
            _("Send to a lead when reviewers differ by (levels)"),
            _("0: differences are never sent."),
            limits=(0, 100),
        ),
        flag=Flag("levels between two reviewers a lead decides on; 0: none"),
        body="Levels between two first ratings from which a lead decides; 0: never.",
    )
    fail_below: float | None = setting(
        None,
        who="who draws by `fails_plus_share`",
        form=Input("draw", _("Judge score below which an answer fails"), _("On the criterion's own scale.")),
        flag=Flag("for fails_plus_share: judge scores under it are fails"),
    )
    share: float | None = setting(
        None,
        who="who draws by `fails_plus_share`",
        limits=(1e-9, 1),
        form=Input(
            "draw",
            _("Share of other answers (%)"),
            _("Default: as many as the number of answers allows."),
            name="other_share",
            percent=True,
            limits=(0.001, 1),
        ),
        flag=Flag("for fails_plus_share: share of the other answers, 0 to 1"),
    )
    seed: int | None = setting(None, who="who repeats a draw", limits=(0, 2**63 - 1), column=_("seed"))
    distribution: Distribution = setting(
        Distribution.POOL,
        who="who wants equal parts, or each field with its experts",
        column=_("distribution"),
        form=Input(
            "people",
            _("Reviewer assignment"),
            choices={
                Distribution.POOL: _("Anyone available takes the next answer"),
                Distribution.ROUND_ROBIN: _("Everyone in rotation"),
                Distribution.BALANCED: _("The least busy reviewer"),
                Distribution.BY_TAG: _("By question tag or category"),
                Distribution.PER_ITEM: _("I assign people answer by answer on the queue page"),
            },
        ),
    )
    overlap_share: float = setting(
        1.0,
        who="who measures agreement on a part of the answers only",
        limits=(0, 1),
        column=_("share rated by several reviewers"),
        form=Input(
            "people",
            _("Share of answers rated by several reviewers (%)"),
            _("The rest are rated once. 10 to 20 percent is enough to measure agreement."),
            name="overlap_percent",
            percent=True,
        ),
        flag=Flag("share that --reviews-needed people rate, {low} to {high}"),
    )
    repeat_share: float = setting(
        0.0,
        who="who wants to know how far reviewers agree with themselves",
        limits=(0, 0.5),
        column=_("share of hidden repeats"),
        form=Input(
            "people",
            _("Hidden repeats (%)"),
            _("The same person gets these answers again, much later and unmarked. They are never counted twice."),
            name="repeat_percent",
            percent=True,
        ),
        flag=Flag("share that comes again unmarked, {low} to {high}"),
    )
    lease_minutes: int = setting(
        30,
        who="who has answers that take longer than half an hour",
        limits=(1, 1440),
        column=_("reservation time (minutes)"),
        flag=Flag("how long an answer stays reserved"),
    )
    deadline: datetime | None = setting(
        None,
        who="who wants reviewers reminded",
        column=_("deadline"),
        form=Input("people", _("Deadline"), _("Reviewers with unrated answers get an e-mail reminder before it.")),
        flag=Flag("such as 2026-12-01T18:00"),
    )
    name: str = setting(
        "",
        who="who has several queues under way",
        limits=(0, MAX_NAME_LENGTH),
        column=_("name"),
        form=Input(
            "more",
            _("Name"),
            _(
                "Reviewers see this name. Don't mention the system, judge or sampling. Default: question set "
                "and a number."
            ),
        ),
        flag=Flag("reviewers read it: no system, judge or strategy"),
    )
    guideline: str = setting(
        "",
        who="who has rules that the rubrics do not say",
        limits=(0, 100_000),
        column=_("guideline"),
        form=Input("more", _("Guideline for reviewers"), limits=(0, 20_000)),
    )
    hide_system: bool = setting(
        True,
        who="who cannot rate without knowing the system; recorded",
        column=_("hide the system"),
        form=Input("more", _("Show reviewers which system answered"), _("This is recorded."), name="show_system"),
        flag=Flag("reviewers see which system answered (recorded)", name="show_system"),
    )
    # Ratings of an example queue are made for show.
    example: bool = setting(False, column=_("example"))

    @property
    def ratings_per_answer(self) -> float:
        """Average number of ratings per answer, hidden repeats included."""
        return (1 + (self.reviews_needed - 1) * self.overlap_share) * (1 + self.repeat_share)

    def rotates_criteria(self, metric_count: int) -> bool:
        """Return whether each answer is asked only a few of so many metrics."""
        return self.coverage == Coverage.CORRECTED and metric_count > CRITERIA_PER_ANSWER

    def share_per_criterion(self, metric_count: int) -> float:
        """Share of the answers on which each of so many metrics is rated."""
        return CRITERIA_PER_ANSWER / metric_count if self.rotates_criteria(metric_count) else 1.0

    @property
    def columns(self) -> dict[str, Any]:
        """Values of the settings that are columns of the queue's row."""
        return self.model_dump(include=set(COLUMNS))


SETTINGS = settings_of(QueueSpec)
CONFIGURABLE_SETTINGS = tuple(queue_setting for queue_setting in SETTINGS.values() if queue_setting.who)
COLUMNS = tuple(name for name, queue_setting in SETTINGS.items() if queue_setting.column)
