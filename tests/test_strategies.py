"""The shipped strategies play as they say, and what is no strategy is refused in one line."""

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from positions import BRAWL, JOURNEY, NOBLE, YARD, changed
from proposing import GREEDY, Watcher, facts_of, played_positions, propose_for
from retinue import cli
from retinue.agents.registry import AgentError, known_agents, make_agent
from retinue.agents.strategies import CANDIDATES
from retinue.envs.batch import Batch
from retinue.envs.facts import FACT_NAMES, pack_weights
from retinue.envs.game import engine, jit
from retinue.envs.game.events import SILENT
from retinue.envs.game.ruleset import MODES, Ruleset
from retinue.envs.game.state import GAME, Record
from retinue.envs.opponents import View
from retinue.envs.strategy_file import shipped_files, shipped_strategy
from retinue.evaluation.arena import first_share

MATCHES = 8
STRATEGIES = (
    "backward",
    "blockader",
    "forward",
    "greedy",
    "guardian",
    "hunter",
    "switch",
    "tactician",
    "yardstick",
)
BOTH = pytest.mark.parametrize("ruleset", [JOURNEY, BRAWL], ids=MODES)
pytestmark = pytest.mark.skipif(not jit.ENABLED, reason="plays whole matches")


# --- Files


def test_these_are_shipped() -> None:
    assert tuple(shipped_files()) == STRATEGIES
    assert set(STRATEGIES) <= {form.partition(":")[0] for form in known_agents()}


@BOTH
@pytest.mark.parametrize("name", STRATEGIES)
def test_every_shipped_strategy_plays_both_modes(name: str, ruleset: Ruleset) -> None:
    weights = shipped_strategy(name).weights_for(ruleset, name)
    assert weights
    agent = make_agent(f"{name}:candidates=8", ruleset)
    assert agent.name == f"{name}:candidates=8"
    game, _ = played_positions(ruleset)[0]
    view = View(np.array([game], GAME), np.zeros(1, np.uint64), ruleset)
    (turn,) = agent.choose(view, np.random.default_rng(0))
    assert engine.judge(game, ruleset.packed, turn) == engine.LEGAL


# --- How they play


class Habits:
    """What a strategy does in matches against three of another agent.

    Args:
        name: of the strategy.
        ruleset: the rules.
        other: the other agent.
    """

    def __init__(self, name: str, ruleset: Ruleset, other: str) -> None:
        watchers = [Watcher(make_agent(each, ruleset)) for each in (name, *[other] * 3)]
        batch = Batch(ruleset, MATCHES, seats="none", opponents=watchers, threads=1)
        batch.play_out(np.arange(MATCHES), np.tile(np.arange(4), (MATCHES, 1)))
        own, others = watchers[0], watchers[1:]
        self.rows = np.array(
            [
                facts_of(game, ruleset, turn)
                for games, turns in own.seen
                for game, turn in zip(games, turns, strict=True)
            ]
        )
        self.nobles_lost = sum(
            _captures_greens_noble(game, ruleset, turn)
            for other in others
            for games, turns in other.seen
            for game, turn in zip(games, turns, strict=True)
        )

    def mean(self, *names: str) -> float:
        """Return the sum of some facts in a turn, on average."""
        return float(self.rows[:, [FACT_NAMES.index(name) for name in names]].sum(axis=1).mean())

    def share(self, *names: str) -> float:
        """Return the share of some among all steps that it made on the loop."""
        steps = [f"{way}_{part}" for way in ("forward", "backward") for part in ("before", "past")]
        return self.mean(*names) / self.mean(*steps)


def _captures_greens_noble(game: Record, ruleset: Ruleset, turn: Record) -> bool:
    played = np.array([game], GAME)[0]
    assert engine.play(played, ruleset.packed, turn, SILENT) == engine.LEGAL
    return bool(played["position"][0, NOBLE] == YARD != game["position"][0, NOBLE])


@functools.cache
def habits(name: str, ruleset: Ruleset, other: str = "greedy") -> Habits:
    """Return a strategy's habits, each found out once."""
    return Habits(name, ruleset, other)


@BOTH
def test_forward_and_backward_keep_their_direction(ruleset: Ruleset) -> None:
    assert habits("forward", ruleset).share("backward_before", "backward_past") < 0.02
    assert habits("backward", ruleset).share("forward_before", "forward_past") < 0.02


@BOTH
def test_switch_turns_round_at_the_midpoint(ruleset: Ruleset) -> None:
    found = habits("switch", ruleset, "random")  # who leaves pieces the time to come so far
    assert found.mean("forward_before") > 10 * found.mean("backward_before")
    assert found.mean("backward_past") > 2 * found.mean("forward_past") + 1


@BOTH
def test_blockader_keeps_its_guards_in_stacks(ruleset: Ruleset) -> None:
    found = habits("blockader", ruleset)
    assert found.mean("stacked") > 1.5
    assert found.mean("stacked") > 3 * habits("greedy", ruleset).mean("stacked")
    assert found.mean("barrier") > 3 * habits("greedy", ruleset).mean("barrier")


@BOTH
def test_guardian_takes_care_of_its_noble(ruleset: Ruleset) -> None:
    careful, greedy = habits("guardian", ruleset), habits("greedy", ruleset)
    assert careful.nobles_lost < greedy.nobles_lost / 4
    assert careful.mean("setbacks") < greedy.mean("setbacks") / 4
    assert careful.mean("noble_regular") < 0.1


@BOTH
def test_hunter_captures(ruleset: Ruleset) -> None:
    found = habits("hunter", ruleset)
    captures = ("guards_captured", "nobles_captured")
    assert found.mean(*captures) > 1.05 * habits("forward", ruleset).mean(*captures)
    assert found.mean(*captures) > 2 * habits("guardian", ruleset).mean(*captures)
    assert found.mean("noble_regular") > 0.8


@BOTH
def test_greedy_takes_the_best_own_score(ruleset: Ruleset) -> None:
    agent = make_agent("greedy", ruleset)
    for game, _ in played_positions(ruleset)[:40]:
        view = View(np.array([game], GAME), np.zeros(1, np.uint64), ruleset)
        (turn,) = agent.choose(view, np.random.default_rng(0))
        found = propose_for(game, ruleset, GREEDY, CANDIDATES)
        scores = found.rows @ pack_weights(GREEDY)
        assert facts_of(game, ruleset, turn) @ pack_weights(GREEDY) == scores.max()


@BOTH
def test_strategies_are_better_than_chance_and_tactician_is_best(ruleset: Ruleset) -> None:
    for name, other, least in [
        ("greedy", "random", 0.8),
        ("yardstick:candidates=100,random=true", "random", 0.8),
        ("tactician", "greedy", 0.5),
        ("tactician", "hunter", 0.5),
    ]:
        agent, others = (make_agent(each, ruleset) for each in (name, other))
        assert first_share(agent, [others] * 3, ruleset, 10).value > least, name


# --- Refusals

SPECS = {
    "unknown fact": (
        "description: mine\njourney: {margn: 1}\n",
        "",
        "agent strategy: own.yaml: journey: there is no fact 'margn': did you mean margin?",
    ),
    "no number": (
        "description: mine\njourney: {margin: .nan}\n",
        "",
        "agent strategy: own.yaml: journey.margin: Input should be a finite number, not nan",
    ),
    "no number at all": (
        "description: mine\njourney: {margin: much}\n",
        "",
        "agent strategy: own.yaml: journey.margin: Input should be a valid number, not 'much'",
    ),
    "no weights for the mode": (
        "description: mine\nbrawl: {margin: 1}\n",
        "",
        "agent strategy own.yaml has no weights for journey",
    ),
    "no description": (
        "journey: {margin: 1}\n",
        "",
        "agent strategy: own.yaml: description: is missing",
    ),
    "unknown key": (
        "description: mine\njorney: {margin: 1}\n",
        "",
        "agent strategy: own.yaml: jorney: unknown key; did you mean journey?",
    ),
    "no YAML": (
        "a: [b",
        "",
        "agent strategy: own.yaml: not valid YAML: while parsing a flow sequence in "
        "\"<unicode string>\", line 1, column 4: a: [b ^ expected ',' or ']', but got "
        "'<stream end>' in \"<unicode string>\", line 1, column 6: a: [b ^",
    ),
    "no mapping": (
        "- 1\n",
        "",
        "agent strategy: own.yaml: must hold keys and values, not list",
    ),
    "too many": (
        "description: mine\njourney: {margin: 1}\n",
        ",candidates=129",
        "agent strategy own.yaml: candidates must be 2 to 128 unless they are drawn at random, "
        "not 129",
    ),
    "far too many": (
        "description: mine\njourney: {margin: 1}\n",
        ",candidates=1000001,random=true",
        "agent strategy: option candidates must be a whole number from 1 to 1000000, not '1000001'",
    ),
    "none at all": (
        "description: mine\njourney: {margin: 1}\n",
        ",candidates=0",
        "agent strategy: option candidates must be a whole number from 1 to 1000000, not '0'",
    ),
}


def refusal(spec: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what is said of an agent, by the library and in one line by the command."""
    with pytest.raises(AgentError) as caught:
        make_agent(spec, JOURNEY)
    capsys.readouterr()
    assert cli.main(["play", "--agents", f"{spec},racer,racer,racer"]) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"retinue: {caught.value}\n")
    return str(caught.value)


@pytest.mark.parametrize("case", SPECS)
def test_what_is_no_strategy_is_refused(
    case: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text, options, message = SPECS[case]
    monkeypatch.chdir(tmp_path)
    Path("own.yaml").write_text(text)
    assert refusal(f"strategy:file=own.yaml{options}", capsys) == message


def test_a_file_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    message = "agent strategy: nowhere.yaml: No such file or directory"
    assert refusal("strategy:file=nowhere.yaml", capsys) == message


def test_shipped_strategies_look_at_so_many_candidates(capsys: pytest.CaptureFixture[str]) -> None:
    message = "agent greedy: candidates must be 2 to 128 unless they are drawn at random, not 129"
    assert refusal("greedy:candidates=129", capsys) == message
    message = "agent greedy: candidates must be 2 to 128 unless they are drawn at random, not 1"
    assert refusal("greedy:candidates=1", capsys) == message
    make_agent("greedy:candidates=1,random=true", JOURNEY)
    make_agent("greedy:candidates=128", JOURNEY)
    make_agent("greedy:candidates=129,random=true", JOURNEY)


def test_tuned_weights_are_for_the_shipped_rules_alone() -> None:
    other = changed(JOURNEY, blockade_penalty=3)
    with pytest.raises(AgentError) as caught:
        make_agent("tactician", other)
    assert str(caught.value) == (
        f"agent tactician was tuned for rules {JOURNEY.digest} and {BRAWL.digest}, these are "
        f"journey with rules {other.digest}: tune weights for them "
        "(retinue tune --rules FILE --out FILE)"
    )
    make_agent("greedy", other)


def test_a_strategy_plays_under_the_rules_that_it_was_made_for() -> None:
    agent: Any = make_agent("greedy", JOURNEY)
    view = View(np.zeros(1, GAME), np.zeros(1, np.uint64), BRAWL)
    with pytest.raises(ValueError, match="agent greedy was made for journey with rules"):
        agent.choose(view, np.random.default_rng(0))


def test_a_strategy_of_ones_own_plays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    weights = shipped_strategy("greedy").weights_for(JOURNEY, "greedy")
    text = "\n".join(f"  {name}: {weight}" for name, weight in weights.items())
    Path("own.yaml").write_text(f"description: mine\njourney:\n{text}\n")
    own = make_agent("strategy:file=own.yaml", JOURNEY)
    games = np.array([game for game, _ in played_positions(JOURNEY)[:10]], GAME)
    view = View(games, np.zeros(10, np.uint64), JOURNEY)
    turns = [
        agent.choose(view, np.random.default_rng(0))
        for agent in (own, make_agent("greedy", JOURNEY))
    ]
    assert turns[0].tobytes() == turns[1].tobytes()
