from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from evaluation.core.errors import InvalidFile
from evaluation.judging.calls import JudgeReply, Price, PriceTable, call_cost, read_prices
from evaluation.network.outcomes import Outcome

TABLE = PriceTable(
    [
        Price(model="m", since=date(2026, 6, 1), input=Decimal("0.10"), output=Decimal("0.40")),
        Price(
            model="m", since=date(2026, 1, 1), input=Decimal("0.15"), output=Decimal("0.60"), cached=Decimal("0.075")
        ),
    ]
)
MARCH, JULY = date(2026, 3, 1), date(2026, 7, 1)


def reply(**counts: int | None) -> JudgeReply:
    return JudgeReply(Outcome.OK, **{"tokens_in": 1000, "tokens_out": 200, "tokens_cached": 400, **counts})  # type: ignore[arg-type]


def test_cached_input_has_its_own_price() -> None:
    # (600 x 0.15 + 400 x 0.075 + 200 x 0.60) / 10^6 = (90 + 30 + 120) / 10^6 = 0.00024
    assert call_cost("m", reply(), on=MARCH, table=TABLE) == Decimal("0.00024")


def test_price_of_the_day_applies_to_cached_input_without_its_own_price() -> None:
    # (1000 x 0.10 + 200 x 0.40) / 10^6 = 180 / 10^6 = 0.00018, whether or not the server tells what was cached
    assert call_cost("m", reply(), on=JULY, table=TABLE) == Decimal("0.00018")
    assert call_cost("m", reply(tokens_cached=None), on=JULY, table=TABLE) == Decimal("0.00018")


@pytest.mark.parametrize("missing", ["tokens_in", "tokens_out", "tokens_cached"])
def test_an_unknown_count_makes_the_cost_unknown_and_never_zero(missing: str) -> None:
    assert call_cost("m", reply(**{missing: None}), on=MARCH, table=TABLE) is None


def test_cost_is_unknown_without_a_price_for_day_and_model() -> None:
    assert call_cost("m", reply(), on=date(2025, 12, 31), table=TABLE) is None
    assert call_cost("other", reply(), on=JULY, table=TABLE) is None
    assert call_cost("m", reply()) is None  # no price is shipped


def test_price_of_the_returned_model_takes_precedence() -> None:
    dear = PriceTable([*TABLE._prices, Price(model="m-large", since=MARCH, input=Decimal(1), output=Decimal(1))])
    priced = JudgeReply(Outcome.OK, tokens_in=1000, tokens_out=0, model_returned="m-large")
    assert call_cost("m", priced, on=JULY, table=dear) == Decimal("0.001")
    unpriced = JudgeReply(Outcome.OK, tokens_in=1000, tokens_out=0, model_returned="m-2026-05-05")
    assert call_cost("m", unpriced, on=JULY, table=dear) == Decimal("0.0001")


def test_unsent_call_costs_0_and_timeout_cost_is_unknown() -> None:
    assert call_cost("m", JudgeReply(Outcome.BLOCKED), on=JULY, table=TABLE) == 0
    assert call_cost("m", JudgeReply(Outcome.TIMEOUT), on=JULY, table=TABLE) is None


def test_price_file_is_exact_and_errors_name_the_field(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text('prices: [{model: m, since: 2026-01-01, input: "0.1", output: "0.3"}]', "utf-8")
    price = read_prices(file).price("m", JULY)
    assert price is not None
    assert price.input + price.output == Decimal("0.4")
    file.write_text("prices: [{model: m, since: 2026-01-01, input: -1, output: .nan}]", "utf-8")
    with pytest.raises(InvalidFile) as error:
        read_prices(file)
    assert [p.field for p in error.value.problems] == ["prices.0.input", "prices.0.output"]
    file.write_text("prices: [", "utf-8")
    with pytest.raises(InvalidFile):
        read_prices(file)


def test_batch_call_costs_the_listed_fraction_or_is_unknown() -> None:
    batch_price = Price(model="h", since=date(2026, 1, 1), input=Decimal(1), output=Decimal(2), batch=Decimal("0.5"))
    table = PriceTable([batch_price, batch_price.model_copy(update={"model": "w", "batch": None})])
    # (1000 x 1 + 200 x 2) / 10^6 = 0.0014, half of it 0.0007
    assert call_cost("h", replace(reply(), batch=True), on=JULY, table=table) == Decimal("0.0007")
    assert call_cost("h", reply(), on=JULY, table=table) == Decimal("0.0014")
    assert call_cost("w", replace(reply(), batch=True), on=JULY, table=table) is None
    assert call_cost("w", reply(), on=JULY, table=table) == Decimal("0.0014")
