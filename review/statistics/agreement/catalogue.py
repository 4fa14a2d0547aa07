"""The one list of the agreement statistics of a judge and the experts: what each reads, where it applies."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evaluation.core.registry import Scale, ScaleKind
from review.statistics.agreement.classification import (
    balanced_accuracy,
    f1,
    precision,
    true_negative_rate,
    true_positive_rate,
)
from review.statistics.agreement.correlation import kendall_tau_b, pearson, spearman
from review.statistics.agreement.distances import bias, exact, mae, rmse, within_one
from review.statistics.agreement.kappa import (
    Coincidences,
    cohen_kappa,
    cohen_kappa_linear,
    cohen_kappa_quadratic,
    gwet_ac1,
    gwet_ac2,
    interval_alpha_of_reals,
    krippendorff_alpha_interval,
    krippendorff_alpha_nominal,
    krippendorff_alpha_ordinal,
    of_pair,
)
from review.statistics.agreement.layout import Layout
from review.statistics.agreement.pairs import Confusion, Pairs
from review.statistics.agreement.statistic import Array, Figures, Undefined

OF_VALUES: dict[str, Callable[[Pairs], Figures]] = {
    "mae": mae,
    "bias": bias,
    "rmse": rmse,
    "pearson": pearson,
    "spearman": spearman,
    "kendall_tau_b": kendall_tau_b,
}
OF_CONFUSION: dict[str, Callable[[Confusion], Figures]] = {
    "exact": exact,
    "within_one": within_one,
    "cohen_kappa": cohen_kappa,
    "cohen_kappa_linear": cohen_kappa_linear,
    "cohen_kappa_quadratic": cohen_kappa_quadratic,
}
OF_COINCIDENCES: dict[str, Callable[[Coincidences], Figures]] = {
    "krippendorff_alpha_nominal": krippendorff_alpha_nominal,
    "krippendorff_alpha_ordinal": krippendorff_alpha_ordinal,
    "krippendorff_alpha_interval": krippendorff_alpha_interval,
    "gwet_ac1": gwet_ac1,
    "gwet_ac2": gwet_ac2,
}
OF_YES_NO: dict[str, Callable[[Confusion], Figures]] = {
    "tpr": true_positive_rate,
    "tnr": true_negative_rate,
    "precision": precision,
    "recall": true_positive_rate,
    "f1": f1,
    "balanced_accuracy": balanced_accuracy,
}
NAMES = (
    "exact",
    "within_one",
    "mae",
    "bias",
    "rmse",
    "pearson",
    "spearman",
    "kendall_tau_b",
    "cohen_kappa",
    "cohen_kappa_linear",
    "cohen_kappa_quadratic",
    "krippendorff_alpha_nominal",
    "krippendorff_alpha_ordinal",
    "krippendorff_alpha_interval",
    "gwet_ac1",
    "gwet_ac2",
    "tpr",
    "tnr",
    "precision",
    "recall",
    "f1",
    "balanced_accuracy",
)
NOMINAL = frozenset({"exact", "cohen_kappa", "krippendorff_alpha_nominal", "gwet_ac1"})
CORRELATIONS = frozenset({"pearson", "spearman", "kendall_tau_b"})
PROPORTIONS = frozenset({"exact", "within_one", "tpr", "tnr", "precision", "recall"})
_YES_NO_REASONS = {
    "tpr": Undefined.NO_EXPERT_POSITIVE,
    "recall": Undefined.NO_EXPERT_POSITIVE,
    "tnr": Undefined.NO_EXPERT_NEGATIVE,
    "precision": Undefined.NO_JUDGE_POSITIVE,
    "f1": Undefined.NO_POSITIVE,
    "balanced_accuracy": Undefined.ONE_EXPERT_CLASS,
}


def inapplicable(scale: Scale, binned: bool) -> dict[str, Undefined]:
    """The statistics that do not exist on a scale, with the reason."""
    reasons: dict[str, Undefined] = {}
    if scale.kind is not ScaleKind.YES_NO:
        reasons |= dict.fromkeys(OF_YES_NO, Undefined.YES_NO_ONLY)
    if scale.kind is ScaleKind.CLASS:
        reasons |= {name: Undefined.CLASSES_HAVE_NO_ORDER for name in NAMES if name not in NOMINAL | set(OF_YES_NO)}
    if scale.kind in {ScaleKind.REAL, ScaleKind.SECONDS} and not binned:
        by_level = (set(OF_CONFUSION) | set(OF_COINCIDENCES)) - {"krippendorff_alpha_interval"}
        reasons |= dict.fromkeys(by_level, Undefined.NEEDS_BINNING)
    return reasons


def figures(layout: Layout, scale: Scale, names: list[str], weight: Array) -> dict[str, Figures]:
    """The named statistics for every weighting of the batch ``weight``, shape (..., distinct pairs)."""
    pairs = layout.pairs(weight)
    found = {name: OF_VALUES[name](pairs) for name in names if name in OF_VALUES}
    real = scale.kind in {ScaleKind.REAL, ScaleKind.SECONDS}
    if real and "krippendorff_alpha_interval" in names:
        found["krippendorff_alpha_interval"] = _interval_alpha(pairs)
    by_category = [name for name in names if name not in found]
    if by_category:
        table = layout.confusion(weight)
        both = of_pair(table)
        for name in by_category:
            if name in OF_COINCIDENCES:
                found[name] = OF_COINCIDENCES[name](both)
            else:
                found[name] = (OF_CONFUSION.get(name) or OF_YES_NO[name])(table)
    return found


def _interval_alpha(pairs: Pairs) -> Figures:
    two = np.full(len(pairs.judge), 2.0)
    squares = np.square(pairs.judge) + np.square(pairs.expert)
    return interval_alpha_of_reals(two, pairs.judge + pairs.expert, squares, pairs.weight)


def undefined_reason(name: str, pairs: Pairs) -> Undefined:
    """Why a statistic that exists on the scale is undefined for these pairs (batch of one)."""
    if not (pairs.weight > 0).any():
        return Undefined.NO_PAIRS
    if name in CORRELATIONS:
        return pairs.reason()
    return _YES_NO_REASONS.get(name, Undefined.ONE_VALUE_ONLY)
