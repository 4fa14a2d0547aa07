"""Enum values stored in rows, files and REST responses: changing one makes stored data unreadable and needs a
migration."""

from __future__ import annotations

from enum import StrEnum

import pytest

from evaluation.core.metric_specs import Direction, MetricKind
from evaluation.core.roles import Action, Role
from evaluation.core.samples import Status
from evaluation.core.scales import ReviewForm, ScaleKind
from evaluation.formats.rating_rows import Phase, Rater
from evaluation.formats.reading import FileFormat
from evaluation.formats.tree import NodeKind
from evaluation.judging.calls import ResponseFormat
from evaluation.judging.formulas import JuryRule
from evaluation.judging.prechecks import SkipReason
from evaluation.judging.rubric import OfflineMeasure, PromptSlot
from evaluation.metrics.matching import Tier
from evaluation.network.outcomes import Outcome
from evaluation.profiles.arithmetic import FigureLabel, MissingReason, PassVerdict
from evaluation.profiles.spec import EmptyAnswerRule, FailureRule, Normalisation, OverallUnit
from review.charts.forest import Shape
from review.statistics.acceptance import Claim
from review.statistics.agreement.statistic import Undefined
from review.statistics.agreement.variance import DesignGap, VarianceSource
from review.statistics.correction.outcome import EstimateWarning, Method, Target, WithheldReason
from review.statistics.gold_split import Split
from review.statistics.paired_tests.gate import DifferenceVerdict, GateVerdict, Resource
from review.statistics.precision import SpendOption
from review.statistics.retrieval_truth.pool import RetrievalMetric
from review.statistics.sampling.member import Strategy

NAMES: dict[type[StrEnum], str] = {
    ScaleKind: "levels real yes_no class seconds",
    MetricKind: "rule embedding judge derived custom imported",
    Direction: "higher lower none",
    ReviewForm: "level claims nuggets contexts yes_no class none",
    Role: "viewer reviewer evaluator lead admin",
    Action: "view evaluate activate manage_review override adjudicate rate administer",
    Status: "scored failed not_applicable",
    Rater: "human judge",
    Phase: "initial final",
    FileFormat: "yaml json jsonl csv xlsx parquet arrow trec_topics trec_run trec_qrels",
    NodeKind: "text integer real boolean null ambiguous cell list map",
    ResponseFormat: "json_schema tool json_object text",
    JuryRule: "mean median majority",
    SkipReason: "blank too_short echo stock",
    PromptSlot: "reference contexts required_info persona history clarification_ok",
    OfflineMeasure: "none correctness faithfulness completeness relevancy",
    Tier: "exact spacing particle number compound alternative substring",
    Outcome: (
        "ok timeout connection name_unknown unreached tls blocked rate_limited overloaded server_error "
        "unauthorised forbidden not_found no_credit bad_request redirect too_large wrong_content refused "
        "filtered truncated unknown_ending parse not_sent cached"
    ),
    FigureLabel: "overall_score rules_only partial none",
    MissingReason: "absent not_applicable",
    PassVerdict: "passed failed unknown",
    OverallUnit: "run_means per_answer",
    Normalisation: "by_max min_max",
    FailureRule: "exclude zero",
    EmptyAnswerRule: "zero leave_out",
    Shape: "expert judge corrected plain-mark",
    Claim: "better not_worse",
    Undefined: (
        "no_pairs judge_constant expert_constant one_value_only no_expert_positive no_expert_negative "
        "no_judge_positive no_positive one_expert_class yes_no_only classes_have_no_order needs_binning "
        "no_direction too_few_raters too_few_groups no_variation often_undefined"
    ),
    VarianceSource: "answers reviewers taste rest judge noise",
    DesignGap: "needs_overlap needs_two_reviewers needs_hidden_repeats needs_judge_repeats needs_ratings",
    Target: "this_run questions_like_these",
    Method: "regression mean_of_labels census bound clopper_pearson as_it_came composite sum",
    WithheldReason: (
        "too_few_labels stratum_too_few_labels non_response not_estimable no_probability small_frame "
        "components_withheld too_few_groups no_values"
    ),
    EstimateWarning: "few_off_commonest failed_stratum_bounds clipped few_groups unseen_answers",
    Split: "examples validation hold_out",
    GateVerdict: "pass fail undecided",
    Resource: "labels questions pairs",
    DifferenceVerdict: "better worse alike cannot_tell",
    SpendOption: "questions reviewers ratings repeats",
    RetrievalMetric: "precision_at_k recall_at_k ndcg_at_k",
    Strategy: "all uniform stratified fails_plus_share uncertainty hand_picked second_opinion recheck",
}


@pytest.mark.parametrize("kind", NAMES, ids=lambda kind: kind.__name__)
def test_stored_enum_names_are_unchanged(kind: type[StrEnum]) -> None:
    assert " ".join(kind) == NAMES[kind]
