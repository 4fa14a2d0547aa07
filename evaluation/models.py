"""All tables of the machine's half, for Django alone; code imports the module that defines a table."""

from evaluation.accounts.models import ApiToken, AuditEvent, FailedLogin, Project, RoleGrant, TakenExport, User
from evaluation.criteria.models import Criterion, CriterionEvent, CriterionVersion
from evaluation.judges.models import AttackResult, Endpoint, JudgeCheck, JudgeVersion, RubricVersion
from evaluation.profiles.models import ProfileVersion
from evaluation.questions.models import ImportBatch, Question, QuestionSet
from evaluation.runs.models import Answer, AnswerSet, Context, Preflight, Run, RunEvent, RunJudge
from evaluation.scores.models import Finding, MetricDefinition, Score
from evaluation.systems.models import System, SystemVersion
from evaluation.vectors.models import KeptVector
from evaluation.work.models import Attempt, BatchLine, Heartbeat, JudgeBatch, Reply, WorkUnit

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
