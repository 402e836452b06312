"""What is said of a run beside its tables: verdict, incident, probes, components, API servers, machine, validity."""

from __future__ import annotations

from collections.abc import Iterator

from scaletest.report import drawing, glyphs
from scaletest.report.document import Document, IncidentReport
from scaletest.report.said.remark import Remark
from scaletest.report.story import first_line

__all__ = [
    "about_api_servers",
    "about_components",
    "about_incident",
    "about_machine",
    "about_probes",
    "about_verdict",
    "never_began",
    "use_of_numbers",
]


def never_began(document: Document) -> bool:
    """Whether there is nothing that an objective could be about: one line says it of all."""
    return not document.phases and not any(item.samples for item in document.objectives)


def about_verdict(document: Document) -> Iterator[Remark]:
    """Say why the run is no pass, and what of its journal a reader has to know."""
    unmeasured = {f"{item.objective}: {item.said}" for item in document.objectives} if never_began(document) else ()
    for reason in document.verdict.reasons:
        if reason not in unmeasured:
            yield Remark(first_line(reason), "warning")
    if document.journal.growing:
        yield Remark("the journal is being written to: the run may still be going on", "warning")
    if document.journal.newer_lines:
        yield Remark(f"{document.journal.newer_lines} lines of a newer version of scaletest passed over", "warning")


def about_incident(incident: IncidentReport) -> Iterator[Remark]:
    """Say what the timeline does not: that the run did not recover, and of each lever why it did not help."""
    if incident.recovered is False:
        broken = [item.name for item in incident.slos if item.measured and item.holds_from_s is None]
        what = f"SLO {', '.join(broken)} does not hold" if broken else "operators are not answered within 1 s"
        yield Remark(f"not recovered at the end: {what}", "bad")
    for lever in incident.levers:
        if lever.said:
            yield Remark(lever.said, "warning")


def about_probes(document: Document) -> Iterator[Remark]:
    """Say how requests failed, what each server did, and how many nodes were Ready."""
    for probe in document.probes:
        failed = {outcome: count for outcome, count in probe.outcomes.items() if outcome not in {"ok", "unfinished"}}
        if failed:
            by_outcome = ", ".join(f"{drawing.count(count)} {outcome}" for outcome, count in failed.items())
            yield Remark(f"{probe.probe} as {probe.identity} failed: {by_outcome}", "warning")
        if len(probe.servers) > 1:
            each = ", ".join(
                f"{item.server} {glyphs.share_text(item.success_rate)} good, p99 {glyphs.answer_text(item.p99_s, item.success_rate)}"
                for item in probe.servers
            )
            yield Remark(f"{probe.probe} as {probe.identity}, each server: {each}", "hint")
    for nodes in document.nodes:
        counts = f"{nodes.ready:,} of {nodes.total:,} nodes Ready at the end"
        worst = f", {nodes.most_not_ready:,} not Ready at worst" if nodes.most_not_ready else ""
        yield Remark(f"{nodes.probe}: {counts}{worst}", "warning" if nodes.not_ready else "plain")


def about_components(document: Document) -> Iterator[Remark]:
    """Say what enforces caps and quotas."""
    capped = sorted({item.memory_by for item in document.components if item.memory_cap_bytes and item.memory_by})
    if capped:
        yield Remark(f"memory caps are enforced by {', '.join(capped).replace('_', ' ')}", "hint")
    if any(item.cpu_quota_cores is not None and item.cpu_by == "none" for item in document.components):
        yield Remark("* quota not enforced: this host has no CPU control group for us (GOMAXPROCS is set)", "hint")


def about_api_servers(document: Document) -> Iterator[Remark]:
    """Say what the API servers answered, by their own count, and when they could not be asked."""
    top = sorted(document.api_requests.items(), key=lambda item: -item[1])[:6]
    answered = ", ".join(f"{drawing.count(count)} {key}" for key, count in top if count)
    if answered:
        yield Remark(f"API servers answered: {answered}")
    if len(document.api_requests_by_server) > 1:
        each = ", ".join(
            f"{server} {drawing.count(count)}" for server, count in document.api_requests_by_server.items()
        )
        yield Remark(f"each API server answered: {each}")
    if document.metrics_gaps:
        gaps = ", ".join(_gaps(target, outcomes) for target, outcomes in document.metrics_gaps.items())
        yield Remark(f"scrapes failed: {gaps}", "warning")


def _gaps(target: str, outcomes: dict[str, int]) -> str:
    most_first = sorted(outcomes.items(), key=lambda item: -item[1])
    by_outcome = ", ".join(f"{count:,} {outcome.replace('_', ' ')}" for outcome, count in most_first)
    return f"{target} {sum(outcomes.values()):,} ({by_outcome})"


def about_machine(document: Document) -> Iterator[Remark]:
    """Say what etcd, host and load driver did, and what of the set-up a reader has to know."""
    etcd, host, generator = document.etcd, document.host, document.generator
    if etcd is not None:
        disk = (
            f"fsync p99 {glyphs.duration_text(etcd.fsync_p99_s)}, commit p99 {glyphs.duration_text(etcd.commit_p99_s)}"
        )
        yield Remark(f"etcd: {disk}, database {glyphs.bytes_text(etcd.db_max_bytes)}, {drawing.count(etcd.puts)} puts")
    if host.available_min_bytes is not None:
        memory = f"{glyphs.bytes_text(host.available_min_bytes)} of {glyphs.bytes_text(host.memory_bytes)} available at least"
        yield Remark(f"host: {memory}, {glyphs.share_text(host.cpu_idle_share)} of {host.cores or '?'} cores idle")
    if generator is not None:
        lag = f"lag p50 {glyphs.duration_text(generator.lag_p50_s)}, p99 {glyphs.duration_text(generator.lag_p99_s)}"
        cpu = f"{drawing.cores(generator.cpu_mean_cores)} cores, {drawing.cores(generator.cpu_max_cores)} at most"
        memory = f"{glyphs.bytes_text(generator.memory_max_bytes)}, {generator.sockets_max:,} sockets"
        yield Remark(f"load driver: {lag}; {cpu}; {memory}")
    for title, fact in document.run.facts.items():
        yield Remark(f"{title}: {fact}")


def use_of_numbers(document: Document) -> str:
    """Say what the checks of validity come to."""
    if any(item.grade == "bad" for item in document.validity):
        return "invalid: the numbers above are not to be used"
    if not document.phases:
        return "nothing was measured: there is nothing to judge"
    return "the numbers can be used"
