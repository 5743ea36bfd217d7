"""The PettingZoo environment: the Gymnasium one's match, seen by four agents in turn."""

import copy
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from aec_tables import AGENTS, RULES, digest, go_on, joined, played, short
from playing import END, Dealer, as_text, ask
from positions import BRAWL, JOURNEY
from retinue.agents.registry import make_agent
from retinue.envs.actions import ENCODINGS
from retinue.envs.aec_env import RetinueAECEnv, env, raw_env
from retinue.envs.common import OBSERVATIONS
from retinue.envs.game.ruleset import MODES
from retinue.envs.gym_env import RetinueEnv
from retinue.envs.rewards import REWARD_MODES

EVERY_MODE = pytest.mark.parametrize("mode", MODES)
EVERY_ENCODING = pytest.mark.parametrize("encoding", ENCODINGS)
EVERY_REWARD = pytest.mark.parametrize("reward", REWARD_MODES)


@pytest.fixture(autouse=True)
def _no_display(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")


@EVERY_ENCODING
def test_spaces_are_each_agent_s_own_and_stay(encoding: str) -> None:
    table = env(encoding=encoding)
    assert table.possible_agents == AGENTS
    for space_of in (table.observation_space, table.action_space):
        assert len({id(space_of(agent)) for agent in AGENTS}) == 4
        assert all(space_of(agent) is space_of(agent) for agent in AGENTS)
    assert table.action_space("red") == RetinueEnv(encoding=encoding).action_space
    for agent, observation, *_ in played(table, 1):
        assert table.observation_space(agent).contains(observation)


def test_what_it_says_of_itself() -> None:
    for mode in MODES:
        table = env(mode)
        assert isinstance(table, OrderEnforcingWrapper)
        assert isinstance(table.unwrapped, RetinueAECEnv)
        assert table.unwrapped.ruleset == RULES[mode]
        assert table.metadata["name"] == str(table) == f"retinue_{mode}_v0"
        assert table.metadata["render_modes"] == ["ansi", "rgb_array", "human"]
        assert table.metadata["is_parallelizable"] is False


# --- Seeds


@pytest.mark.parametrize(("mode", "encoding"), [("journey", "turn"), ("brawl", "steps")])
def test_250_matches_are_the_same_again_and_differ_by_seed(mode: str, encoding: str) -> None:
    def matches() -> list[str]:
        table = env(mode, rules=short(mode, 80), encoding=encoding)
        return [digest(played(table, seed)) for seed in range(250)]

    first = matches()
    assert first == matches()
    assert len(set(first)) == 250


@EVERY_MODE
@EVERY_ENCODING
def test_a_seed_makes_the_same_matches_and_no_seed_another_one(mode: str, encoding: str) -> None:
    seeds = [5, None, None, 6, None]
    table, again, unseeded, other = (env(mode, encoding=encoding) for _ in range(4))
    first = [digest(played(table, seed)) for seed in seeds]
    assert first == [digest(played(again, seed)) for seed in seeds]
    loose = [digest(played(each, None)) for each in (unseeded, other)]
    assert len({*first, *loose}) == 7


def test_a_reset_in_the_middle_starts_a_fresh_match() -> None:
    table = env(encoding="turn")
    table.reset(seed=1)
    for _ in range(9):
        table.step([1, 12] + [4] * 12)  # illegal, and some are paid
    table.reset(seed=1)
    assert table.agent_selection == "green"
    assert table.rewards == dict.fromkeys(AGENTS, 0.0)
    assert not any(told["illegal_action"] for told in table.infos.values())
    assert digest(go_on(table)) == digest(played(env(encoding="turn"), 1))


# --- The same as the Gymnasium environment


def check_alike(
    table: Any, single: RetinueEnv, seed: int | None, choose: Callable[[Any], Any]
) -> list[str]:
    """Play the same match in both and compare everything; return the agents that acted."""
    table.reset(seed=seed)
    observation, info = single.reset(seed=seed)
    reward, terminated = 0.0, False
    acted: list[str] = []
    while True:
        agent = AGENTS[info["seat"]]
        seen, paid, ended, cut, _ = table.last()
        assert table.agent_selection == agent
        assert data_equivalence(seen["observation"], observation)
        assert (paid, ended, cut) == (reward, terminated, False)
        assert table.rewards == dict(zip(AGENTS, info["rewards"].tolist(), strict=True))
        assert table.terminations == dict.fromkeys(AGENTS, terminated)
        if terminated:
            assert not joined(seen["action_mask"]).any()
            told = [(told["total"], told["place"]) for told in table.infos.values()]
            assert told == list(zip(info["totals"], info["places"], strict=True))
            return acted
        assert data_equivalence(seen["action_mask"], info["action_mask"])
        action = choose(single)
        table.step(action)
        observation, reward, terminated, _, info = single.step(action)
        assert table.infos[agent]["illegal_action"] is info["illegal_action"]
        acted.append(agent)


@EVERY_MODE
@EVERY_ENCODING
@EVERY_REWARD
def test_it_is_the_gymnasium_environment_s_match(mode: str, encoding: str, reward: str) -> None:
    observation = OBSERVATIONS[reward == "score"]
    made = {"encoding": encoding, "reward": reward, "observation": observation, "reward_scale": 7}
    table, single = env(mode, **made), RetinueEnv(mode, **made)  # type: ignore[arg-type]
    dealer, chance = Dealer(single.batch.encoding, 8, [0]), np.random.default_rng(8)
    single.action_space.seed(8)

    def choose(single: RetinueEnv) -> Any:
        if chance.random() < 0.1:
            return single.action_space.sample()  # often illegal
        return dealer(single.action_masks()[None])[0]

    for seed in (4, None):
        acted = check_alike(table, single, seed, choose)
        assert set(acted) == set(AGENTS)


def test_the_same_when_seats_finish_early() -> None:
    racer, last_ones = make_agent("racer", JOURNEY), set()
    table, single = (make(encoding="turn") for make in (env, RetinueEnv))
    for seed in (1, 2, 13):
        acted = check_alike(table, single, seed, lambda single: ask(racer, single.batch)[0])
        assert single.game["finished"] == 4
        last_ones.add(len(set(acted[-4:])))
    assert last_ones == {1, 2}, "one or two seats were left, several turns long"


# --- Observing


def test_every_agent_can_look_at_any_time() -> None:
    table, plain = (env(rules=short("journey", 600)) for _ in range(2))
    layout, dealer = table.unwrapped.layout, Dealer(table.unwrapped.batch.encoding, 3, [0])

    def look(masks: Any) -> Any:
        seen = {agent: table.observe(agent) for agent in AGENTS}
        parts = {agent: layout.split(seen[agent]["observation"]) for agent in AGENTS}
        for seat, agent in enumerate(AGENTS):
            assert table.observation_space(agent).contains(seen[agent])
            for name in ("scores", "progression", "roll_store", "exit_credits", "midpoint"):
                turned = np.roll(parts["green"][name], -seat, axis=0)
                assert np.array_equal(parts[agent][name], turned)
            if agent != table.agent_selection:
                assert not seen[agent]["action_mask"].any()
                assert not parts[agent]["plan"].any(), "nobody else's draft is shown"
        return dealer(masks)

    rows = played(table, 6, look)
    assert digest(rows) == digest(played(plain, 6)), "looking changes nothing"


@EVERY_ENCODING
@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_what_was_returned_is_never_overwritten(encoding: str, observation: str) -> None:
    table = env(rules=short("brawl"), mode="brawl", encoding=encoding, observation=observation)
    dealer, shown, texts = Dealer(table.unwrapped.batch.encoding, 5, [0]), [], []

    def keep(masks: Any) -> Any:
        others = [table.observe(agent) for agent in AGENTS]
        shown.append((table.last(), others, table.rewards, table.terminations))
        texts.append(as_text(shown[-1]))
        return dealer(masks)

    for seed in (1, None):
        played(table, seed, keep)
    assert [as_text(each) for each in shown] == texts
    assert len(set(texts)) == len(texts) >= 24


# --- Actions


def test_an_illegal_action_is_told_and_does_no_harm() -> None:
    table = env()
    table.reset(seed=2)
    table.step(END)  # before the plan: a passive plan
    assert table.agent_selection == "green"
    assert table.last()[-1]["illegal_action"] is True
    table.step(3)  # a plan again: the end of the turn
    assert table.agent_selection == "red"
    assert table.infos["green"]["illegal_action"] is True
    assert table.last()[-1]["illegal_action"] is False
    assert table.unwrapped.batch.games["turns_taken"].tolist() == [[1, 0, 0, 0]]


WRONG: dict[str, list[Any]] = {
    "steps": [51, -1, 0.5, "3", None, [3], True],
    "turn": [3, None, [0] * 13, [0.0] * 14, [2] + [0] * 13, [0] * 13 + [-1], [[0] * 14]],
    "candidates": [64, -1, 0.5, "3", None, [3], True],
}


@EVERY_ENCODING
@pytest.mark.parametrize("make", [env, raw_env])
def test_what_is_no_action_is_refused_and_changes_nothing(encoding: str, make: Any) -> None:
    table = make(encoding=encoding, rules=short("journey"))
    table.reset(seed=2)
    table.step([1] + [0] * 13 if encoding == "turn" else 0)

    def state() -> tuple[Any, ...]:
        kept = table.unwrapped.batch.save_matches()
        return table.agent_selection, as_text(table.last()), table.rewards, table.infos, kept

    before = copy.deepcopy(state())
    for action in WRONG[encoding]:
        with pytest.raises(ValueError, match=r"action must be in|actions must be integers"):
            table.step(action)
        assert state() == before


def test_a_refusal_says_what_would_be_right() -> None:
    table = env()
    table.reset(seed=1)
    with pytest.raises(ValueError, match=re.escape("green's action must be in Discrete(51): 51")):
        table.step(51)


def test_before_the_first_reset_no_action_is_taken() -> None:
    with pytest.raises(RuntimeError, match="call reset first"):
        raw_env().step(0)
    with pytest.raises(AssertionError, match="reset"):
        env().step(0)
    with pytest.raises(AttributeError, match="before reset"):
        env().last()


# --- Options and arguments


def test_there_are_no_options() -> None:
    table = env(rules=short("journey"), encoding="turn")
    before = digest(played(table, 1))
    for options in ({"seats": 0}, {"opponents": ["racer"]}):
        with pytest.raises(ValueError, match=f"takes no {next(iter(options))}: agents act for all"):
            table.reset(seed=2, options=options)
    with pytest.warns(UserWarning, match="unknown option 'seat' is ignored"):
        table.reset(seed=1, options={"seat": 0})
    assert digest(go_on(table)) == before
    table.reset(seed=1, options={})
    assert digest(go_on(table)) == before


REFUSED: dict[str, dict[str, Any]] = {
    "unknown mode 'yourney': use journey, brawl or a .yaml": {"mode": "yourney"},
    "these are the rules of brawl, but the environment is journey": {"rules": BRAWL},
    "unknown encoding 'words': use steps, turn, candidates": {"encoding": "words"},
    "unknown observation 'box': use flat or dict": {"observation": "box"},
    "unknown render_mode 'text': use ansi, rgb_array, human": {"render_mode": "text"},
    "unknown reward 'wins': use score, margin, place": {"reward": "wins"},
    "reward scale must be a number above 0, not -1": {"reward_scale": -1},
}


@pytest.mark.parametrize("message", REFUSED)
def test_arguments_that_cannot_be_are_refused(message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        env(**REFUSED[message])


# --- Copies


@EVERY_ENCODING
@pytest.mark.parametrize("make", [env, raw_env])
@pytest.mark.parametrize("decisions", [0, 40])
def test_a_copy_in_the_middle_of_a_match_goes_on_alike(
    encoding: str, make: Any, decisions: int
) -> None:
    table = make(encoding=encoding, rules=short("journey", 600))
    table.reset(seed=8)
    dealer = Dealer(table.unwrapped.batch.encoding, 1, [0])
    for _ in range(decisions):
        table.step(dealer(joined(table.last()[0]["action_mask"])[None])[0])
    twins = [copy.deepcopy(table), pickle.loads(pickle.dumps(table))]
    shown = [[digest(go_on(each)), digest(played(each, None))] for each in (*twins, table)]
    assert shown[0] == shown[1] == shown[2]


# --- Drawing


def test_the_board_as_text_shows_the_draft_and_the_last_move() -> None:
    table = env(render_mode="ansi")
    table.reset(seed=1)
    texts = [table.render()]
    for action in (3, END):
        table.step(action)
        texts.append(table.render())
    assert all(name in texts[0].lower() for name in AGENTS)
    assert len(set(texts)) == 3
    assert table.unwrapped.batch.last_move(0) is not None
    table.close()


def test_the_board_as_a_picture_and_in_a_window() -> None:
    table = env(render_mode="rgb_array", encoding="turn")
    table.reset(seed=1)
    before = table.render()
    table.step([0, 6] + [0] * 12)
    assert (before.dtype, before.ndim) == (np.uint8, 3)
    assert not np.array_equal(before, table.render())
    window = env(render_mode="human", encoding="turn")
    window.reset(seed=1)
    window.step([0] * 14)
    assert window.render() is None
    for each in (table, window):
        each.close()


def test_drawing_without_a_mode_warns() -> None:
    table = env()
    table.reset(seed=1)
    with pytest.warns(UserWarning, match=re.escape("pass one to env()")):
        assert table.render() is None
