"""Dice and every other chance of a match, as pure functions of numbers.

No generator holds a state: a die depends on (seed, seat, that seat's turn, die index) alone, so a
match is reproducible in any language and two line-ups can be played with the same dice. With
64-bit wrapping arithmetic and ``mix`` the SplitMix64 finaliser::

    mix(z)  = z ^= z >> 30; z *= 0xBF58476D1CE4E5B9; z ^= z >> 27; z *= 0x94D049BB133111EB;
              z ^ (z >> 31)
    word    = mix(mix(seed + GAMMA) + GAMMA * (1 + die + 64 * (seat + 4 * turn)))
    value   = 1 + ((word >> 32) * 6 >> 32)

where ``GAMMA = 0x9E3779B97F4A7C15`` and ``turn`` counts that seat's own turns from 0.
"""

from typing import Any

import numpy as np

from retinue.envs.game.jit import wrapping_jit

GAMMA = np.uint64(0x9E3779B97F4A7C15)
SEED_BITS = 53
"""Seeds are integers from 0 to 2**53 - 1, which every language can hold."""

_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_HALF = np.uint64(32)


@wrapping_jit
def mix(word: Any) -> Any:
    """Scramble a ``uint64`` (SplitMix64's finaliser, a bijection)."""
    word = np.uint64(word)
    word = (word ^ (word >> np.uint64(30))) * _FIRST
    word = (word ^ (word >> np.uint64(27))) * _SECOND
    return word ^ (word >> np.uint64(31))


@wrapping_jit
def below(word: Any, bound: int) -> int:
    """Return a number from 0 to ``bound - 1`` made from the upper half of ``word``."""
    return int((np.uint64(word) >> _HALF) * np.uint64(bound) >> _HALF)


@wrapping_jit
def die(seed: Any, seat: int, turn: int, index: int) -> int:
    """Return the die ``index`` of a seat's turn, 1 to 6 (rules 3.1)."""
    counter = np.uint64(1 + index + 64 * (seat + 4 * turn))
    return 1 + below(mix(mix(np.uint64(seed) + GAMMA) + GAMMA * counter), 6)


@wrapping_jit
def derive(seed: Any, purpose: int) -> Any:
    """Return an independent ``uint64`` for another purpose, from which ``seed`` cannot be told."""
    word = np.uint64(seed) + GAMMA * np.uint64(purpose + 1)
    return mix(word) ^ mix(mix(word + _FIRST))


@wrapping_jit
def episode_seed(seed: Any, episode: int) -> Any:
    """Return the dice seed of the ``episode``-th match of an environment: the first is ``seed``."""
    if episode == 0:
        return np.uint64(seed)
    return derive(seed, episode) >> np.uint64(64 - SEED_BITS)


@wrapping_jit
def draw(key: Any, counter: int, bound: int) -> int:
    """Return the ``counter``-th chance of ``key``, from 0 to ``bound - 1``."""
    return below(mix(np.uint64(key) + GAMMA * np.uint64(counter + 1)), bound)
