"""Why: what a trained policy over candidates thinks of a position."""

from typing import Any

import numpy as np

from retinue.agents.playouts import look_at, turns_of
from retinue.agents.policy import PolicyAgent
from retinue.agents.server.schemas import Plain
from retinue.envs.game import engine
from retinue.envs.game.events import SILENT
from retinue.envs.game.record import turn_to_json
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import Record, totals


def explain(
    policy: PolicyAgent, game: Record, ruleset: Ruleset, chosen: Record, count: int
) -> Plain | None:
    """Return an ``Explanation``; None if the policy does not choose among candidates.

    Args:
        policy: which thinks.
        game: ``GAME``, its turn due.
        ruleset: the rules.
        chosen: the ``TURN`` that was chosen in the end, which is always shown.
        count: of turns that are shown.
    """
    if not policy.encoding.is_candidates:
        return None
    logits, values, masks, offers = look_at(policy, np.array([game]), 1)
    legal = np.flatnonzero(masks[0])
    weights = np.exp(logits[0, legal] - logits[0, legal].max())
    shares = weights / weights.sum()
    order = np.argsort(-shares, kind="stable")
    turns = turns_of(offers, np.zeros(len(legal), np.int64), legal[order])
    shown = [
        _alternative(turn, share, turn == chosen, game, ruleset)
        for rank, (turn, share) in enumerate(zip(turns, shares[order], strict=True))
        if rank < count or turn == chosen
    ]
    return {
        "value": None if values is None else float(values[0]),
        "unit": None if policy.returns is None else policy.returns.model_dump(),
        "candidates": len(legal),
        "alternatives": shown,
    }


def _alternative(turn: Record, share: Any, chosen: Any, game: Record, ruleset: Ruleset) -> Plain:
    after = game.copy()
    engine.play_or_raise(after, ruleset, turn, SILENT)
    return {
        "turn": turn_to_json(turn),
        "probability": float(share),
        "chosen": bool(chosen),
        "after": totals(after).tolist(),
    }
