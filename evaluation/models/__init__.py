"""All tables of the machine's half, a file a domain; code imports them from here."""

from evaluation.models.accounts import ApiToken, AuditEvent, FailedLogin, Project, RoleGrant, TakenExport, User
from evaluation.models.judges import (
    AttackResult,
    Endpoint,
    JudgeCheck,
    JudgeVersion,
    KeptVector,
    ProfileVersion,
    RubricVersion,
)
from evaluation.models.questions import ImportBatch, Question, QuestionSet, System, SystemVersion
from evaluation.models.runs import Answer, AnswerSet, Context, Preflight, Run, RunEvent, RunJudge
from evaluation.models.scores import Criterion, CriterionEvent, CriterionVersion, Finding, MetricDefinition, Score
from evaluation.models.work import Attempt, BatchLine, Heartbeat, JudgeBatch, Reply, WorkUnit

__all__ = [
    "Answer",
    "AnswerSet",
    "ApiToken",
    "AttackResult",
    "Attempt",
    "AuditEvent",
    "BatchLine",
    "Context",
    "Criterion",
    "CriterionEvent",
    "CriterionVersion",
    "Endpoint",
    "FailedLogin",
    "Finding",
    "Heartbeat",
    "ImportBatch",
    "JudgeBatch",
    "JudgeCheck",
    "JudgeVersion",
    "KeptVector",
    "MetricDefinition",
    "Preflight",
    "ProfileVersion",
    "Project",
    "Question",
    "QuestionSet",
    "Reply",
    "RoleGrant",
    "RubricVersion",
    "Run",
    "RunEvent",
    "RunJudge",
    "Score",
    "System",
    "SystemVersion",
    "TakenExport",
    "User",
    "WorkUnit",
]
