"""The PettingZoo environment: what `last` pays, to whom and when, and how a match ends."""

from typing import Any

import pytest
from gymnasium.utils.env_checker import data_equivalence

from aec_tables import AGENTS, go_on, joined, played, short
from positions import HOME, JOURNEY, NOBLE, changed
from retinue.envs.actions import ENCODINGS
from retinue.envs.aec_env import env
from retinue.envs.game.ruleset import MODES
from retinue.envs.game.state import CHOOSE, new_game, state_from_json, state_to_json
from retinue.envs.rewards import REWARD_MODES

BY_PLACE = {1: 1.0, 2: 1 / 3, 3: -1 / 3, 4: -1.0}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("reward", REWARD_MODES)
def test_over_a_match_rewards_sum_to_the_final_value(mode: str, reward: str) -> None:
    table = env(mode, reward=reward)
    paid = dict.fromkeys(AGENTS, 0.0)
    firsts: dict[str, float] = {}
    rows = played(table, 2)
    for agent, _, given, *_ in rows:
        paid[agent] += given
        firsts.setdefault(agent, given)
    assert firsts == dict.fromkeys(AGENTS, 0.0), "first paid at the second decision"
    results = {row[0]: row[-1] for row in rows[-4:]}
    totals = {agent: told["total"] for agent, told in results.items()}
    for agent, told in results.items():
        others = sum(totals.values()) - totals[agent]
        final = {
            "score": totals[agent] / 100,
            "margin": (totals[agent] - others / 3) / 100,
            "place": BY_PLACE[told["place"]],
        }[reward]
        assert paid[agent] == pytest.approx(final, rel=0, abs=1e-9)


def almost_over(**arguments: Any) -> Any:
    """Return a table where Red and Yellow are Home and the others have but a Noble to bring in.

    No dice are received. Green needs one step, Blue two; Green is to move.
    """
    rules = changed(JOURNEY, dice=[[12, 0]])
    state = state_to_json(new_game(rules))
    state["position"] = [[HOME] * 5 for _ in AGENTS]
    state["position"][0][NOBLE], state["position"][2][NOBLE] = HOME - 1, HOME - 2
    state["turns_taken"] = [1] * 4
    state["combat"] = [50, 70, 90, 20]
    table = env(rules=rules, encoding="turn", **arguments)
    table.reset(seed=1)
    table.unwrapped.batch.games[0] = state_from_json(state, rules)
    table.unwrapped.batch.games["phase"] = CHOOSE
    return table


@pytest.mark.parametrize("reward", ["score", "margin"])
def test_seats_that_are_home_stay_and_are_paid_at_the_end(reward: str) -> None:
    table = almost_over(reward=reward, reward_scale=1)
    steps = [("green", 0), ("blue", 1), ("green", 1), ("blue", 0), ("blue", 0), ("blue", 1)]
    totals, due, value = [[50, 70, 90, 20]], [], dict.fromkeys(AGENTS, 0.0)
    for agent, noble in steps:
        assert table.agent_selection == agent
        assert table.agents == AGENTS
        assert not any(table.terminations.values())
        table.step([0, noble] + [0] * 12)
        game = table.unwrapped.batch.games[0]
        totals.append((game["progression"].sum(axis=1) + game["combat"] + game["bonus"]).tolist())
        due.append(dict(table.rewards))
    assert table.terminations == dict.fromkeys(AGENTS, True)
    assert totals[3][0] > totals[2][0], "Green's arrival counts"
    assert totals[6][2] > totals[5][2], "so does Blue's"
    for number, paid in enumerate(due, 1):
        now = totals[number]
        worth = [own - (sum(now) - own) / 3 * (reward == "margin") for own in now]
        to_act = AGENTS if number == 6 else [steps[number][0]]
        expected = {
            agent: worth[seat] - value[agent] if agent in to_act else 0.0
            for seat, agent in enumerate(AGENTS)
        }
        assert paid == pytest.approx(expected, rel=0, abs=1e-9)
        value = {agent: value[agent] + paid[agent] for agent in AGENTS}
    finals = {row[0]: row[2] for row in go_on(table)}
    assert finals == due[-1], "the dead steps give the final rewards"


# --- The end


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_after_the_end_come_the_dead_steps(encoding: str) -> None:
    table = env(rules=short("journey"), encoding=encoding)
    *rows, last, second, third, fourth = played(table, 3)
    ends = [last, second, third, fourth]
    assert [row[0] for row in ends] == ["yellow", "green", "red", "blue"]
    assert last[0] == rows[-1][0], "it acted last"
    assert not any(row[3] for row in rows)
    for _, observation, _, terminated, truncated, told in ends:
        assert (terminated, truncated) == (True, False)
        assert not joined(observation["action_mask"]).any()
        assert told.keys() == {"illegal_action", "total", "place"}
    assert sorted(row[-1]["place"] for row in ends)[0] == 1
    assert all((row[-1]["total"], row[-1]["place"]) == (0, 0) for row in rows)
    assert table.agents == []
    assert data_equivalence(table.observe("blue"), fourth[1]), "the last board can still be seen"
    with pytest.raises(RuntimeError, match="call reset first"):
        table.unwrapped.step(None)
    table.reset()
    assert table.agents == AGENTS
    assert not any(table.terminations.values())


def test_a_dead_agent_takes_only_none() -> None:
    table = env(rules=short("journey", 40), encoding="turn")
    table.reset(seed=1)
    for _ in AGENTS:
        table.step([0] * 14)
    with pytest.raises(ValueError, match="the only valid action is None"):
        table.step([0] * 14)
    assert table.agents == AGENTS
