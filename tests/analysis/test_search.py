"""The search for the saturation point, against simulated systems."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from scaletest.analysis.search import (
    Ask,
    Conclusion,
    Outcome,
    Reason,
    Space,
    Trial,
    Why,
    conclude,
    expected_trials,
    plan_next,
)

AGENTS = Space(start=50, end=20_000, resolution=0.05)
PERIOD_S = Space(start=60.0, end=0.5, resolution=0.05, whole=False)

System = Callable[[float], Outcome]


def search(space: Space, system: System, most: int = 400) -> tuple[Conclusion, list[Trial]]:
    trials: list[Trial] = []
    while isinstance(ask := plan_next(space, trials), Ask):
        assert len(trials) < most, f"no end: {trials[-20:]}"
        low, high = sorted((space.start, space.end))
        assert low <= ask.value <= high
        assert not space.whole or ask.value == int(ask.value)
        trials.append(Trial(ask.value, system(ask.value)))
    return conclude(space, trials), trials


def limit(space: Space, threshold: float) -> System:
    """A system without noise: loads up to and including the threshold hold."""
    return lambda value: Outcome.HELD if space.key(value) <= space.key(threshold) else Outcome.FAILED


def within(space: Space, found: Conclusion, threshold: float) -> bool:
    assert found.holds is not None
    assert found.fails is not None
    return space.key(found.holds) <= space.key(threshold) <= space.key(found.fails)


spaces = st.one_of(
    st.builds(
        Space,
        start=st.integers(1, 200).map(float),
        end=st.integers(2_000, 100_000).map(float),
        resolution=st.sampled_from([0.01, 0.05, 0.2]),
        factor=st.sampled_from([1.5, 2.0, 4.0]),
    ),
    st.builds(
        Space,
        start=st.floats(20, 600),
        end=st.floats(0.1, 2),
        resolution=st.sampled_from([0.01, 0.05, 0.2]),
        whole=st.just(False),
    ),
)


def at(space: Space, share: float) -> float:
    """A load at a share of the way, which no search would try."""
    value = space.start * math.pow(space.end / space.start, share)
    return math.floor(value) + 0.5 if space.whole else value * 1.000_000_1


@settings(max_examples=50)
@given(spaces, st.floats(0.02, 0.98))
def test_the_interval_is_around_the_threshold_and_as_narrow_as_asked(space: Space, share: float) -> None:
    threshold = at(space, share)

    found, trials = search(space, limit(space, threshold))

    assert found.reason is Reason.FOUND
    assert within(space, found, threshold)
    assert found.holds is not None
    assert found.fails is not None
    assert not space.wider(found.holds, found.fails)
    assert found.confirmed
    assert found.contradictions == 0
    assert len(trials) <= expected_trials(space)


@settings(max_examples=50)
@given(spaces, st.floats(0.02, 0.98), st.integers(0, 30))
def test_one_wrong_trial_never_misleads(space: Space, share: float, wrong: int) -> None:
    threshold, count = at(space, share), 0
    honest = limit(space, threshold)

    def system(value: float) -> Outcome:
        nonlocal count
        count += 1
        outcome = honest(value)
        if count - 1 != wrong:
            return outcome
        return Outcome.FAILED if outcome is Outcome.HELD else Outcome.HELD

    found, trials = search(space, system)

    assert found.reason is Reason.FOUND
    assert within(space, found, threshold)
    assert len(trials) <= 2 * expected_trials(space) + 5


@settings(max_examples=50)
@given(spaces, st.floats(0.1, 0.9), st.floats(0.0, 0.3), st.integers(0, 2**32))
def test_a_noisy_system_gives_a_wider_interval_and_an_end(space: Space, share: float, noise: float, seed: int) -> None:
    rng = random.Random(seed)
    middle = space.key(at(space, share))

    def system(value: float) -> Outcome:
        if noise == 0:
            return Outcome.HELD if space.key(value) <= middle else Outcome.FAILED
        odds = math.exp(max(-50.0, min(50.0, (middle - space.key(value)) / noise)))
        return Outcome.HELD if rng.random() < odds / (1 + odds) else Outcome.FAILED

    found, trials = search(space, system)

    assert len(trials) < 100
    if found.holds is not None and found.fails is not None:
        assert space.key(found.holds) < space.key(found.fails)
        counts = [sum(trial.value == end for trial in trials) for end in (found.holds, found.fails)]
        assert min(counts) >= 2


def test_noise_of_a_tenth_is_found_within_a_fifth_nearly_always() -> None:
    good = 0
    for seed in range(200):
        rng = random.Random(seed)
        found, _ = search(AGENTS, lambda value, rng=rng: limit(AGENTS, 1_000 * rng.gauss(1, 0.1))(value))  # type: ignore[misc]
        assert found.holds is not None
        good += 800 <= found.holds <= 1_200

    assert good >= 190


def test_a_stray_failure_far_below_the_knee_is_outvoted() -> None:
    first = iter([Outcome.HELD, Outcome.FAILED])
    found, trials = search(AGENTS, lambda value: next(first, limit(AGENTS, 1_000)(value)))

    assert found.holds is not None
    assert found.holds >= 900
    assert found.contradictions == 1
    assert [50, 100] == [trial.value for trial in trials[:2]]


def test_a_contradiction_at_the_knee_widens_the_interval() -> None:
    space = Space(start=100, end=1_000, resolution=0.5)
    steady = [Trial(100, Outcome.HELD), Trial(200, Outcome.HELD), Trial(400, Outcome.FAILED), Trial(280, Outcome.HELD)]
    assert Ask(280, Why.CONFIRM) == plan_next(space, steady)

    contradicted = [*steady, Trial(280, Outcome.FAILED)]
    found = conclude(space, contradicted)

    assert (200, 400) == (found.holds, found.fails)
    assert found.contradictions == 1


@given(st.integers(60, 19_000), st.floats(0.01, 1.5))
def test_the_ramp_lands_on_the_heaviest_load_that_is_made_as_it_is(landing: int, share: float) -> None:
    space = replace(AGENTS, landing=float(landing))
    knee = share * landing

    conclusion, trials = search(space, lambda value: Outcome.HELD if value <= knee else Outcome.FAILED)

    assert knee < landing or Trial(landing, Outcome.HELD) in trials
    assert conclusion.holds is None or conclusion.holds <= knee
    assert conclusion.fails is None or conclusion.fails > knee


def test_loads_that_contradict_themselves_are_decided_while_the_interval_is_too_wide() -> None:
    """As a real search went: 2,470 to 2,620 GETs a second each held once and failed once."""
    space = Space(start=800, end=20_000, resolution=0.05, whole=False, factor=1.5)
    held, failed = Outcome.HELD, Outcome.FAILED
    went = [
        (800, held), (1200, held), (1800, held), (2700, failed), (2200, held), (2400, held), (2550, held), (2620, held),
        (2620, failed), (2550, failed), (2470, failed), (2400, held), (2470, held), (2700, failed),
    ]  # fmt: skip
    trials = [Trial(value, outcome) for value, outcome in went]

    assert Ask(2550, Why.DECIDE) == plan_next(space, trials)
    trials.append(Trial(2550, held))
    assert Ask(2620, Why.DECIDE) == plan_next(space, trials)
    trials.append(Trial(2620, failed))
    assert Reason.FOUND is plan_next(space, trials)
    assert (2550, 2620) == (conclude(space, trials).holds, conclude(space, trials).fails)


def test_a_load_that_never_fails_is_tried_twice_and_said() -> None:
    found, trials = search(AGENTS, lambda _: Outcome.HELD)

    assert (Reason.NEVER_FAILED, 20_000, None) == (found.reason, found.holds, found.fails)
    assert [20_000, 20_000] == [trial.value for trial in trials[-2:]]
    assert math.isnan(found.width)


def test_a_load_that_never_holds_is_tried_twice_and_said() -> None:
    found, trials = search(AGENTS, lambda _: Outcome.FAILED)

    assert (Reason.NEVER_HELD, None, 50) == (found.reason, found.holds, found.fails)
    assert [50, 50] == [trial.value for trial in trials]


def test_a_start_that_failed_by_mistake_gets_a_third_trial() -> None:
    first = iter([Outcome.FAILED])
    found, trials = search(AGENTS, lambda value: next(first, limit(AGENTS, 1_000)(value)))

    assert [50, 50, 50, 100] == [trial.value for trial in trials[:4]]
    assert found.holds is not None
    assert 900 <= found.holds <= 1_000


@settings(max_examples=50)
@given(spaces, st.floats(0.1, 0.9))
def test_a_generator_that_gives_up_is_a_lower_bound_and_no_knee(space: Space, share: float) -> None:
    most = at(space, share)
    found, _ = search(space, lambda value: Outcome.HELD if space.key(value) <= space.key(most) else Outcome.NOT_COUNTED)

    assert found.reason is Reason.GENERATOR_LIMIT
    assert found.fails is None
    assert found.holds is not None
    assert space.key(found.holds) <= space.key(most)
    assert found.unusable


def test_a_knee_below_the_generator_s_limit_is_found() -> None:
    def system(value: float) -> Outcome:
        return Outcome.NOT_COUNTED if value >= 1_500 else limit(AGENTS, 1_000)(value)

    found, trials = search(AGENTS, system)

    assert found.reason is Reason.FOUND
    assert within(AGENTS, found, 1_000)
    assert found.width <= 0.05 + 1e-9
    assert [Outcome.NOT_COUNTED] * 2 == [trial.outcome for trial in trials if trial.value == 1_600]


def test_a_load_that_somebody_else_made_unusable_is_tried_a_last_time() -> None:
    disturbed = iter([Outcome.HELD, Outcome.HELD, Outcome.NOT_COUNTED, Outcome.NOT_COUNTED])
    found, trials = search(AGENTS, lambda value: next(disturbed, limit(AGENTS, 1_000)(value)))

    assert found.reason is Reason.FOUND
    assert within(AGENTS, found, 1_000)
    assert [50, 100, 200, 200] == [trial.value for trial in trials[:4]]
    assert 3 == sum(trial.value == 200 for trial in trials)


def test_one_trial_that_does_not_count_is_repeated() -> None:
    trials = [Trial(50, Outcome.HELD), Trial(100, Outcome.NOT_COUNTED)]

    assert Ask(100, Why.AGAIN) == plan_next(AGENTS, trials)
    assert Ask(200, Why.RAMP) == plan_next(AGENTS, [*trials, Trial(100, Outcome.HELD)])


def test_a_generator_that_cannot_make_the_first_load_ends_the_search() -> None:
    found, trials = search(AGENTS, lambda _: Outcome.NOT_COUNTED)

    assert (Reason.GENERATOR_LIMIT, None, None) == (found.reason, found.holds, found.fails)
    assert [50, 50] == [trial.value for trial in trials]


def test_a_shorter_period_is_a_heavier_load() -> None:
    found, trials = search(PERIOD_S, limit(PERIOD_S, 7.33))

    assert [60, 30, 15, 7.5, 3.75] == [trial.value for trial in trials[:5]]
    assert found.holds is not None
    assert found.fails is not None
    assert found.fails < 7.33 < found.holds
    assert found.width <= 0.05 + 1e-9


def test_whole_loads_next_to_each_other_are_as_narrow_as_can_be() -> None:
    found, _ = search(Space(start=1, end=100, resolution=0.01), limit(AGENTS, 3))

    assert (3, 4) == (found.holds, found.fails)


def test_loads_have_few_digits() -> None:
    _, trials = search(AGENTS, limit(AGENTS, 1_234))

    assert [50, 100, 200, 400, 800, 1_600, 1_100] == [trial.value for trial in trials[:7]]


def test_what_a_search_was_cut_short_by_is_the_callers_to_say() -> None:
    trials = [Trial(50, Outcome.HELD), Trial(100, Outcome.HELD)]

    assert Reason.OUT_OF_TIME is conclude(AGENTS, trials, Reason.OUT_OF_TIME).reason
    assert (100, None) == (conclude(AGENTS, trials).holds, conclude(AGENTS, trials).fails)


def test_nothing_tried_says_nothing() -> None:
    found = conclude(AGENTS, [])

    assert (None, None, Reason.CUT) == (found.holds, found.fails, found.reason)
