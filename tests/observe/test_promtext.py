from __future__ import annotations

import math
from itertools import chain, repeat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.observe.promtext import Sample, parse_sample, select

DATA = Path(__file__).parent / "data"

LABEL_NAMES = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,8}", fullmatch=True)
LABEL_VALUES = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAMES = st.sampled_from(["up", "up_total", "up_total_more", "down", "a:b"])
SAMPLES = st.builds(
    Sample,
    name=NAMES,
    labels=st.dictionaries(LABEL_NAMES, LABEL_VALUES, max_size=4),
    value=st.floats(allow_nan=False),
)


def render(sample: Sample, *, timestamp: int | None = None) -> str:
    """Write a sample as the text format says."""

    def escaped(text: str) -> str:
        return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')

    labels = ",".join(f'{name}="{escaped(value)}"' for name, value in sample.labels.items())
    value = {math.inf: "+Inf", -math.inf: "-Inf"}.get(sample.value, repr(sample.value))
    return f"{sample.name}{'{' + labels + '}' if labels else ''} {value}{'' if timestamp is None else f' {timestamp}'}"


@given(sample=SAMPLES, timestamp=st.none() | st.integers(-(10**12), 10**13))
def test_a_sample_is_read_back_as_it_was_written(sample: Sample, timestamp: int | None) -> None:
    assert parse_sample(render(sample, timestamp=timestamp)) == sample


@given(samples=st.lists(SAMPLES, max_size=20), wanted=st.sets(NAMES), commented=st.booleans())
def test_selecting_gives_the_samples_of_exactly_the_wanted_names_in_their_order(
    samples: list[Sample], wanted: set[str], commented: bool
) -> None:
    families: dict[str, list[Sample]] = {}
    for sample in samples:
        families.setdefault(sample.name, []).append(sample)
    text = "".join(
        f"{comment.format(name)}{render(sample)}\n"
        for name, family in families.items()
        for comment, sample in zip(
            chain(["# TYPE {} counter\n" if commented else ""], repeat("")), family, strict=False
        )
    )

    expected = [sample for name in sorted(wanted) for sample in families.get(name, ())]
    assert expected == list(select(text.encode(), wanted))


@given(samples=st.lists(SAMPLES, min_size=1, max_size=6), data=st.data())
def test_a_text_cut_anywhere_gives_only_whole_samples(samples: list[Sample], data: st.DataObject) -> None:
    samples.sort(key=lambda sample: sample.name, reverse=data.draw(st.booleans()))
    text = "".join(f"{render(sample)}\n" for sample in samples).encode()
    cut = data.draw(st.integers(0, len(text)))
    whole = text[:cut].count(b"\n")

    names = sorted({sample.name for sample in samples})
    expected = [sample for name in names for sample in samples[:whole] if sample.name == name]
    assert expected == list(select(text[:cut], names))


@given(st.binary(max_size=200))
def test_no_bytes_make_selecting_fail(noise: bytes) -> None:
    list(select(noise + b"\nup " + noise + b"\nup{" + noise + b"\n", ["up"]))


def test_a_value_that_is_no_number_is_read_as_such() -> None:
    assert math.isnan(parse_sample("up NaN").value)


@pytest.mark.parametrize("line", ["", "# HELP up", "up", "up{a=1} 2", 'up{a="b} 2', "up 1 2 3", "1up 3", "up one"])
def test_what_is_no_sample_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"not a sample|not labels|could not convert"):
        parse_sample(line)


@pytest.mark.parametrize("path", sorted(DATA.glob("*.txt")), ids=lambda path: path.stem)
def test_selecting_from_a_recorded_scrape_agrees_with_parsing_every_line(path: Path) -> None:
    text = path.read_bytes()
    every = [parse_sample(line) for line in text.decode().splitlines() if not line.startswith("#")]
    names = sorted({sample.name for sample in every})

    assert list(select(text, names)) == sorted(every, key=lambda sample: sample.name)
