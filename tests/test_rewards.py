"""Rewards: each change of a seat's value reaches that seat, once."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from playing import END, Dealer, ask
from positions import BRAWL, JOURNEY, changed
from retinue.agents.registry import make_agent
from retinue.envs.batch import Batch
from retinue.envs.game.state import OVER, Record
from retinue.envs.gym_env import RetinueEnv
from retinue.envs.rewards import REWARD_MODES, Reward

RACER, RANDOM, SPREAD = (make_agent(name, JOURNEY) for name in ("racer", "random", "spread"))
BY_PLACE = {1: 1.0, 2: 1 / 3, 3: -1 / 3, 4: -1.0}
EVERY_MODE = pytest.mark.parametrize("mode", REWARD_MODES)
NOBLE_ONLY = changed(JOURNEY, dice=[[12, 0]], clock_seconds=120, turn_seconds=10)
"""No dice, and three turns for each seat."""


def exactly(number: float) -> Any:
    return pytest.approx(number, rel=0, abs=1e-9)


def value(game: Record, seat: int, mode: str) -> float:
    """A seat's value before scaling, in the documentation's words."""
    progression = game["progression"].sum(axis=1)
    totals = (progression + game["combat"] + game["bonus"]).tolist()
    others = [total for other, total in enumerate(totals) if other != seat]
    if mode == "score":
        return float(totals[seat])
    if mode == "margin":
        return float(totals[seat] - sum(others) / 3)
    if game["phase"] != OVER:
        return 0.0
    return BY_PLACE[1 + sum(other > totals[seat] for other in others)]


class Ledger:
    """What each of the caller's seats was paid in one match, checked at each payment."""

    def __init__(self, batch: Batch, index: int, mode: str, scale: float) -> None:
        self.batch, self.index, self.mode, self.scale = batch, index, mode, scale
        self.paid = dict.fromkeys(np.flatnonzero(batch.control[index] == -1).tolist(), 0.0)
        self.worth = dict.fromkeys(self.paid, 0.0)
        self.places: dict[int, Any] = {}
        self.began = False
        self.happened: Counter[str] = Counter()
        self.note()

    def note(self) -> None:
        """Take the reward that comes with the decision that is due now."""
        game, seat = self.batch.games[self.index], int(self.batch.seats[self.index])
        now = value(game, seat, self.mode)
        assert game["seat"] == seat
        reward = float(self.batch.rewards[self.index])
        if seat not in self.places:
            assert reward == 0, "the first decision pays nothing"
            self.happened["worth something before its first decision"] += now != 0
        else:
            assert reward == exactly((now - self.worth[seat]) / self.scale)
            self.worth[seat] = now
            was = self.places[seat]
            self.happened["captured since"] += bool(np.any((was >= 0) & (game.position[seat] < 0)))
            self.happened["lost value"] += reward < 0
        self.paid[seat] += reward
        self.places[seat] = game["position"][seat].copy()

    def close(self) -> None:
        """Take the final rewards and check that everything was paid, once."""
        batch, index = self.batch, self.index
        game, last = batch.games[index], int(batch.seats[index])
        assert batch.rewards[index] == batch.seat_rewards[index, last]
        assert last in self.paid
        for seat in range(4):
            final = float(batch.seat_rewards[index, seat])
            if seat not in self.paid:
                assert final == 0, "nobody else's seat is paid"
                continue
            expected = value(game, seat, self.mode) / self.scale
            assert self.paid[seat] + final == exactly(expected)
            early = game["turns_taken"][seat] < max(game["turns_taken"]) - 1
            self.happened["finished early"] += bool(early)
            self.happened["owed at the end"] += seat != last and final != 0


def play_and_check(batch: Batch, mode: str, scale: float, matches: int) -> Counter[str]:
    """Play matches, every other one of them well, and check all payments."""
    batch.reset(17)
    ledgers = [Ledger(batch, index, mode, scale) for index in range(batch.num_games)]
    deal, happened, ended = Dealer(batch.encoding, 17, range(batch.num_games)), Counter[str](), 0
    while ended < matches:
        actions, acting = deal(batch.masks), batch.seats.copy()
        turns = batch.games["turn"].copy()
        if batch.encoding.name == "turn":
            actions[::2] = ask(RACER, batch)[::2]
        ended += batch.step(actions)
        for index, ledger in enumerate(ledgers):
            if batch.terminated[index]:
                ledger.close()
                happened += ledger.happened
            elif batch.games["turn"][index] > turns[index]:
                ledger.note()
            else:
                assert batch.rewards[index] == 0, "within a turn nothing happens"
                assert batch.seats[index] == acting[index]
        over = np.flatnonzero(batch.terminated)
        batch.start_next(over)
        for index in over.tolist():
            ledgers[index] = Ledger(batch, index, mode, scale)
    return happened


@EVERY_MODE
@pytest.mark.parametrize("seats", [2, (1, 3), (0, 1, 2, 3), "any"], ids=str)
def test_over_a_match_rewards_sum_to_the_final_value(mode: str, seats: Any) -> None:
    opponents = [] if seats == (0, 1, 2, 3) else [RACER, SPREAD]
    batch = Batch(
        JOURNEY,
        12,
        encoding="turn",
        seats=seats,
        opponents=opponents,
        reward=Reward(mode),
        threads=1,
    )
    happened = play_and_check(batch, mode, 1 if mode == "place" else 100, 24)
    assert happened["finished early"] > 0, happened
    assert happened["captured since"] > 0, happened
    if mode != "place":
        assert happened["lost value"] > 0, happened
    if seats in ((1, 3), (0, 1, 2, 3)):
        assert happened["owed at the end"] > 0, happened
    if mode == "margin":
        assert happened["worth something before its first decision"] > 0, happened


@EVERY_MODE
def test_the_same_in_brawl_by_steps_at_another_scale(mode: str) -> None:
    batch = Batch(
        BRAWL, 6, seats=(0, 2), opponents=[RACER, RANDOM], reward=Reward(mode, 7.0), threads=1
    )
    happened = play_and_check(batch, mode, 7.0, 6)
    assert happened["captured since"] > 0, happened


@EVERY_MODE
def test_the_environment_pays_what_it_says(mode: str) -> None:
    env = RetinueEnv("journey", encoding="turn", seats=(0, 3), opponents=[RACER], reward=mode)
    scale = 1 if mode == "place" else 100
    _, info = env.reset(seed=4)
    env.action_space.seed(4)
    assert info["rewards"].tolist() == [0, 0, 0, 0]
    paid, terminated = np.zeros(4), False
    while not terminated:
        _, reward, terminated, _, info = env.step(env.action_space.sample(info["action_mask"]))
        assert info["rewards"].dtype == np.float64
        assert reward == info["rewards"][info["seat"]]
        assert isinstance(reward, float)
        if not terminated:
            assert np.delete(info["rewards"], info["seat"]).tolist() == [0, 0, 0]
        paid += info["rewards"]
    expected = [value(env.game, seat, mode) / scale if seat in (0, 3) else 0 for seat in range(4)]
    np.testing.assert_allclose(paid, expected, rtol=0, atol=1e-9)


@EVERY_MODE
def test_a_place_bonus_is_paid_in_the_end_alone(mode: str) -> None:
    """Beside the same matches without it: the same rewards but for the last ones."""
    plain, more = (
        Batch(JOURNEY, 12, encoding="turn", seats=1, opponents=[RACER, SPREAD], reward=reward)
        for reward in (Reward(mode, 50.0), Reward(mode, 50.0, place_bonus=2.0))
    )
    for batch in (plain, more):
        batch.reset(7)
    places: set[int] = set()
    ended = 0
    while ended < 12:
        actions = ask(SPREAD, plain)
        ended += plain.step(actions)
        more.step(actions)
        over = plain.terminated.copy()
        placed = plain.final_places[np.arange(12), plain.seats]
        bonus = np.where(over, [2.0 * BY_PLACE.get(place, 0) for place in placed.tolist()], 0.0)
        np.testing.assert_allclose(more.rewards, plain.rewards + bonus, rtol=0, atol=1e-9)
        places |= {*placed[over].tolist()}
        for batch in (plain, more):
            batch.start_next(np.flatnonzero(over))
    assert len(places) > 2


@pytest.mark.parametrize("bonus", [-1, math.inf, math.nan, "2"])
def test_a_place_bonus_that_cannot_be_is_refused(bonus: Any) -> None:
    with pytest.raises(ValueError, match="place_bonus must be a number from 0 on"):
        Reward("margin", place_bonus=bonus)


# --- Places

TURNS = {0: [0, 0, 0], 20: [1, 0, 0], 60: [6, 2, 0], 100: [6, 6, 1], 140: [6, 6, 6]}
"""The Noble's steps in each turn that make so many points in Journey."""


@pytest.mark.parametrize(
    ("totals", "places"),
    [
        ([140, 100, 60, 20], [1, 2, 3, 4]),
        ([0, 20, 60, 140], [4, 3, 2, 1]),
        ([0, 0, 0, 0], [1, 1, 1, 1]),
        ([60, 60, 20, 20], [1, 1, 3, 3]),
        ([20, 60, 20, 20], [2, 1, 2, 2]),
        ([100, 20, 100, 100], [1, 4, 1, 1]),
        ([20, 60, 100, 20], [3, 2, 1, 3]),
    ],
)
def test_places_and_ties(totals: list[int], places: list[int]) -> None:
    env = RetinueEnv(rules=NOBLE_ONLY, reward="place")
    env.reset(seed=1)
    for turn in range(3):
        for seat in range(4):
            env.step(TURNS[totals[seat]][turn])
            _, reward, terminated, _, info = env.step(END)
            assert terminated == (turn == 2 and seat == 3)
            if not terminated:
                assert reward == 0
    assert info["totals"].tolist() == totals
    assert info["places"].tolist() == places
    np.testing.assert_allclose(info["rewards"], [BY_PLACE[place] for place in places], atol=1e-12)


def test_a_match_worked_out_by_hand() -> None:
    # By turns, seat after seat. Green's Noble gets 20 in its first turn; Blue's 20, then the
    # Castle's 40; Yellow's 20 in the last turn of all.
    steps = [1, 0, 6, 0, 1, 0, 2, 0, 0, 0, 0, 1]
    paid: dict[str, list[list[float]]] = {"score": [], "margin": []}
    for mode, rows in paid.items():
        env = RetinueEnv(rules=NOBLE_ONLY, reward=mode, reward_scale=20)
        env.reset(seed=1)
        for noble in steps:
            env.step(noble)
            *_, info = env.step(END)
            rows.append(info["rewards"].tolist())
    score, margin = np.zeros((12, 4)), np.zeros((12, 4))
    score[3, 0], score[5, 2], score[9, 2], score[11] = 1, 1, 2, [0, 0, 0, 1]
    margin[3, 0], margin[4, 1], margin[5, 2], margin[6, 3] = 2 / 3, -2 / 3, 2 / 3, -4 / 3
    margin[7, 0], margin[8, 1], margin[9, 2] = -2 / 3, -2 / 3, 2
    margin[11] = [-1 / 3, -1 / 3, -1 / 3, 1]
    np.testing.assert_allclose(paid["score"], score, rtol=0, atol=1e-12)
    np.testing.assert_allclose(paid["margin"], margin, rtol=0, atol=1e-12)


@pytest.mark.parametrize("mode", ["scores", "", "Margin"])
def test_an_unknown_mode_is_refused(mode: str) -> None:
    with pytest.raises(ValueError, match=f"unknown reward '{mode}': use score, margin, place"):
        Reward(mode)


@pytest.mark.parametrize("scale", [0, -1, math.inf, math.nan])
def test_a_scale_that_cannot_be_is_refused(scale: float) -> None:
    with pytest.raises(ValueError, match="reward scale must be a number above 0"):
        Reward("score", scale)


@pytest.mark.parametrize(("mode", "scale"), [("score", 100), ("margin", 100), ("place", 1)])
def test_the_scale_by_default(mode: str, scale: float) -> None:
    assert Reward(mode).divisor == scale
    assert Reward(mode, 3).divisor == 3


def test_the_reward_by_default_is_the_margin() -> None:
    assert Reward() == Reward("margin", None)
    for ruleset in (JOURNEY, BRAWL):
        assert Batch(ruleset, 1, seats=(0, 1, 2, 3)).reward == Reward()
