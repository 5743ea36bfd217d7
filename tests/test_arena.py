"""Matches between agents: what is played, the same however it is played, and its records."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from positions import BRAWL, JOURNEY, changed
from retinue.agents.base import CompiledAgent
from retinue.agents.registry import make_agent
from retinue.agents.scripted import choose_racer, choose_random
from retinue.envs.batch import Batch
from retinue.envs.game import jit
from retinue.envs.game.dice import draw
from retinue.envs.game.engine import IllegalTurn
from retinue.envs.game.state import TURN
from retinue.envs.opponents import View
from retinue.envs.parallel import MAX_THREADS
from retinue.envs.seating import NONE
from retinue.evaluation.arena import (
    ArenaError,
    Matches,
    first_share,
    join,
    play_matches,
    rotated,
    rotations,
    stream_matches,
)
from retinue.evaluation.report import standings

SHORT = changed(JOURNEY, clock_seconds=240)
"""Matches of 24 turns."""
LINE_UP = ("racer", "random", "spread", "random")
MATCHES = 40 if jit.ENABLED else 6
ONLY_COMPILED = pytest.mark.skipif(not jit.ENABLED, reason="too many matches for plain Python")
ARRAYS = ("totals", "places", "progression", "combat", "bonus", "decisions", "finish_orders")


def agents(*names: str) -> list[Any]:
    return [make_agent(name, JOURNEY) for name in names]


def same(one: Matches, other: Matches) -> bool:
    names = (*ARRAYS, "seeds", "seating")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


class Asked:
    """An agent that has to be asked, and says how often it was."""

    compiled = None

    def __init__(self, name: str) -> None:
        self.name = f"asked {name}"
        self.asked = 0
        self._agent = make_agent(name, JOURNEY)

    def choose(self, view: View, rng: np.random.Generator) -> Any:
        self.asked += len(view.games)
        return self._agent.choose(view, rng)


# --- What comes out


@pytest.mark.parametrize("ruleset", [SHORT, changed(BRAWL, clock_seconds=240)], ids=["J", "B"])
def test_numbers_fit_together(ruleset: Any) -> None:
    played = play_matches(agents(*LINE_UP), ruleset, range(MATCHES))
    assert len(played) == MATCHES
    assert played.names == LINE_UP
    assert (played.seating == np.arange(4)).all()
    assert (played.seeds == np.arange(MATCHES)).all()
    assert (played.totals == played.progression + played.combat + played.bonus).all()
    better = played.totals[:, None, :] > played.totals[:, :, None]
    assert (played.places == 1 + better.sum(axis=2)).all()
    assert (played.decisions.sum(axis=1) == 24).all()
    assert played.first_shares.sum(axis=1) == pytest.approx(1)
    assert played.turns is None


@ONLY_COMPILED
def test_finishing_orders() -> None:
    played = play_matches(agents(*["racer"] * 4), changed(JOURNEY, clock_seconds=10**5), range(50))
    assert {tuple(sorted(order)) for order in played.finish_orders.tolist()} == {(0, 1, 2, 3)}
    bonuses = np.take_along_axis(played.bonus, played.finish_orders, axis=1)
    assert (bonuses == [300, 200, 100, 50]).all()
    some = play_matches(agents(*LINE_UP), JOURNEY, range(50))
    finished = some.finish_orders != -1
    assert (finished.sum(axis=1) == (some.bonus > 0).sum(axis=1)).all()
    assert finished.any()
    assert not finished.all()


def test_seeds_are_the_only_difference() -> None:
    line_up = agents(*LINE_UP)
    once = play_matches(line_up, SHORT, [5, 6, 5, 7])
    assert once.totals[0].tolist() == once.totals[2].tolist()
    assert len({tuple(row) for row in once.totals.tolist()}) == 3
    assert same(once, play_matches(line_up, SHORT, [5, 6, 5, 7]))


def test_seating() -> None:
    line_up = agents("random", "racer", "spread", "racer", "random")
    seating = [[1, 0, 2, 4], [4, 4, 4, 4]]
    played = play_matches(line_up, SHORT, [3, 4], seating=seating)
    first = play_matches(agents("racer", "random", "spread", "random"), SHORT, [3])
    second = play_matches(agents(*["random"] * 4), SHORT, [4])
    assert np.array_equal(played.totals, join([first, second]).totals)
    assert np.array_equal(played.seating, seating)
    with pytest.raises(ValueError, match="not every agent has one seat"):
        played.by_agent(played.totals)


# --- The same however it is played


def test_threads_and_matches_at_once_change_nothing() -> None:
    line_up = agents(*LINE_UP)
    expected = play_matches(line_up, SHORT, range(MATCHES))
    for threads in {1, MAX_THREADS}:
        for at_once in (1, 5, MATCHES):
            played = play_matches(line_up, SHORT, range(MATCHES), threads, at_once=at_once)
            assert same(played, expected)


def test_asked_agents_play_like_compiled_ones() -> None:
    expected = play_matches(agents(*LINE_UP), SHORT, range(MATCHES))
    for asked in ([0], [1, 2], [0, 1, 2, 3]):
        line_up = agents(*LINE_UP)
        for seat in asked:
            line_up[seat] = Asked(LINE_UP[seat])
        played = play_matches(line_up, SHORT, range(MATCHES), at_once=4)
        assert same(played, expected)
        assert sum(line_up[seat].asked for seat in asked) == played.decisions[:, asked].sum()


def test_an_asked_agent_is_asked_for_many_games_at_once() -> None:
    calls = []

    class Counted(Asked):
        def choose(self, view: View, rng: np.random.Generator) -> Any:
            calls.append(len(view.games))
            return super().choose(view, rng)

    play_matches([Counted("racer"), *agents("random", "random", "random")], SHORT, range(8))
    assert calls == [8] * 6


def test_kept_turns_are_those_played() -> None:
    line_up = [Asked("racer"), *agents("random", "spread", "racer")]
    played = play_matches(line_up, SHORT, range(6), keep_turns=True, at_once=4)
    assert same(played, play_matches(line_up, SHORT, range(6)))
    assert played.turns is not None
    assert [len(turns) for turns in played.turns] == [24] * 6
    assert {turns.dtype for turns in played.turns} == {TURN}


def test_plain_python_plays_the_same_match(tmp_path: Path) -> None:
    """``NUMBA_DISABLE_JIT=1`` runs the same functions uncompiled."""
    program = """
import json, sys
from retinue.agents.registry import make_agent
from retinue.envs.game.ruleset import load_ruleset
from retinue.evaluation.arena import play_matches
rules = load_ruleset(sys.argv[1])
line_up = [make_agent(name, rules) for name in sys.argv[2:]]
played = play_matches(line_up, rules, [11, 2**53 - 1])
print(json.dumps([played.totals.tolist(), played.combat.tolist(), played.decisions.tolist()]))
"""
    rules = tmp_path / "short.yaml"
    rules.write_text(json.dumps(SHORT.model_dump(mode="json")))
    done = subprocess.run(
        [sys.executable, "-c", program, str(rules), *LINE_UP],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    played = play_matches(agents(*LINE_UP), SHORT, [11, 2**53 - 1])
    expected = [played.totals.tolist(), played.combat.tolist(), played.decisions.tolist()]
    assert json.loads(done.stdout) == expected


# --- Blocks and strength


def test_rotations() -> None:
    seeds, seating = rotations(2, 2**53 - 1)
    assert seeds == [2**53 - 1] * 4 + [0] * 4
    assert seating.tolist() == 2 * [[0, 1, 2, 3], [3, 0, 1, 2], [2, 3, 0, 1], [1, 2, 3, 0]]


def test_every_agent_has_every_seat_with_the_same_dice() -> None:
    blocks = 2
    played = rotated(agents("racer", "random", "spread", "racer"), SHORT, blocks, seed=9)
    for match, seating in enumerate(rotations(blocks, 9)[1].tolist()):
        names = [("racer", "random", "spread", "racer")[agent] for agent in seating]
        alone = play_matches(agents(*names), SHORT, [9 + match // 4])
        assert played.totals[match].tolist() == alone.totals[0].tolist()
        by_agent = played.by_agent(played.totals)[match]
        assert [by_agent[agent] for agent in seating] == alone.totals[0].tolist()


@ONLY_COMPILED
@pytest.mark.parametrize("name", ["racer", "spread"])
def test_racing_beats_random(name: str) -> None:
    racing, rival = agents(name, "random")
    share = first_share(racing, [rival] * 3, JOURNEY, 50)
    assert share.samples == 50
    assert share.value >= 0.9
    assert share.low > 0.85
    reverse = first_share(rival, [racing] * 3, JOURNEY, 50)
    assert reverse.high < 0.25


@ONLY_COMPILED
@pytest.mark.parametrize("ruleset", [JOURNEY, BRAWL], ids=["journey", "brawl"])
@pytest.mark.parametrize("policy", [choose_random, choose_racer])
def test_four_of_a_kind_rate_equal(ruleset: Any, policy: Any) -> None:
    copies = [CompiledAgent(f"copy {index}", policy) for index in range(4)]
    rows = standings(rotated(copies, ruleset, 100), rotated=True)
    assert [row.agent for row in rows] == [copy.name for copy in copies]
    for row in rows:
        assert 0.25 in row.first
        assert row.place == pytest.approx(rows[0].place)


# --- What is refused


@pytest.mark.parametrize(
    ("names", "arguments", "message"),
    [
        (LINE_UP[:3], {}, "takes 4 agents, not 3"),
        ((*LINE_UP, "racer"), {}, "takes 4 agents, not 5"),
        (LINE_UP, {"seeds": []}, "at least one match"),
        (LINE_UP, {"seeds": [0, -1]}, r"seed -1 is not in 0 to 2\*\*53 - 1"),
        (LINE_UP, {"seeds": [2**53]}, "seed 9007199254740992 is not in"),
        (LINE_UP, {"threads": 0}, f"threads must be 1 to {MAX_THREADS} here, not 0"),
        (LINE_UP, {"seating": [[0, 1, 2, 4]]}, "seating must be 0 to 3"),
        (LINE_UP, {"seating": [[0, 1, 2, 3]] * 2}, r"of shape \(1, 4\), not \(2, 4\)"),
        ((), {"seating": [[0, 0, 0, 0]]}, "1 to 64 agents, not 0"),
    ],
)
def test_what_cannot_be_played(names: Any, arguments: dict[str, Any], message: str) -> None:
    arguments = {"seeds": [0], **arguments}
    with pytest.raises(ArenaError, match=message):
        stream_matches(agents(*names), SHORT, **arguments)


def test_a_batch_plays_out_only_what_agents_play_alone() -> None:
    line_up = agents(*LINE_UP)
    with pytest.raises(ValueError, match='only with seats="none"'):
        Batch(SHORT, 2, seats=0, opponents=line_up).play_out([1, 2], range(4))
    with pytest.raises(ValueError, match="opponents are needed"):
        Batch(SHORT, 2, seats=NONE)
    batch = Batch(SHORT, 2, seats=NONE, opponents=line_up)
    with pytest.raises(ValueError, match="control must be 0 to 3"):
        batch.play_out([1, 2], [0, 1, 2, 4])
    batch.play_out([1, 2], range(4))
    assert batch.terminated.all()
    assert not batch.seat_rewards.any(), "nobody is there to be rewarded"


def test_a_block_takes_four_agents() -> None:
    with pytest.raises(ArenaError, match="a block takes 4 agents, not 2"):
        rotated(agents("racer", "random"), SHORT, 1)


def cheat(game: Any, rules: Any, key: Any, turn: Any, memory: int) -> int:
    turn.noble_steps = 7 if draw(key, 0, 8) == 0 else 6
    return 0


@pytest.mark.parametrize("keep_turns", [False, True])
def test_an_illegal_turn_names_the_agent(keep_turns: bool) -> None:
    line_up = [*agents("racer", "random", "spread"), CompiledAgent("cheat", cheat)]
    with pytest.raises(IllegalTurn, match=r"agent cheat .* Noble steps must be 0 to 6, not 7"):
        play_matches(line_up, SHORT, range(8), keep_turns=keep_turns)


def test_an_answer_of_another_form_names_the_agent() -> None:
    class Careless(Asked):
        def choose(self, view: View, rng: np.random.Generator) -> Any:
            return super().choose(view, rng)[:-1]

    line_up = [Careless("racer"), *agents("racer", "random", "spread")]
    with pytest.raises(ValueError, match=r"agent asked racer must return a TURN array of shape"):
        play_matches(line_up, SHORT, range(8))
