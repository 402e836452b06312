from __future__ import annotations

from scaletest.core.errors import EXIT_CODE_MEANINGS, ExitCode
from scaletest.profile import schema
from scaletest.profile.objectives import MEANINGS, MEASURES
from scaletest.profile.reference import PAGE, render


def models() -> list[type[schema.Model]]:
    return [
        item
        for item in vars(schema).values()
        if isinstance(item, type) and issubclass(item, schema.Model) and item is not schema.Model
    ]


def test_the_page_in_the_guide_is_the_one_that_the_schema_gives() -> None:
    assert render() == PAGE.read_text(encoding="utf-8"), "run `make docs`"


def test_every_key_has_a_meaning() -> None:
    assert [] == [
        f"{model.__name__}.{name}"
        for model in models()
        for name, info in model.model_fields.items()
        if not info.description
    ]


def test_every_key_is_on_the_page() -> None:
    page = render()

    assert [] == [
        info.alias for model in models() for info in model.model_fields.values() if f"| `{info.alias}` |" not in page
    ]


def test_every_measure_has_a_meaning_or_is_a_latency() -> None:
    latencies = {"p50", "p90", "p95", "p99", "p999", "max", "mean"}

    for scope, measures in MEASURES.items():
        assert set(measures) - latencies == set(MEANINGS[scope]) - latencies
        assert ("p50" in measures) == ("p50" in MEANINGS[scope])


def test_every_exit_code_has_a_meaning_on_the_page() -> None:
    page = render()

    assert set(ExitCode) == set(EXIT_CODE_MEANINGS)
    assert [] == [code for code, meaning in EXIT_CODE_MEANINGS.items() if f"| {int(code)} | {meaning} |" not in page]
