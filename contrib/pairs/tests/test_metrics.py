"""Pair calls in the monitoring metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from contrib.pairs.judging import judge_pairs
from contrib.pairs.tests.test_pairing import make_comparison
from evaluation.judges.shipped import save_judge
from evaluation.models import Endpoint
from tests.factories import make_project
from tests.judge_server import JudgeServer, actions
from tests.judge_server.fixture import judge_server
from tests.review.reports.test_metrics import figures

pytestmark = pytest.mark.django_db
__all__ = ["judge_server"]


def test_pair_calls_are_counted_apart_from_run_calls(judge_server: JudgeServer, settings: Any, tmp_path: Path) -> None:
    (prices := tmp_path / "prices.yaml").write_text('prices: [{model: m, since: 2026-01-01, input: "1", output: "10"}]')
    settings.CONCORD_PRICES = str(prices)
    settings.CONCORD_JUDGE_ORIGINS = [judge_server.origin]
    judge_server.enqueue(actions.status(429, retry_after="0.01"))
    pair_set = make_comparison(questions=2, size=2)
    endpoint = Endpoint.objects.create(name="e", base_url=judge_server.base_url)
    judge = save_judge(pair_set.project, "remote", endpoint, model="m", language="en")
    judge_server.latency = 0.02
    judge_pairs(pair_set, judge)
    samples = figures(pair_set.project)
    assert samples["concord_calls_total", ("ok", "pairs")] == 4  # two pairs in both orders; the preflight is none
    assert samples["concord_calls_total", ("rate_limited", "pairs")] == 1
    assert samples["concord_tokens_total", ("in", "pairs")] == 4 * 900
    assert samples["concord_cost_usd_total", ("pairs",)] == 0.006  # 4 x (900 x $1 + 60 x $10) / 1,000,000
    assert samples["concord_calls_of_unknown_cost_total", ("pairs",)] == 1  # the refused one
    assert samples["concord_call_seconds_total", ("pairs",)] >= 5 * 0.02
    assert samples["concord_cost_usd_total", ("runs",)] == 0
    assert ("ok", "pairs") not in {labels for _, labels in figures(make_project())}
