"""All tables of the machine's half, for Django alone; code imports the module that defines a table."""

from evaluation.accounts.models import ApiToken, AuditEvent, Project, RoleGrant, User
from evaluation.judges.models import Endpoint, JudgeVersion, RubricVersion
from evaluation.profiles.models import ProfileVersion
from evaluation.questions.models import ImportBatch, Question, QuestionSet
from evaluation.runs.models import Answer, AnswerSet, Context, Run, RunEvent, RunJudge
from evaluation.scores.models import Finding, MetricDefinition, Score
from evaluation.systems.models import System, SystemVersion
from evaluation.work.models import Attempt, Heartbeat, Reply, WorkUnit

__all__ = [
    "Answer",
    "AnswerSet",
    "ApiToken",
    "Attempt",
    "AuditEvent",
    "Context",
    "Endpoint",
    "Finding",
    "Heartbeat",
    "ImportBatch",
    "JudgeVersion",
    "MetricDefinition",
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
    "User",
    "WorkUnit",
]
