"""Work units of runs, the calls made for them, and their replies."""

from django.db import models
from django.db.models import PROTECT, Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from evaluation.core.canonical import text_hash
from evaluation.models.accounts import Project
from evaluation.models.judges import Endpoint
from evaluation.models.questions import ImportBatch, Question, QuestionSet, System
from evaluation.models.runs import Answer, AnswerSet, Run, RunJudge
from evaluation.storage.append_only import AppendOnly, TimestampedModel


class WorkUnit(TimestampedModel):
    """One step of a run for one answer, with an exactly-once effect.

    ``key`` joins step, question, sample, repeat and configuration into one text, because a unique constraint over
    nullable columns does not exclude duplicates. ``fence`` rises with each claim, so that a worker with an expired
    lease cannot commit. ``tries`` counts claims that ended without a result. It rises with the claim, before any call,
    so that a unit that crashes its workers is found and set aside. ``round`` counts retries that a person asked for. A
    ``batched`` unit has no lease: its call is in a batch of the provider."""

    class State(models.TextChoices):
        BLOCKED = "blocked", _("waiting for another step")
        TODO = "todo", _("waiting")
        LEASED = "leased", _("in progress")
        BATCHED = "batched", _("in a batch")
        DONE = "done", _("done")
        FAILED = "failed", _("failed")
        SKIPPED = "skipped", _("skipped")

    class Kind(models.TextChoices):
        ASK = "ask", _("system call")
        RULES = "rules", _("rules")
        JUDGE = "judge", _("judge")
        EMBED = "embed", _("embeddings")
        OWN = "own", _("own metrics")

    run = models.ForeignKey(Run, on_delete=PROTECT, related_name="units")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    question = models.ForeignKey(Question, on_delete=PROTECT, related_name="+")
    sample = models.PositiveIntegerField(default=1)
    answer = models.ForeignKey(Answer, on_delete=PROTECT, null=True, related_name="units")
    run_judge = models.ForeignKey(RunJudge, on_delete=PROTECT, null=True, related_name="units")
    repeat = models.PositiveIntegerField(default=1)
    needs = models.ForeignKey("self", on_delete=PROTECT, null=True, related_name="dependents")
    # Of an own metric, which is a unit by itself.
    metric = models.CharField(max_length=100, blank=True)
    key = models.CharField(max_length=64)
    round = models.PositiveIntegerField(default=0)
    state = models.CharField(max_length=8, choices=State.choices, default=State.TODO)
    reason = models.TextField(blank=True)
    fence = models.PositiveIntegerField(default=0)
    tries = models.PositiveIntegerField(default=0)
    lease_token = models.UUIDField(null=True, db_index=True)
    lease_until = models.DateTimeField(null=True)
    not_before = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "key"], name="one_unit_per_step"),
            models.CheckConstraint(
                condition=~Q(state__in=["failed", "skipped"]) | ~Q(reason=""), name="unit_failure_says_why"
            ),
            models.CheckConstraint(
                condition=~Q(state="leased") | Q(lease_token__isnull=False, lease_until__isnull=False),
                name="leased_has_lease",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["blocked", "todo", "leased", "batched", "done", "failed", "skipped"]),
                name="known_unit_state",
            ),
        ]
        indexes = [
            models.Index(fields=["run", "id"], name="claimable_units", condition=Q(state__in=["todo", "leased"])),
            models.Index(fields=["run", "state"], name="units_by_state"),
        ]

    @property
    def score_origin(self) -> str:
        """Key of the unit's scores over all rounds: run, unit key and repeat. An embedding unit that completes a judge
        unit shares its origin."""
        step = self.needs if self.kind == WorkUnit.Kind.EMBED and self.needs is not None else self
        return score_origin(self.run_id, step.key, self.repeat)


def score_origin(run_id: int, step_key: str, repeat: int) -> str:
    return text_hash([run_id, step_key, repeat])


class Attempt(AppendOnly):
    """One call for a unit, recorded before it is sent; number 1 is the first call of a claim."""

    # `purge` deletes attempts that were never sent.
    is_digested = False

    unit = models.ForeignKey(WorkUnit, on_delete=PROTECT, related_name="attempts")
    fence = models.PositiveIntegerField()
    round = models.PositiveIntegerField()
    number = models.PositiveIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["unit", "fence", "number"], name="one_attempt_per_call")]


class ReplyRow(AppendOnly):
    """The reply to an attempt. An attempt without a reply has an unknown outcome and an unknown cost.

    ``outcome`` is a name of ``evaluation.network.outcomes``, ``not_sent`` for a claim returned unused, or ``cached``
    for a reply taken from an earlier identical call. Unknown tokens and costs are null, never 0. ``cost`` is in US
    dollars; ``saved`` is the cost of the earlier call of a ``cached`` reply. ``chances`` holds, for each score in the
    reply, the probabilities of the tokens of its levels; it is null if they were not requested or not returned."""

    purged_rows = {"outcome": "not_sent"}
    erasable = ("raw",)

    outcome = models.CharField(max_length=30)
    http_status = models.PositiveIntegerField(null=True)
    model_returned = models.CharField(max_length=200, blank=True)
    request_hash = models.CharField(max_length=64, blank=True, db_index=True)
    tokens_in = models.PositiveBigIntegerField(null=True)
    tokens_out = models.PositiveBigIntegerField(null=True)
    tokens_cached = models.PositiveBigIntegerField(null=True)
    tokens_reasoning = models.PositiveBigIntegerField(null=True)
    cost = models.DecimalField(max_digits=14, decimal_places=8, null=True)
    saved = models.DecimalField(max_digits=14, decimal_places=8, null=True)
    elapsed_seconds = models.FloatField(null=True)
    raw = models.TextField(blank=True)
    chances = models.JSONField(null=True)

    class Meta:
        abstract = True


class Reply(ReplyRow):
    """The reply to an attempt for a unit."""

    attempt = models.OneToOneField(Attempt, on_delete=PROTECT, related_name="reply")

    class Meta:
        verbose_name_plural = "replies"


class Job(TimestampedModel):
    """Background work on the object ``object_id`` of a ``kind`` (:mod:`evaluation.worker.jobs`).

        waiting <-> working -> done | stopped

    While it is working, ``token`` identifies the worker's lease, which ends at ``until``. It is due from ``next_at``
    on. ``attempts`` counts crashes and failures since the last success. ``problem`` is the reason of a stop or retry.
    ``notes`` are facts for later steps."""

    class State(models.TextChoices):
        WAITING = "waiting"
        WORKING = "working"
        DONE = "done"
        STOPPED = "stopped"

    kind = models.CharField(max_length=40)
    object_id = models.PositiveBigIntegerField()
    state = models.CharField(max_length=8, choices=State.choices, default=State.WAITING)
    token = models.UUIDField(null=True, unique=True)
    until = models.DateTimeField(null=True)
    next_at = models.DateTimeField(db_default=Now())
    attempts = models.PositiveIntegerField(default=0)
    problem = models.CharField(max_length=100, blank=True, default="")
    notes = models.JSONField(default=dict)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["kind", "object_id"], name="one_job_per_object"),
            models.CheckConstraint(condition=~Q(state="stopped") | ~Q(problem=""), name="stopped_job_says_why"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.object_id}"


class ImportWork(TimestampedModel):
    """Progress of a large upload: ``done`` of ``total`` (bytes during the check, rows during the import).

    ``summary`` and ``problems`` are the results of the check; ``answer_set`` or ``question_set`` receives the rows."""

    batch = models.OneToOneField(ImportBatch, on_delete=models.CASCADE, related_name="work")
    size = models.PositiveBigIntegerField()
    done = models.PositiveBigIntegerField(default=0)
    total = models.PositiveBigIntegerField(default=0)
    summary = models.JSONField(default=dict)
    problems = models.JSONField(default=list)
    answer_set = models.ForeignKey(AnswerSet, on_delete=PROTECT, null=True, related_name="+")
    question_set = models.ForeignKey(QuestionSet, on_delete=models.SET_NULL, null=True, related_name="+")


class BatchState(models.TextChoices):
    """State of a batch of calls at its provider (``contrib.batches``)."""

    PREPARING = "made", _("preparing")
    UPLOADED = "uploaded", _("file uploaded")
    CREATING = "creating", _("creating")
    SENT = "sent", _("processing")
    ENDED = "ended", _("ended")
    DROPPED = "dropped", _("not sent")
    LOST = "lost", _("lost")


class EndpointQuotaLease(models.Model):
    """A worker's lease on a quota of an endpoint, or of a ``system`` under test.

    ``requested`` is the number of concurrent calls the worker could use, ``slots`` the number it may have. ``fraction``
    (0 to 1) is its share of the rates per minute. Over all live workers, slots and fractions add up to at most the
    endpoint's limits. ``in_flight`` (calls) and ``limit`` (the worker's present limit) are for monitoring. ``run`` is
    null for work outside a run, such as comparisons of pairs; ``project`` owns the calls."""

    endpoint = models.ForeignKey(Endpoint, on_delete=models.CASCADE, null=True, related_name="shares")
    system = models.ForeignKey(System, on_delete=models.CASCADE, null=True, related_name="shares")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, null=True, related_name="shares")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, null=True, related_name="+")
    worker = models.UUIDField(unique=True)
    requested = models.PositiveIntegerField()
    slots = models.PositiveIntegerField(default=0)
    fraction = models.FloatField(default=0.0)
    in_flight = models.PositiveIntegerField(default=0)
    limit = models.PositiveIntegerField(default=0)
    seen_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(endpoint__isnull=True, system__isnull=False)
                | Q(endpoint__isnull=False, system__isnull=True),
                name="share_of_one",
            )
        ]


class Heartbeat(models.Model):
    """Last execution of the canary task by a host's cluster."""

    host = models.CharField(max_length=200, unique=True)
    seen_at = models.DateTimeField()


class HostSettings(models.Model):
    """Digests of the settings that must be equal on all hosts of a database, as a process of the host last had them."""

    host = models.CharField(max_length=200, unique=True)
    key = models.CharField(max_length=16)
    origins = models.CharField(max_length=16)
    seen_at = models.DateTimeField()


class ProcessRestart(models.Model):
    """Number of restarts of a process of ``serve`` on a host, and the reason of the last one."""

    host = models.CharField(max_length=200)
    part = models.CharField(max_length=20)
    count = models.PositiveIntegerField(default=1)
    reason = models.CharField(max_length=100)
    last_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["host", "part"], name="one_count_of_restarts")]


class DatabaseProbe(models.Model):
    """The only row that health checks write, to test whether the database accepts writes. ``content`` takes as much
    space as a save."""

    written_at = models.DateTimeField()
    content = models.BinaryField()
