"""Alpha, AC and Fleiss' kappa on published and hand-worked examples."""

from __future__ import annotations

import numpy as np
import pytest

from evaluation.core.scales import Scale
from review.statistics.agreement.experts import compare_experts
from review.statistics.agreement.kappa import (
    fleiss_kappa,
    gwet_ac1,
    gwet_ac2,
    krippendorff_alpha_interval,
    krippendorff_alpha_nominal,
    pair_coincidences,
    unit_coincidences,
)
from review.statistics.agreement.statistic import Rating
from tests.review.statistics.agreement.tables import table

# Four observers, twelve units, gaps: Krippendorff (2011), section C; also "raw4raters" of Gwet's handbook.
OBSERVERS = {"A": "123321412...", "B": "1233224125.3", "C": ".3332342251.", "D": "12332441251."}
RATINGS = [
    Rating(unit, observer, int(value))
    for observer, values in OBSERVERS.items()
    for unit, value in enumerate(values)
    if value != "."
]


def test_published_alphas_with_gaps() -> None:
    statistics = compare_experts(RATINGS, Scale.parse("1..5")).statistics

    assert statistics["krippendorff_alpha_nominal"].value == pytest.approx(0.743, abs=5e-4)
    assert statistics["krippendorff_alpha_ordinal"].value == pytest.approx(0.815, abs=5e-4)
    assert statistics["krippendorff_alpha_interval"].value == pytest.approx(0.849, abs=5e-4)


def test_published_ac1_and_fleiss_with_gaps() -> None:
    # Gwet's irrCAC prints 0.77544 and 0.76117 for these ratings.
    statistics = compare_experts(RATINGS, Scale.parse("1..5")).statistics

    assert statistics["gwet_ac1"].value == pytest.approx(0.77544, abs=5e-6)
    assert statistics["fleiss_kappa"].value == pytest.approx(0.76117, abs=5e-6)


def test_alpha_of_a_pair_by_hand() -> None:
    # 10 answers, 2 differ: o_01 = o_10 = 2, n_0 = 2x3 + 2 = 8, n_1 = 12, n = 20
    # alpha = 1 - 19 x (2 + 2) / (2 x 8 x 12) = 1 - 76/192
    coincidences = pair_coincidences(table([[3, 1], [1, 5]]))

    assert krippendorff_alpha_nominal(coincidences).values == pytest.approx(1 - 76 / 192)
    assert krippendorff_alpha_interval(coincidences).values == pytest.approx(1 - 76 / 192)


def test_ac_of_a_pair_by_hand() -> None:
    # agreement 0.8; prevalences 0.4 and 0.6; chance (0.24 + 0.24) / 1 = 0.48; (0.8 - 0.48) / 0.52
    coincidences = pair_coincidences(table([[3, 1], [1, 5]]))

    assert gwet_ac1(coincidences).values == pytest.approx(0.32 / 0.52)
    assert gwet_ac2(coincidences).values == pytest.approx(0.32 / 0.52)


def test_ac2_weights_by_squared_distance() -> None:
    # levels 1, 2, 3, four answers: 1-1, 1-2, 2-2, 3-3; weights 1 at 0, 0.75 at 1, 0 at 2
    # agreement (1 + 0.75 + 1 + 1) / 4 = 0.9375; prevalences 3/8, 3/8, 2/8; sum p(1-p) = 15/64 + 15/64 + 12/64 = 42/64
    # sum of weights 3 + 4 x 0.75 = 6; chance 6 / (3 x 2) x 42/64 = 0.65625; (0.9375 - 0.65625) / 0.34375
    coincidences = pair_coincidences(table([[1, 1, 0], [0, 1, 0], [0, 0, 1]], [1, 2, 3]))

    assert gwet_ac2(coincidences).values == pytest.approx(0.28125 / 0.34375)


def test_ac_is_defined_for_constant_ratings_and_kappa_is_not() -> None:
    coincidences = pair_coincidences(table([[7, 0], [0, 0]]))

    assert gwet_ac1(coincidences).values == 1.0
    assert not fleiss_kappa(coincidences).defined
    assert not krippendorff_alpha_nominal(coincidences).defined


def test_fleiss_of_three_raters_by_hand() -> None:
    # three units by three raters: 3-0, 2-1, 0-3. Agreement per unit 1, 1/3, 1: mean 7/9.
    # prevalences 5/9 and 4/9: chance 41/81; (63/81 - 41/81) / (40/81) = 22/40
    units = unit_coincidences(np.array([[3.0, 0], [2, 1], [0, 3]]), np.ones(3), np.array([0.0, 1.0]))

    assert fleiss_kappa(units).values == pytest.approx(0.55)


def test_two_raters_without_gaps_equal_a_pair() -> None:
    units = unit_coincidences(np.array([[2.0, 0], [1, 1], [0, 2]]), np.ones(3), np.array([0.0, 1.0]))
    coincidences = pair_coincidences(table([[1, 1], [0, 1]]))

    assert krippendorff_alpha_nominal(units).values == pytest.approx(
        float(krippendorff_alpha_nominal(coincidences).values)
    )
    assert gwet_ac1(units).values == pytest.approx(float(gwet_ac1(coincidences).values))
