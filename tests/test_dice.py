"""Dice and other chances: the documented formula, fairness, and what each of them depends on."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from retinue.envs.game import dice, engine
from retinue.envs.game.ruleset import load_ruleset
from retinue.envs.game.state import new_game

WORD = 1 << 64
GAMMA = 0x9E3779B97F4A7C15
LARGEST_SEED = 2**53 - 1
SEEDS = (0, 1, 7, 2**31, 2**32 + 5, LARGEST_SEED)


def mix(z: int) -> int:
    """The docstring's ``mix``, in Python's endless integers, cut to 64 bits by hand."""
    z ^= z >> 30
    z = z * 0xBF58476D1CE4E5B9 % WORD
    z ^= z >> 27
    z = z * 0x94D049BB133111EB % WORD
    return z ^ (z >> 31)


def die_by_formula(seed: int, seat: int, turn: int, index: int) -> int:
    """The docstring's ``value``."""
    counter = 1 + index + 64 * (seat + 4 * turn)
    word = mix((mix((seed + GAMMA) % WORD) + GAMMA * counter) % WORD)
    return 1 + ((word >> 32) * 6 >> 32)


def die(seed: int, seat: int, turn: int, index: int) -> int:
    return dice.die(np.uint64(seed), seat, turn, index)


def chi_square(values: Sequence[int], kinds: range) -> float:
    counts = Counter(values)
    assert set(counts) <= set(kinds)
    expected = len(values) / len(kinds)
    return sum((counts[kind] - expected) ** 2 / expected for kind in kinds)


@pytest.mark.parametrize("seed", SEEDS)
def test_dice_are_those_of_the_formula(seed: int) -> None:
    places = [
        (*p, i) for p in ((0, 0), (1, 0), (3, 0), (0, 1), (2, 44), (3, 10**6)) for i in (0, 4)
    ]
    assert [die(seed, *place) for place in places] == [
        die_by_formula(seed, *place) for place in places
    ]


def test_golden_dice() -> None:
    # Written down once, so that formula and code cannot change together unnoticed.
    turns = [(0, 0), (3, 0), (0, 1), (2, 44)]
    assert [[die(7, *turn, index) for index in range(5)] for turn in turns] == [
        [5, 4, 4, 4, 3],
        [6, 5, 5, 3, 3],
        [6, 2, 2, 3, 6],
        [3, 3, 1, 1, 6],
    ]
    assert [die(LARGEST_SEED, 0, 0, index) for index in range(5)] == [6, 2, 4, 4, 2]


def test_mix_wraps_without_a_warning() -> None:
    assert [int(dice.mix(np.uint64(word))) for word in (0, 1, WORD - 1)] == [
        mix(word) for word in (0, 1, WORD - 1)
    ]


@pytest.mark.parametrize("mode", ["journey", "brawl"])
def test_a_roll_shows_the_seed_s_dice_for_seat_and_own_turn(mode: str) -> None:
    rules = load_ruleset(mode)
    game = new_game(rules)
    game["seat"] = 2
    game["turns_taken"][2] = 9
    game["turn"] = 38  # must not matter
    engine.roll(game, rules.packed, np.uint64(LARGEST_SEED))
    due = rules.dice[0][1]
    assert game["rolled"][: game["dice"]].tolist() == [
        die_by_formula(LARGEST_SEED, 2, 9, index) for index in range(due)
    ]


def test_dice_are_fair() -> None:
    values = [die(1, seat, turn, i) for turn in range(600) for seat in range(4) for i in range(5)]
    assert chi_square(values, range(1, 7)) < 40  # five degrees of freedom: p < 1e-6


@pytest.mark.parametrize("axis", ["seed", "seat", "turn", "index"])
def test_neighbouring_dice_are_independent(axis: str) -> None:
    step = [int(axis == name) for name in ("seed", "seat", "turn", "index")]
    places = [
        (seed, seat, turn, index)
        for seed in range(0, 40, 2)
        for seat in (0, 2)
        for turn in range(0, 40, 2)
        for index in (0, 2)
    ]
    pairs = [
        6 * (die(*place) - 1) + die(*(p + s for p, s in zip(place, step, strict=True))) - 1
        for place in places
    ]
    assert chi_square(pairs, range(36)) < 95  # 35 degrees of freedom: p < 1e-6


def test_no_two_seats_turns_or_seeds_share_a_sequence_of_dice() -> None:
    # 16 dice of 6 values: two equal sequences among these 600 would mean a shared stream.
    streams = [
        tuple(die(seed, seat, turn, index) for index in range(16))
        for seed in SEEDS
        for seat in range(4)
        for turn in range(25)
    ]
    assert len(set(streams)) == len(streams)


def test_the_first_episode_has_the_seed_itself() -> None:
    assert [int(dice.episode_seed(np.uint64(seed), 0)) for seed in SEEDS] == list(SEEDS)


def test_episodes_have_different_seeds_that_every_language_can_hold() -> None:
    seeds = [int(dice.episode_seed(np.uint64(s), e)) for s in SEEDS for e in range(2000)]
    assert max(seeds) <= LARGEST_SEED
    assert min(seeds) >= 0
    assert len(set(seeds)) == len(seeds)


def test_purposes_of_one_seed_are_independent_of_each_other_and_of_its_dice() -> None:
    words = [int(dice.derive(np.uint64(seed), purpose)) for seed in SEEDS for purpose in range(500)]
    assert len(set(words)) == len(words)
    # Neither the word that a die is made of, nor the seed, shows in what is derived from it.
    dice_keys = {mix((seed + GAMMA) % WORD) for seed in SEEDS}
    assert not dice_keys & set(words)
    assert not set(SEEDS) & set(words)
    assert chi_square([word >> 61 for word in words], range(8)) < 45
    assert chi_square([word & 7 for word in words], range(8)) < 45


def test_derive_gives_the_same_word_every_time() -> None:
    assert int(dice.derive(np.uint64(7), 3)) == int(dice.derive(np.uint64(7), 3))
    assert int(dice.derive(np.uint64(7), 3)) != int(dice.derive(np.uint64(3), 7))


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 100])
def test_draw_is_uniform_below_its_bound(bound: int) -> None:
    values = [int(dice.draw(np.uint64(11), counter, bound)) for counter in range(100 * bound)]
    assert chi_square(values, range(bound)) < bound + 6 * (2 * bound) ** 0.5


def test_draws_differ_by_key_and_counter() -> None:
    draws = {
        key: [int(dice.draw(np.uint64(key), counter, 1000)) for counter in range(20)]
        for key in (0, 1, WORD - 1)
    }
    assert len({tuple(each) for each in draws.values()}) == len(draws)
    assert all(len(set(each)) > 15 for each in draws.values())


def test_below_reaches_both_ends_and_no_further() -> None:
    assert int(dice.below(np.uint64(0), 6)) == 0
    assert int(dice.below(np.uint64(WORD - 1), 6)) == 5
    assert int(dice.below(np.uint64(WORD - 1), 2**31)) == 2**31 - 1
