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
MAX_LOOKS = 10
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
        when="always",
        limits=(0, 1_000_000),
        form=Input("main", _("Number of answers"), limits=(1, 100_000)),
        flag=Flag("number of answers to sample"),
    )
    looks: int = setting(
        2,
        when="to plan more rounds, or only one (its verdicts then use 95% intervals)",
        limits=(1, MAX_LOOKS),
        column=_("planned rounds"),
        form=Input(
            "draw",
            _("Planned rounds"),
            _("You read the score after each round. With more rounds, verdicts use wider intervals."),
        ),
        flag=Flag("planned number of rounds, {low} to {high}; with more rounds, verdicts use wider intervals"),
        body="Planned number of rounds. With more rounds, verdicts use wider intervals.",
    )
    later_size: int | None = setting(
        None,
        when="for later rounds of another size",
        limits=(1, 1_000_000),
        column=_("answers in each later round"),
        form=Input(
            "draw", _("Answers in each later round"), _("Default: as many as in this one."), limits=(1, 100_000)
        ),
        flag=Flag("number of answers in each later round; default: as many as in the first"),
        body="Number of answers in each later round; default: `size`.",
    )
    coverage: Coverage = setting(
        Coverage.CORRECTED,
        when="to ask fewer criteria per answer, or all named criteria for every answer (`fewest_keys`)",
        form=Input(
            "main",
            _("Purpose"),
            _("Quick review asks at most three criteria per answer, and only those that apply."),
            choices={
                Coverage.CORRECTED: _("Full review: every judged criterion (needed for a corrected score)"),
                Coverage.FEWEST: _("Quick review: the two or three most important criteria"),
            },
            widget="radio",
        ),
        flag=Flag("criteria to rate: every judged criterion in rotation, or the two or three most important"),
        body="Without `metrics`: every judged criterion of the overall score, or the three most important ones. More "
        "than three criteria are asked in rotation or, with `fewest_keys`, all for every answer.",
    )
    strategy: Strategy = setting(
        Strategy.STRATIFIED,
        when="to look for judge errors, or to pick the answers",
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
                Strategy.RECHECK: _("Answers rated in earlier releases (recheck)"),
            },
        ),
    )
    reviews_needed: int = setting(
        1,
        when="to measure agreement between experts",
        limits=(1, MAX_REVIEWS),
        column=_("reviewers per answer"),
        form=Input(
            "main", _("Reviewers per answer"), _("Two or more are needed to measure agreement between experts.")
        ),
        flag=Flag("reviewers per answer, {low} to {high}"),
    )
    mode: Mode = setting(
        Mode.BLIND,
        when="to rate faster, without measuring agreement",
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
        when="to train reviewers (`always`), or to keep the judge from changing ratings (`never`)",
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
        when="for finer or coarser scales; 0: no difference reveals the judge",
        limits=(0, 1e6),
        column=_("difference that reveals the judge"),
        form=Input("more", _("Show the judge when they differ by (levels)"), limits=(0, 100)),
        flag=Flag("difference in levels that reveals the judge"),
    )
    reveal_share: float = setting(
        0.1,
        when="to hide whether the judge differs when it is shown",
        limits=(0, 1),
        column=_("share shown at random"),
        form=Input("more", _("Also show the judge at random (%)"), name="reveal_percent", percent=True),
        flag=Flag("share for which the judge is revealed at random, {low} to {high}"),
    )
    adjudicate_from: float = setting(
        2.0,
        when="to send smaller differences to a lead, or none (0)",
        limits=(0, 1e6),
        column=_("reviewer difference sent to a lead"),
        form=Input(
            "more",
            _("Send to a lead when reviewers differ by (levels)"),
            _("0: differences are never sent."),
            limits=(0, 100),
        ),
        flag=Flag("difference in levels between reviewers that goes to a lead; 0: none"),
        body="Difference in levels between two first ratings that goes to a lead; 0: none.",
    )
    fail_below: float | None = setting(
        None,
        when="for `fails_plus_share`",
        form=Input("draw", _("Judge score below which an answer fails"), _("On the criterion's own scale.")),
        flag=Flag("for fails_plus_share: judge score below which an answer fails"),
    )
    share: float | None = setting(
        None,
        when="for `fails_plus_share`",
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
    seed: int | None = setting(None, when="to repeat a draw", limits=(0, 2**63 - 1), column=_("seed"))
    distribution: Distribution = setting(
        Distribution.POOL,
        when="to give reviewers equal shares, or each field its experts",
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
        when="to measure agreement on part of the answers",
        limits=(0, 1),
        column=_("share rated by several reviewers"),
        form=Input(
            "people",
            _("Share of answers rated by several reviewers (%)"),
            _("The rest are rated once. 10 to 20 percent is enough to measure agreement."),
            name="overlap_percent",
            percent=True,
        ),
        flag=Flag("share that several reviewers rate (--reviews-needed), {low} to {high}"),
    )
    repeat_share: float = setting(
        0.0,
        when="to measure how consistent reviewers are",
        limits=(0, 0.5),
        column=_("share of hidden repeats"),
        form=Input(
            "people",
            _("Hidden repeats (%)"),
            _("The same person gets these answers again, much later and unmarked. They are never counted twice."),
            name="repeat_percent",
            percent=True,
        ),
        flag=Flag("share of hidden repeats, {low} to {high}"),
    )
    lease_minutes: int = setting(
        30,
        when="for answers that take longer than half an hour",
        limits=(1, 1440),
        column=_("reservation time (minutes)"),
        flag=Flag("minutes for which an answer stays reserved"),
    )
    deadline: datetime | None = setting(
        None,
        when="to remind reviewers",
        column=_("deadline"),
        form=Input("people", _("Deadline"), _("Reviewers with unrated answers get an e-mail reminder before it.")),
        flag=Flag("deadline, such as 2026-12-01T18:00"),
    )
    name: str = setting(
        "",
        when="to tell several queues apart",
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
        flag=Flag("name that reviewers see; don't mention the system, judge or strategy"),
    )
    guideline: str = setting(
        "",
        when="for rules that are not in the rubrics",
        limits=(0, 100_000),
        column=_("guideline"),
        form=Input("more", _("Guideline for reviewers"), limits=(0, 20_000)),
    )
    hide_system: bool = setting(
        True,
        when="if reviewers must know the system; recorded",
        column=_("hide the system"),
        form=Input("more", _("Show reviewers which system answered"), _("This is recorded."), name="show_system"),
        flag=Flag("show reviewers which system answered (recorded)", name="show_system"),
    )
    # Ratings of an example queue are made for show.
    example: bool = setting(False, column=_("example"))

    @property
    def planned_looks(self) -> int:
        """Planned number of rounds: one if answers are not sampled or not rated blind."""
        is_sampled = self.strategy.has_probabilities and self.strategy is not Strategy.ALL
        return self.looks if is_sampled and self.mode == Mode.BLIND else 1

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
CONFIGURABLE_SETTINGS = tuple(queue_setting for queue_setting in SETTINGS.values() if queue_setting.when)
COLUMNS = tuple(name for name, queue_setting in SETTINGS.items() if queue_setting.column)
