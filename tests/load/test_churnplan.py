"""The population of a churn flow: its composition, its groups' lives, and what operations cost."""

from __future__ import annotations

import itertools
from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from scaletest.load.churnplan import Act, Kind, Move, Population, compose
from scaletest.profile.schema import ChurnSpec


def spec(pods: int = 60, **more: object) -> ChurnSpec:
    return ChurnSpec.model_validate({"pods": pods, **more})


def population(pods: int = 60, *, seed: int = 1, **more: object) -> Population:
    made = Population(spec(pods, **more), 2, Random(seed))
    made.resize(pods)
    return made


def play(population: Population, moves: int) -> list[Move]:
    """Do operations, each of which goes well."""
    done: list[Move] = []
    for _ in range(moves):
        move = population.next_move()
        assert move is not None
        population.ended(move, done=True)
        done.append(move)
    return done


def build(population: Population) -> list[Move]:
    made: list[Move] = []
    while not population.is_standing:
        made += play(population, 1)
    return made


def asked(population: Population) -> int:
    return sum(group.pods for group in population.groups)


def test_the_official_shape_of_a_namespace() -> None:
    """3,000 pods: a quarter in groups of 250, a quarter of 30, half of 5; one Job of each size."""
    found = compose(3_000, spec(3_000, jobs="9.5%", barePods=0))

    jobs = {size: count for (kind, size), count in found.items() if kind is Kind.JOB}
    deployments = {size: count for (kind, size), count in found.items() if kind is Kind.DEPLOYMENT}
    # 71 of 285 pods make no group of 250, so they go to groups of 30 and 5.
    assert {30: 4, 5: 33} == jobs
    assert {250: 2, 30: 28, 5: 275} == deployments


@given(
    st.integers(1, 20_000),
    st.floats(0, 0.6),
    st.floats(0, 0.4),
    st.lists(st.integers(1, 300), min_size=1, max_size=4),
)
def test_a_population_has_exactly_as_many_pods_as_were_asked_for(
    pods: int, jobs: float, bare: float, sizes: list[int]
) -> None:
    shares = [{"pods": size, "share": 1 / len(sizes)} for size in sizes]
    found = compose(pods, spec(pods, jobs=jobs, barePods=bare, sizes=shares))

    assert pods == sum(size * count for (_, size), count in found.items())
    assert min(found.values()) > 0


def test_everything_is_created_first_and_once() -> None:
    made = population()

    moves = build(made)

    assert {Act.CREATE} == {move.act for move in moves}
    assert 60 == sum(move.cost for move in moves) == asked(made)
    assert len(moves) == len({move.group.name for move in moves})
    assert {0, 1} == {move.group.namespace for move in moves}
    assert 60 == made.replicas


def test_lives_go_from_create_to_delete_and_the_population_stays_whole() -> None:
    made = population(200, sizes=[{"pods": 5, "share": "100%"}])
    build(made)
    names: list[str] = []
    acts: dict[int, list[Act]] = {}
    for move in (move for _ in range(600) for move in play(made, 1)):
        acts.setdefault(move.group.serial, []).append(move.act)
        names += [move.group.name] if move.act is Act.CREATE else []
        # Only what was deleted last is missing.
        assert sum(not group.exists for group in made.groups) <= 1
    assert 200 == asked(made)
    assert len(names) == len(set(names))
    following = Counter(pair for row in acts.values() for pair in itertools.pairwise(row))
    assert {
        (Act.CREATE, Act.SCALE), (Act.SCALE, Act.ROLL), (Act.ROLL, Act.DELETE), (Act.DELETE, Act.CREATE),
        (Act.CREATE, Act.DELETE),
    } == set(following)  # fmt: skip
    # From the start, operations of all kinds follow each other.
    assert {Act.SCALE, Act.ROLL, Act.DELETE, Act.CREATE} == {move.act for move in play(population_built(), 12)}


def population_built() -> Population:
    made = population(200, sizes=[{"pods": 5, "share": "100%"}])
    build(made)
    return made


@given(st.integers(0, 2**32))
def test_a_scaled_group_has_half_to_one_and_a_half_of_its_size_and_costs_the_difference(seed: int) -> None:
    made = population(90, seed=seed, jobs=0, barePods=0, sizes=[{"pods": 30, "share": "100%"}])
    build(made)
    replicas: dict[str, int] = {}
    for move in play(made, 30):
        before = replicas.get(move.group.name, 30)
        match move.act:
            case Act.SCALE:
                assert 15 <= move.replicas <= 45
                assert max(1, abs(move.replicas - before)) == move.cost
            case Act.ROLL:
                assert (before, 2 * before) == (move.replicas, move.cost)
            case Act.DELETE:
                assert before == move.cost
            case Act.CREATE:
                assert 30 == move.cost
        replicas[move.group.name] = move.replicas


def test_a_group_with_an_operation_under_way_gets_no_other() -> None:
    made = population(2, jobs=0, barePods="100%")
    first, second = made.next_move(), made.next_move()
    assert first is not None
    assert second is not None
    assert first.group is not second.group
    assert made.next_move() is None

    made.ended(first, done=False)
    again = made.next_move()

    assert again is not None
    assert (first.group, Act.CREATE, first.group.name) == (again.group, again.act, again.group.name)


def test_what_turns_out_to_be_gone_is_created_anew() -> None:
    made = population(5, jobs=0, barePods=0, sizes=[{"pods": 5, "share": "100%"}])
    (created,) = build(made)
    name = created.group.name
    move = made.next_move()
    assert move is not None
    made.ended(move, done=False, missing=True)

    again = made.next_move()

    assert again is not None
    assert Act.CREATE is again.act
    assert name != again.group.name
    assert not made.is_standing
    assert made.is_being_made
    assert not made.has_new


@given(st.lists(st.integers(1, 400), min_size=1, max_size=5), st.integers(0, 50))
def test_a_population_follows_its_size(sizes: list[int], between: int) -> None:
    made = population(60)
    for pods in sizes:
        made.resize(pods)
        play(made, between)
        assert pods == asked(made)
    play(made, 600)
    build(made)
    assert sizes[-1] == asked(made)


def test_a_group_too_many_that_was_never_made_is_forgotten() -> None:
    made = population(2, jobs=0, barePods="100%")
    moves = [made.next_move(), made.next_move()]
    made.resize(1)
    for move in moves:
        assert move is not None
        made.ended(move, done=not move.group.doomed)

    assert 1 == len(list(made.groups))
    following = made.next_move()
    assert following is not None
    assert Act.DELETE is following.act
    assert not following.group.doomed
