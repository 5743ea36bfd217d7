"""The observation: its layout, every value of it, and that all seats see the same."""

import math
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from playing import (
    END,
    Dealer,
    Draft,
    any_position,
    any_turn,
    considered,
    step_actions,
    turn_action,
    turned,
)
from positions import (
    BRAWL,
    G1,
    G2,
    G3,
    G4,
    JOURNEY,
    NOBLE,
    RED,
    YELLOW,
    Scene,
    any_state,
    changed,
)
from referee import CASTLES, Referee
from retinue.envs import document
from retinue.envs.actions import ENCODINGS, Encoding
from retinue.envs.batch import Batch
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import CHOOSE, GAME, MAX_POINTS, Record, state_from_json, state_to_json
from retinue.envs.observation import MAX_SIZE, OBSERVATION_VERSION

DOCUMENT = Path(__file__).parents[1] / "docs" / "environment.md"
LARGEST = changed(
    JOURNEY, home_path_tiles=20, store_capacity=36, dice=[[20, 16], [36, 0]], max_credits=100
)
SMALLEST = changed(
    BRAWL, home_path_tiles=1, store_capacity=1, dice=[[0, 1], [1, 0]], castles_protect=False
)
RULESETS = {"journey": JOURNEY, "brawl": BRAWL, "largest": LARGEST, "smallest": SMALLEST}
EVERY_RULESET = pytest.mark.parametrize("ruleset", RULESETS.values(), ids=RULESETS)
EVERY_ENCODING = pytest.mark.parametrize("encoding", ENCODINGS)


def close(found: Any, expected: Any, name: str = "") -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6, err_msg=name)


# --- Layout


@EVERY_RULESET
@EVERY_ENCODING
def test_sections_cover_the_vector_once(ruleset: Ruleset, encoding: str) -> None:
    layout = Encoding(encoding, ruleset).layout()
    covered = np.zeros(layout.size, int)
    for section in layout.sections:
        assert section.size == math.prod(section.shape) > 0
        assert covered[section.slice].size == section.size
        covered[section.slice] += 1
    assert covered.tolist() == [1] * layout.size
    starts = [section.start for section in layout.sections]
    assert starts == sorted(starts)
    assert layout.sections[-1].start == 281
    if encoding == "candidates":
        assert layout.size == 281 + 64 * 48
    else:
        assert layout.size <= MAX_SIZE == 320
    assert layout.flat_space().shape == (layout.size,)
    assert layout["clock"].slice == slice(280, 281)
    assert layout["board"].shape == (4, 5, 7)


def test_only_the_last_section_depends_on_encoding_and_rules() -> None:
    layouts = [Encoding(name, rules).layout() for name in ENCODINGS for rules in RULESETS.values()]
    assert len({layout.sections[:-1] for layout in layouts}) == 1
    last = [(layout.sections[-1].name, layout.sections[-1].shape) for layout in layouts]
    rolls = [("rolls", (size,)) for size in (12, 17, 36, 1)]
    assert last == [("plan", (14,))] * 4 + rolls + [("candidates", (64, 48))] * 4


@EVERY_ENCODING
def test_split_gives_the_parts_and_nothing_is_lost(encoding: str) -> None:
    layout = Encoding(encoding, BRAWL).layout()
    flat = np.random.default_rng(1).random((3, 2, layout.size), np.float32)
    parts = layout.split(flat)
    assert list(parts) == [section.name for section in layout.sections]
    for section in layout.sections:
        assert parts[section.name].shape == (3, 2, *section.shape)
    rows = [part.reshape(3, 2, -1) for part in parts.values()]
    assert np.array_equal(np.concatenate(rows, axis=-1), flat)
    alone = layout.split(flat[1, 1])
    assert np.array_equal(alone["board"], parts["board"][1, 1])
    assert alone["checkpoints"][2, 3] == flat[1, 1, layout["checkpoints"].start + 2 * 12 + 3]


# --- Values


def way_home(position: int, midpoint: bool, forward: bool, home: int) -> int:
    """Steps to Home in one direction, counted by making them (rules 2)."""
    steps = 0
    while position != home:
        midpoint = midpoint or position == 34
        if position == -1:
            position = 0
        elif position >= 68:
            position += 1
        elif midpoint and position == (63 if forward else 0):
            position = 68
        else:
            position = (position + (1 if forward else -1)) % 68
        steps += 1
    return steps


def expected_sections(game: Record, ruleset: Ruleset) -> dict[str, Any]:
    """All sections but the last, worked out from the documentation's words."""
    state, viewer, home = state_to_json(game), int(game["seat"]), ruleset.home
    order = [(viewer + turn) % 4 for turn in range(4)]  # me, next, across, previous
    longest = max(
        way_home(offset, False, forward, home) for offset in range(68) for forward in (True, False)
    )
    board = []
    for seat in order:
        for piece in range(5):
            place, past = state["position"][seat][piece], bool(state["midpoint"][seat][piece])
            on_loop = 0 <= place < 68
            angle = 2 * math.pi * (place + 17 * (seat - viewer)) / 68
            safe = place in CASTLES and ruleset.castles_protect
            board.append(
                [
                    place == -1,
                    (place - 67) / (home - 67) if place >= 68 else 0,
                    math.cos(angle) if on_loop else 0,
                    math.sin(angle) if on_loop else 0,
                    way_home(place, past, True, home) / longest,
                    way_home(place, past, False, home) / longest,
                    place in (-1, 0) or place >= 68 or safe,
                ]
            )
    totals = [
        sum(state["progression"][seat]) + state["combat"][seat] + state["bonus"][seat]
        for seat in order
    ]
    scores = [
        [score / (abs(score) + 1000) for score in (total, state["combat"][seat])]
        for seat, total in zip(order, totals, strict=True)
    ]
    legal = Referee(ruleset.model_dump(mode="json"), state).legal_guards()
    return {
        "board": np.reshape(board, (4, 5, 7)),
        "midpoint": [state["midpoint"][seat] for seat in order],
        "checkpoints": [
            [bits >> bit & 1 for bit in range(12)] for bits in state["checkpoints"][viewer]
        ],
        "progression": [[p / (p + 200) for p in state["progression"][seat]] for seat in order],
        "roll_store": np.array([state["store"][seat] for seat in order]) / ruleset.store_capacity,
        "exit_credits": np.array([state["credits"][seat] for seat in order]) / ruleset.max_credits,
        "scores": scores,
        "legal_guards": [guard in legal for guard in range(4)],
        "clock": [state["clock_seconds"] / ruleset.clock_seconds],
    }


@given(seed=st.integers(0, 2**32))
def test_every_value_in_any_position_under_any_rules(seed: int) -> None:
    chance = random.Random(seed)
    game, ruleset = any_position(chance, chance.choice([None, LARGEST, SMALLEST]))
    rolls = [value for value, n in enumerate(game["store"][game["seat"]], 1) for _ in range(n)]
    rolls += [0] * (ruleset.store_capacity - len(rolls))
    expected = expected_sections(game, ruleset)
    for name, passive, last in (
        ("steps", [0, END], {"plan": Draft(game, ruleset).plan_section()}),
        ("turn", [[0] * (2 + ruleset.store_capacity)], {"rolls": np.array(rolls) / 6}),
    ):
        encoding = Encoding(name, ruleset)
        _, observations, _ = considered(game, encoding, passive)
        found = encoding.layout().split(observations[0])
        assert found.keys() == {*expected, *last}
        for part, values in (expected | last).items():
            assert found[part].dtype == np.float32
            close(found[part], values, part)


def test_a_position_made_by_hand() -> None:
    scene = Scene(
        {(RED, G1): 0, (RED, G2): 7, (RED, G3): 50, (RED, G4): 75, (RED, NOBLE): 70}
        | {(YELLOW, G1): 17},
        seat=RED,
        midpoint=[(RED, G3), (RED, NOBLE)],
        progression={(RED, G2): 600, (YELLOW, G1): 50},
        checkpoints={(RED, G2): 0b10},
        combat=[0, -1000, 0, 3000],
        store={RED: [0, 0, 3, 0, 0, 1]},
        credits=[4, 1, 2, 0],
        clock_seconds=450,
    )
    scene.game["phase"] = CHOOSE
    encoding = Encoding("steps", JOURNEY)
    # Backward and 5 steps before, then three 3s to G1.
    _, observations, _ = considered(scene.game, encoding, [18, 28, 28, 28, END])
    seen = [encoding.layout().split(observation) for observation in observations]
    way = 109  # the longest: backward from offset 33, past the Home path and round to it again
    assert way == max(way_home(offset, False, False, 75) for offset in range(68))
    sine, cosine = math.sin(math.tau * 7 / 68), math.cos(math.tau * 7 / 68)
    red = [
        [0, 0, 1, 0, 71 / way, 76 / way, 1],
        [0, 0, cosine, sine, 64 / way, 83 / way, 1],
        [0, 0, -math.sin(math.tau / 68), -math.cos(math.tau / 68), 21 / way, 58 / way, 0],
        [0, 1, 0, 0, 0, 0, 1],
        [0, 3 / 8, 0, 0, 5 / way, 5 / way, 1],
    ]
    close(seen[0]["board"][0], red)
    close(seen[0]["board"][1], [[1, 0, 0, 0, 72 / way, 77 / way, 1]] * 5)
    # Yellow is across Red, its entering tile two quarters on; its offset 17 is one quarter more.
    close(seen[0]["board"][2, 0, 2:4], [0, -1])
    assert seen[0]["midpoint"].tolist() == [[0, 0, 1, 0, 1], [0] * 5, [0] * 5, [0] * 5]
    assert np.argwhere(seen[0]["checkpoints"]).tolist() == [[1, 1]]
    close(seen[0]["progression"][:, :2], [[0, 0.75], [0, 0], [0.2, 0], [0, 0]])
    close(seen[0]["roll_store"], [[0, 0, 3 / 12, 0, 0, 1 / 12], *[[0] * 6] * 3])
    close(seen[0]["exit_credits"], [0.25, 0.5, 0, 1])
    close(seen[0]["scores"], [[-400 / 1400, -0.5], [0, 0], [3050 / 4050, 0.75], [0, 0]])
    assert seen[0]["legal_guards"].tolist() == [1, 1, 1, 0]
    assert seen[0]["clock"].tolist() == [0.25]
    plans = [[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3 / 12, 0, 0, 1 / 12]]
    for threes in range(4):
        total = 3 * threes / (3 * threes + 12)
        plans.append([0, 1, 5 / 6, 0, total, 0, 0, 0, 0, 0, (3 - threes) / 12, 0, 0, 1 / 12])
    close([each["plan"] for each in seen], plans)
    for later in seen[1:]:
        assert all(np.array_equal(later[name], seen[0][name]) for name in seen[0] if name != "plan")


@EVERY_RULESET
@EVERY_ENCODING
def test_all_values_stay_in_their_bounds(ruleset: Ruleset, encoding: str) -> None:
    batch = Batch(ruleset, 16, encoding=encoding, seats=(0, 1, 2, 3), threads=1)
    batch.reset(3)
    deal, space = Dealer(batch.encoding, 3, range(16)), batch.layout.flat_space()
    reached = np.zeros(batch.layout.size)
    ended = 0
    while ended < 16:
        assert batch.observations.dtype == np.float32
        assert (batch.observations >= space.low).all()
        assert (batch.observations <= space.high).all()
        reached = np.maximum(reached, np.abs(batch.observations).max(axis=0))
        ended += batch.step(deal(batch.masks))
        batch.start_next(np.flatnonzero(batch.terminated))
    assert (reached > 0).mean() > 0.7, "most numbers mean something in random play"


def test_the_largest_scores_stay_in_their_bounds() -> None:
    state = any_state(random.Random(4), JOURNEY) | {"combat": [MAX_POINTS, -MAX_POINTS, 0, 0]}
    state["progression"] = [[MAX_POINTS] * 5] * 4
    state["bonus"] = [MAX_POINTS] * 4
    game = state_from_json(state, JOURNEY)
    game["phase"] = CHOOSE
    encoding = Encoding("turn", JOURNEY)
    _, observations, _ = considered(game, encoding, [[0] * 14])
    assert encoding.layout().flat_space().contains(observations[0])
    assert np.abs(observations[0][encoding.layout()["scores"].slice]).max() > 0.999


# --- Kept up to date


@pytest.mark.parametrize("ruleset", [JOURNEY, BRAWL], ids=["journey", "brawl"])
def test_what_a_turn_shows_is_what_a_fresh_look_shows(ruleset: Ruleset) -> None:
    batch = Batch(ruleset, 1, seats=(0, 1, 2, 3), threads=1)
    batch.reset(11)
    deal, chance, gives = Dealer(batch.encoding, 11, [0]), random.Random(11), 0
    for _ in range(100):
        game, draft, complete = batch.games[0].copy(), Draft(batch.games[0], ruleset), False
        actions, seen, legal = [], [], []
        while not complete:
            seen.append(batch.observations[0].copy())
            legal.append(batch.masks[0].copy())
            shown = batch.layout.split(seen[-1])["plan"]
            close(shown, draft.plan_section())
            action = int(deal(batch.masks)[0]) if chance.random() < 0.95 else 99  # an illegal one
            actions.append(action)
            complete, _ = draft.add(action)
            batch.step(np.array([action]))
        _, observations, masks = considered(game, batch.encoding, actions)
        assert np.array_equal(observations, seen)
        assert np.array_equal(masks, legal)
        gives += len(actions) - 2
    assert gives > 100


# --- All seats see the same


@given(seed=st.integers(0, 2**32))
def test_the_same_situation_looks_the_same_from_every_seat(seed: int) -> None:
    chance = random.Random(seed)
    game, ruleset = any_position(chance)
    actions = step_actions(any_turn(game, ruleset, chance))
    turn, seen, masks = considered(game, Encoding("steps", ruleset), actions)
    at_once = Encoding("turn", ruleset), [turn_action(turn, game, ruleset)]
    _, seen_at_once, masks_at_once = considered(game, *at_once)
    for by in (1, 2, 3):
        other = turned(game, by, ruleset)
        assert other["seat"] != game["seat"]
        same, observations, legal = considered(other, Encoding("steps", ruleset), actions)
        assert same == turn
        assert np.array_equal(observations, seen)
        assert np.array_equal(legal, masks)
        same, observations, legal = considered(other, *at_once)
        assert same == turn
        assert np.array_equal(observations, seen_at_once)
        assert np.array_equal(legal, masks_at_once)


def test_one_piece_elsewhere_looks_different() -> None:
    chance = random.Random(5)
    for _ in range(40):
        game, ruleset = any_position(chance)
        other, seat, piece = game.copy(), chance.randrange(4), chance.randrange(5)
        other["position"][seat, piece] = (game["position"][seat, piece] + 2) % 68
        passive = [[0] * (2 + ruleset.store_capacity)]
        encoding = Encoding("turn", ruleset)
        _, seen, _ = considered(game, encoding, passive)
        _, seen_there, _ = considered(other, encoding, passive)
        assert not np.array_equal(seen, seen_there)


# --- The dice seed


def test_the_seed_of_the_dice_is_not_in_it() -> None:
    assert "seed" not in (GAME.names or ())
    without_dice = changed(JOURNEY, dice=[[12, 0]])
    for encoding in ENCODINGS:
        first, second = (
            Batch(without_dice, 3, encoding=encoding, seats=(0, 1, 2, 3), threads=1)
            for _ in range(2)
        )
        first.reset(1)
        second.reset(2**52 + 12345)
        deal = Dealer(first.encoding, 12, range(3))
        assert not np.intersect1d(first.seeds, second.seeds).size
        ended = 0
        while not ended:
            assert np.array_equal(first.observations, second.observations)
            assert np.array_equal(first.masks, second.masks)
            actions = deal(first.masks)
            ended = first.step(actions)
            assert second.step(actions) == ended


# --- Its page


def test_the_page_is_up_to_date() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert document.renew(text) == text
    assert f"observation version {OBSERVATION_VERSION}" in text


def test_a_page_is_brought_up_to_date(tmp_path: Path) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    stale = tmp_path / "stale.md"
    stale.write_text(text.replace("| 280 |", "| 281 |"), encoding="utf-8")
    subprocess.run(
        [sys.executable, "-m", "retinue.envs.document", str(stale)], check=True, timeout=300
    )
    assert stale.read_text(encoding="utf-8") == text


def test_a_page_without_the_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="has no <!-- generated: observation index -->"):
        document.renew("# Something else")
