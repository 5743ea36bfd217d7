"""Thousands of matches at once, in preallocated arrays."""

import importlib
import json
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from retinue.envs.actions import Encoding
from retinue.envs.checks import checked_actions, checked_games, checked_seeds
from retinue.envs.game.board import SEATS
from retinue.envs.game.engine import LEGAL, IllegalTurn, explain
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import GAME, TURN, Record
from retinue.envs.kernels import (
    CONSIDER,
    FAULT,
    LOOK,
    MAX_GAMES,
    MAX_OPPONENTS,
    RESET,
    RESUME,
    SERVE,
    STEP,
    WAITING,
)
from retinue.envs.last_moves import Indices, LastMoves
from retinue.envs.opponents import Opponent, View, resolve
from retinue.envs.parallel import MAX_THREADS, copy_of, new_memory, serve_games, write_keys
from retinue.envs.rewards import Reward
from retinue.envs.seating import (
    DRAWS,
    NONE,
    check_opponents,
    pools,
    seat_mask,
    seat_masks,
    seats_played,
)


class Batch:
    """Many matches in step, seen by one caller who plays some seats of each.

    The arrays are views of preallocated memory that the next call overwrites; copy what must last.

    Attributes:
        games: ``GAME`` ``(n,)``.
        turns: ``TURN`` ``(n,)``, what the seat to act has chosen so far.
        observations: float32 ``(n, layout.size)``, of the seat to act, ``seats[i]``.
        masks: bool ``(n, encoding.mask_size)``, never empty.
        rewards: float64 ``(n,)``, of the seat to act since its previous decision; at the end of a
            match that of the seat that decided last.
        seat_rewards: float64 ``(n, 4)``, what the last step paid to each seat: the acting one's
            reward, and at the end of a match what each of the caller's seats was still owed.
        terminated: bool ``(n,)``.
        illegal: bool ``(n,)``: the action just taken was not legal (see ``envs.actions``).
        seats: int32 ``(n,)``, the seat whose decision is due, or that decided last.
        control: int32 ``(n, 4)``, -1 where the caller sits, else the index in ``opponents``.
        seats_played: how many seats of each match are the caller's, as constructed.
        final_totals, final_places: int64 and int32 ``(n, 4)``, of matches that have ended.
        trace: ``TURN`` ``(n, ruleset.turns)``, the present matches' turns, if they are kept.

    Args:
        ruleset: the rules.
        num_games: how many matches.
        encoding, candidates: of actions, as :class:`~retinue.envs.actions.Encoding` takes them.
        seats: the caller's: a seat, several, ``"any"`` for one drawn anew for each match, or
            ``"none"``: then :meth:`play_out` says who plays where and plays whole matches.
        opponents: agents for the other seats, or their names once ``retinue.agents`` is imported;
            in seat order after the caller's first, used again from the first when there are fewer
            than seats.
        draw: ``"in order"``, or ``"each match"`` to draw each seat's agent from ``opponents``.
        reward: how scores become rewards.
        threads: of the kernels; by default all that Numba may use. One thread starts no pool.
        keep_turns: keep all turns of the present matches, which start from the beginning.
        remember: keep the last move of every game, to be shown. That is slower: kernels then ask no
            agent by themselves.

    Raises:
        ValueError: an argument is out of its range.
    """

    def __init__(
        self,
        ruleset: Ruleset,
        num_games: int,
        *,
        encoding: str = "steps",
        candidates: int = 64,
        seats: int | Sequence[int] | str = 0,
        opponents: Sequence[Opponent | str] = (),
        draw: str = "in order",
        reward: Reward | None = None,
        threads: int | None = None,
        keep_turns: bool = False,
        remember: bool = False,
    ) -> None:
        self._arguments = {name: value for name, value in locals().items() if name != "self"}
        if not 1 <= operator.index(num_games) <= MAX_GAMES:
            raise ValueError(f"num_games must be 1 to {MAX_GAMES}, not {num_games}")
        limit = MAX_THREADS
        if threads is not None and not 1 <= operator.index(threads) <= limit:
            raise ValueError(f"threads must be 1 to {limit}, not {threads}")
        mask = seat_mask(seats)
        check_opponents(mask, opponents, draw)
        self.ruleset = ruleset
        self.num_games = num_games
        self.encoding = Encoding(encoding, ruleset, candidates)
        self.layout = self.encoding.layout()
        self.reward = reward or Reward()
        self.opponents = tuple(resolve(agent, ruleset) for agent in opponents)
        self.threads = limit if threads is None else threads
        self._rng = np.random.default_rng()
        self.has_begun = False
        self._is_stuck = False
        self._has_ends = False  # whether there may be a match that is over
        self._all = np.arange(num_games)
        self._parts = len(self.encoding.nvec)
        self.seats_played = seats_played(mask)
        self._last_moves = LastMoves(num_games) if remember else None
        self.trace = np.zeros((num_games if keep_turns else 0, ruleset.turns), TURN)
        self._allocate(mask, DRAWS.index(draw))

    def _allocate(self, seats: int, draw: int) -> None:
        self.games = np.zeros(self.num_games, GAME)
        self._memory = memory = new_memory(self.encoding, self.games)
        self.turns, self._slots, self._outcomes = memory.turns, memory.slots, memory.outcomes
        slots, outcomes, setup = memory.slots, memory.outcomes, memory.setup
        setup["reward"] = self.reward.code
        setup["divisor"] = self.reward.divisor
        setup["place_bonus"] = self.reward.place_bonus * self.reward.divisor
        setup["draw_opponents"] = draw
        if self._last_moves is None:
            self._policies = [agent.compiled for agent in self.opponents]  # held: kernels read them
            for index, policy in enumerate(self._policies):
                if policy is not None:
                    setup["policies"][0, index] = policy.address
                    setup["memories"][0, index] = policy.memory_address
        self.observations, self.masks, self._actions = memory.learners_views(self.encoding)
        self.rewards = outcomes["reward"]
        self.seat_rewards = outcomes["rewards"]
        self.terminated = outcomes["terminated"].view(np.bool_)
        self.illegal = outcomes["illegal"].view(np.bool_)
        self.seats = outcomes["acting"]
        self.control = slots["control"]
        self.final_totals = slots["final_totals"]
        self.final_places = slots["final_places"]
        slots["seats"] = seats
        slots["opponents"] = len(self.opponents)
        slots["pool"] = np.arange(MAX_OPPONENTS)
        slots["kept_at"] = self._traces()

    def _traces(self) -> Any:
        """Return where each match's turns go, addresses."""
        size = self.trace.itemsize * self.trace.shape[1] if len(self.trace) else 0
        return self.trace.ctypes.data * bool(size) + size * self._all

    def _kept_arrays(self) -> tuple[np.ndarray[Any, Any], ...]:
        remembered = () if self._last_moves is None else self._last_moves.arrays
        offered = (self._memory.offers,) if self.encoding.is_candidates else ()
        return (self.games, self.turns, self._slots, self._outcomes, *offered, *remembered)

    def save_matches(self) -> tuple[bytes, ...]:
        """Return all matches for :meth:`load_matches`: drafts, seeds, what was paid, chance."""
        chance = json.dumps(self._rng.bit_generator.state)
        return (*(array.tobytes() for array in self._kept_arrays()), chance.encode())

    def load_matches(self, matches: Sequence[bytes]) -> None:
        """Go back to :meth:`save_matches` of a batch that was made with the same arguments.

        Raises:
            ValueError: they come from a batch of another size or another version.
        """
        *arrays, saved_chance = matches
        chance = json.loads(saved_chance)
        mine = self._kept_arrays()
        if [array.nbytes for array in mine] != [len(saved) for saved in arrays]:
            raise ValueError("the saved matches are of another batch size or version")
        for array, saved in zip(mine, arrays, strict=True):
            array[:] = np.frombuffer(saved, array.dtype)
        self._slots["kept_at"] = self._traces()  # saved were those of another process
        self._rng.bit_generator.state = chance
        self.has_begun = True
        self._is_stuck = self._has_failed()
        self._has_ends = bool(self.terminated.any())

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy needs: the arguments and the matches, but no address of code."""
        return {
            "arguments": self._arguments,
            "matches": self.save_matches(),
            "has_begun": self.has_begun,
            "modules": self._modules_of_names(),
        }

    def _modules_of_names(self) -> set[str]:
        """Return where the agents that were given by name come from."""
        pairs = zip(self._arguments["opponents"], self.opponents, strict=True)
        return {type(agent).__module__ for given, agent in pairs if isinstance(given, str)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for module in state["modules"]:
            importlib.import_module(module)  # then the names are known in any process
        arguments = state["arguments"]
        if arguments["threads"] is not None:  # this machine may have fewer
            arguments = {**arguments, "threads": min(arguments["threads"], MAX_THREADS)}
        self.__init__(**arguments)  # type: ignore[misc]
        self.load_matches(state["matches"])
        self.has_begun = state["has_begun"]

    @property
    def seeds(self) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """The dice seed of each game's present match, uint64 ``(n,)``; not for players."""
        return self._slots["seed"]

    def reset(self, seed: Any) -> None:
        """Start a new match in every game.

        Args:
            seed: an integer: game ``i``'s first match has the dice of ``seed + i``; or one for each
                game, integers ``(n,)``. Taken mod 2**53; later matches' seeds are derived from it.

        Raises:
            ValueError: there is not one seed for each game; nothing starts.
        """
        if np.ndim(seed) == 0:
            first = operator.index(seed)
            seed = [first + index for index in range(self.num_games)]
        seeds = checked_seeds(seed, self.num_games)
        self._rng = np.random.default_rng(seeds[0])
        self._start(self._all, seeds)

    def start(self, indices: Indices, seeds: Any) -> None:
        """Start in some games a match of given dice, from whose seed later matches' are derived.

        Args:
            indices: integers ``(m,)``, each once.
            seeds: integers ``(m,)``, taken mod 2**53.

        Raises:
            IndexError: there is no such game, or one stands twice.
            ValueError: there is not one seed for each game.
        """
        chosen = checked_games(indices, self.num_games)
        self._start(chosen, checked_seeds(seeds, len(chosen)))

    def _start(self, indices: Indices, seeds: list[int]) -> None:
        self._slots["base_seed"][indices] = seeds
        self._slots["episode"][indices] = 0
        self.has_begun = True
        self.start_next(indices)

    def play_out(self, seeds: Any, control: Any) -> None:
        """Play one whole match in every game, all seats by agents (``seats`` is ``"none"``).

        Args:
            seeds: of the dice, integers ``(n,)``.
            control: which of ``opponents`` plays each seat, integers ``(n, 4)`` or ``(4,)``.

        Raises:
            ValueError: the caller has a seat, or an index is out of its range.
            IllegalTurn: an agent chose an illegal turn; the message names it.
        """
        control = np.asarray(control)
        if self.seats_played:
            raise ValueError(f'whole matches are played out only with seats="{NONE}"')
        if control.min() < 0 or control.max() >= len(self.opponents):
            raise ValueError(f"control must be 0 to {len(self.opponents) - 1}")
        self.control[:] = control
        self.reset(seeds)

    def arrange(self, indices: Indices, *, seats: Any = None, opponents: Any = None) -> None:
        """Change who plays the later matches of some games; what is not given stays as it is.

        Args:
            indices: integers ``(m,)``, each once.
            seats: for each of them the caller's, as the constructor takes them.
            opponents: for each of them one or more of the batch's own opponents.

        Raises:
            IndexError: there is no such game, or one stands twice.
            ValueError: what is given does not fit, or the batch's caller has no seat; nothing is
                changed.
        """
        chosen = checked_games(indices, self.num_games)
        if not self.seats_played:
            raise ValueError(f'with seats="{NONE}" play_out says who plays')
        count, given = len(chosen), self._arguments["opponents"]
        taken_from = None if opponents is None else pools(opponents, count, given)
        if seats is not None:
            masks = seat_masks(seats, count, has_opponents=bool(given))
            self._slots["seats"][chosen] = masks
        if taken_from is not None:
            for index, pool in zip(chosen, taken_from, strict=True):
                self._slots["opponents"][index] = len(pool)
                self._slots["pool"][index, : len(pool)] = pool

    def start_next(self, indices: Indices) -> None:
        """Start the next match in the games ``indices``, integers ``(m,)``, each once.

        Raises:
            IndexError: there is no such game.
            RuntimeError: :meth:`reset` was never called.
        """
        chosen = checked_games(indices, self.num_games)
        if self._last_moves is not None:
            self._last_moves.forget(chosen)
        self._serve(chosen, RESET)

    def step(self, actions: Any, indices: Indices | None = None) -> int:
        """Take one action in every game and play on to the caller's next decision.

        A match that has ended must be followed by :meth:`start_next`.

        Args:
            actions: integers ``(n,)`` for ``steps``, ``(n, 2 + store_capacity)`` for ``turn``.
            indices: integers ``(m,)``, the games that count, each once; by default all.

        Returns:
            How many matches ended in this call.

        Raises:
            ValueError: the actions have another shape.
            IllegalTurn: an opponent chose an illegal turn; the message names it.
            RuntimeError: a match is over, or an opponent failed before; nothing is played.
        """
        taken = checked_actions(actions, self.num_games, self._parts)
        if self._is_stuck:
            raise RuntimeError("an opponent failed in its turn: start the next match (reset) first")
        chosen = self._all if indices is None else checked_games(indices, self.num_games)
        if self._has_ends and (over := self.terminated[chosen]).any():
            raise RuntimeError(
                f"the match in game {chosen[over][0]} is over: start the next one (reset) first"
            )
        self._actions[:] = taken
        if self._last_moves is not None:
            self._last_moves.foresee(self._memory, chosen)
        return self._serve(chosen, STEP)

    def last_move(self, index: int) -> tuple[Record, Record] | None:
        """Return the last turn played in a game: ``GAME`` before it and ``TURN``.

        None before the match's first turn, or if the batch does not ``remember``.
        """
        return None if self._last_moves is None else self._last_moves.of(index)

    def look(self, index: int, seat: int) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Return how a game looks to a seat that has nothing to decide, float32 ``(size,)``.

        Raises:
            ValueError: there is no such seat.
        """
        if not 0 <= seat < SEATS:
            raise ValueError(f"seat {seat} is not one of 0, 1, 2, 3")
        memory = copy_of(self._memory, [index])
        memory.outcomes["acting"] = seat
        serve_games(memory, self._all[:1], LOOK, CONSIDER.address)
        seen: np.ndarray[Any, np.dtype[np.float32]] = memory.learners_views(self.encoding)[0][0]
        return seen

    def _serve(self, indices: Any, command: int) -> int:
        """Run a command in some games, then let agents outside the kernels play.

        Returns:
            How many matches ended.
        """
        if not self.has_begun:
            raise RuntimeError("the batch has no matches yet: call reset first")
        # Should an agent fail, its games stop in its turn, which is not the caller's to play.
        was_stuck, self._is_stuck = self._is_stuck, True
        had_ends, self._has_ends = self._has_ends, True
        outcome = self._run(indices, command)
        ended = outcome % WAITING
        while outcome >= WAITING:
            waiting = indices[self._slots["waiting"][indices] == 1]
            agents = self.control[waiting, self.games["seat"][waiting]]
            outcome = sum(
                self._ask(self.opponents[agent], waiting[agents == agent])
                for agent in np.unique(agents)
            )
            ended += outcome % WAITING
        self._is_stuck = was_stuck and self._has_failed()
        self._has_ends = ended > 0 or (had_ends and bool(self.terminated.any()))
        return ended

    def _has_failed(self) -> bool:
        """Tell whether a game has stopped in the turn of an agent that failed."""
        return bool((self._slots["waiting"] | (self._slots["fault"] != LEGAL)).any())

    def _run(self, indices: Any, command: int) -> int:
        outcome = serve_games(self._memory, indices, command, SERVE.address, self.threads)
        if outcome >= FAULT:
            self._refuse(int(indices[self._slots["fault"][indices] != LEGAL][0]))
        return outcome

    def _ask(self, agent: Opponent, indices: Indices) -> int:
        keys = np.zeros(len(indices), np.uint64)
        write_keys(self.games, self._slots, indices, keys)
        # Whatever a user's own agent returns.
        turns: Any = agent.choose(
            View(self.games[indices], keys, self.ruleset, indices.copy()), self._rng
        )
        if not isinstance(turns, np.ndarray) or (turns.dtype, turns.shape) != (TURN, indices.shape):
            raise ValueError(
                f"agent {agent.name} must return a TURN array of shape {indices.shape}, "
                f"not {turns!r:.80}"
            )
        if self._last_moves is not None:
            self._last_moves.note(indices, self.games[indices], turns)
        self.turns[indices] = turns
        return self._run(indices, RESUME)

    def _refuse(self, index: int) -> None:
        game, turn = self.games[index], self.turns[index]
        agent = self.opponents[self.control[index, game["seat"]]]
        reason = explain(int(self._slots["fault"][index]), game, turn)
        raise IllegalTurn(f"agent {agent.name} chose an illegal turn: {reason}")
