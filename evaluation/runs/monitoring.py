"""Prometheus metrics of runs, calls, endpoints and workers, in the text format."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from django.db.models import Count, F, Q, Sum
from django.utils import timezone
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from evaluation.extensions import LedgerCalls, features
from evaluation.models import Attempt, Endpoint, Heartbeat, Reply, Run, WorkUnit
from evaluation.runs.progress import calls_of_servers
from evaluation.worker.endpoint_quota import active_quota_leases

_WORKING = (Run.State.PREFLIGHT, Run.State.RUNNING, Run.State.PAUSED)
_TOKENS = ("in", "out", "cached", "reasoning")
_SUMS = {
    **{f"tokens_{kind}": Sum(f"tokens_{kind}") for kind in _TOKENS},
    "known": Sum("cost"),
    "unknown": Count("id", filter=Q(cost__isnull=True)),
    "seconds": Sum("elapsed_seconds"),
}


def exposition(projects: Collection[int]) -> bytes:
    """The metrics of these projects (ids) and of the workers. Labels name hosts and endpoints only; figures by run are
    on pages and in reports."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_ConcordCollector(projects))
    return generate_latest(registry)


class _ConcordCollector(Collector):
    """Queries the database on each scrape: at most ten queries, two more for each further ledger."""

    def __init__(self, projects: Collection[int]) -> None:
        self._projects = list(projects)
        run_replies = Reply.objects.filter(
            calls_of_servers("attempt__unit"), attempt__unit__run__project__in=self._projects
        )
        feature_calls = [feature.calls(self._projects) for feature in features() if feature.calls]
        self._ledgers = (LedgerCalls("runs", run_replies), *feature_calls)

    def collect(self) -> Iterable[Metric]:
        yield self._runs()
        yield self._units()
        yield from self._replies()
        yield self._in_flight()
        for feature in features():
            yield from feature.gauges(self._projects) if feature.gauges else ()
        yield self._endpoint_rests()
        yield self._heartbeats()

    def _runs(self) -> Metric:
        rows = Run.objects.filter(project__in=self._projects).values_list("state").order_by().annotate(n=Count("id"))
        counts = dict(rows)
        values = [([state], counts.get(state, 0)) for state in Run.State.values]
        return _gauge("concord_runs", "Runs by state.", ["state"], values)

    def _units(self) -> Metric:
        units = WorkUnit.objects.filter(run__project__in=self._projects, run__state__in=_WORKING)
        counts = units.values_list("kind", "state").order_by().annotate(n=Count("id"))
        help_text = "Units of work of runs that have not ended, by kind and state."
        return _gauge("concord_units", help_text, ["kind", "state"], [([kind, state], n) for kind, state, n in counts])

    def _replies(self) -> Iterator[Metric]:
        calls = CounterMetricFamily("concord_calls", "Calls that ended.", labels=["outcome", "work"])
        tokens = CounterMetricFamily("concord_tokens", "Tokens that endpoints reported.", labels=["kind", "work"])
        costs = CounterMetricFamily("concord_cost_usd", "Known cost of calls.", labels=["work"])
        unknown = CounterMetricFamily("concord_calls_of_unknown_cost", "Calls of unknown cost.", labels=["work"])
        seconds = CounterMetricFamily("concord_call_seconds", "Seconds spent in calls.", labels=["work"])
        for ledger in self._ledgers:
            counts = ledger.replies.values_list("outcome").order_by().annotate(n=Count("id"))
            for outcome, count in counts:
                calls.add_metric([outcome, ledger.purpose], count)
            sums = ledger.replies.aggregate(**_SUMS)
            for kind in _TOKENS:
                tokens.add_metric([kind, ledger.purpose], sums[f"tokens_{kind}"] or 0)
            costs.add_metric([ledger.purpose], float(sums["known"] or 0))
            unknown.add_metric([ledger.purpose], sums["unknown"])
            seconds.add_metric([ledger.purpose], sums["seconds"] or 0)
        yield from (calls, tokens, costs, unknown, seconds)

    def _in_flight(self) -> Metric:
        open_calls = Attempt.objects.filter(
            calls_of_servers("unit"),
            unit__run__project__in=self._projects,
            unit__state=WorkUnit.State.LEASED,
            # Attempts of earlier claims were abandoned with them.
            fence=F("unit__fence"),
            reply__isnull=True,
        )
        # An attempt is stored before its call is sent. Quota leases report the calls really sent.
        quota_leases = active_quota_leases()
        reported = quota_leases.filter(run__project__in=self._projects).aggregate(out=Sum("in_flight"))["out"]
        in_runs = open_calls.count() if reported is None else reported
        outside_runs = quota_leases.filter(run=None, project__in=self._projects).aggregate(out=Sum("in_flight"))["out"]
        return GaugeMetricFamily(
            "concord_calls_in_flight", "Calls sent and not answered.", value=in_runs + (outside_runs or 0)
        )

    def _endpoint_rests(self) -> Metric:
        now = timezone.now()
        endpoints = Endpoint.objects.filter(judges__project__in=self._projects).distinct()
        rows = endpoints.values_list("name", "cooldown_until").order_by("name")
        rests = [([name], max((until - now).total_seconds(), 0.0) if until else 0.0) for name, until in rows]
        help_text = "Seconds an endpoint still asked to be left alone."
        return _gauge("concord_endpoint_rest_seconds", help_text, ["endpoint"], rests)

    def _heartbeats(self) -> Metric:
        now = timezone.now()
        beats = Heartbeat.objects.order_by("host").values_list("host", "seen_at")
        ages = [([host], (now - seen_at).total_seconds()) for host, seen_at in beats]
        return _gauge(
            "concord_heartbeat_age_seconds", "Seconds since a host's workers last showed life.", ["host"], ages
        )


def _gauge(name: str, help_text: str, labels: Sequence[str], values: Iterable[tuple[Sequence[str], float]]) -> Metric:
    family = GaugeMetricFamily(name, help_text, labels=labels)
    for names, value in values:
        family.add_metric(names, value)
    return family
