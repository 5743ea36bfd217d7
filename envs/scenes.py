"""The scenes of the test vectors: at least one for each paragraph of the rules that decides a turn.

:mod:`retinue.envs.staged` says how they are written. On Green's loop Red enters at 17, Blue at 34,
Yellow at 51.
"""

from collections.abc import Iterator
from typing import Final

from retinue.envs.game.board import CASTLES, SEAT_NAMES, SEATS
from retinue.envs.game.ruleset import MODES, load_ruleset
from retinue.envs.staged import Scene, read_scene

_SCENES: Final = """
1.2 | after Yellow it is Green's turn again | yellow to move |
1.3 | Yellow stands where Green moves | yellow G3 6, green G1 2 | G1 4
1.3 | Yellow moves: its offset 7 is Green's 58 | yellow to move, red N 58, yellow G1 55 | G1 3
1.3 | Blue meets Red past tile 67 of the board | blue to move, red G2 2, blue G1 66 | G1 4
1.5 | every checkpoint up to the midpoint, forward | | G1 6 6 6 6 6 5
1.5 | every checkpoint up to the midpoint, backward | | backward G1 6 6 6 6 6 5
1.6 | every Castle from the midpoint on, forward | green G1 34* | G1 6 6 6 6 5
1.7 | the seventh tile of the Home path is not Home | green G1 63* | G1 6 1
1.7 | Home is one step further | green G1 63* | G1 6 2
1.8 | on the first tile of the Home path | green G1 63* | G1 1
2.1 | one direction for all pieces | green G1 40 G2 20 N 30 | backward G1 3 G2 3 N 3
2.2 | leaving the Yard forward | | G1 4
2.2 | leaving the Yard backward | | backward G1 4
2.3 | forward from offset 67 | green G1 66 | G1 3
2.3 | backward from offset 0 | green G1 2 | backward G1 4
2.4 | turning off forward | green G1 62* | G1 3
2.4 | turning off backward | green G1 1* | backward G1 3
2.4 | the Noble turns off too | green N 62* | N 5
2.5 | no turning off forward | green G1 62 | G1 3
2.5 | no turning off backward | green G1 1 | backward G1 3
2.6 | forward from offset 0 with midpoint progress | green G1 0* | G1 2
2.6 | nor does it turn off on the way there | green G1 64* | G1 5
2.7 | backward on the Home path leads Home | green G1 70* | backward G1 3
2.7 | what is too much for Home is dropped | green G1 73* | G1 6 6
2.8 | past another seat's Home path | green G1 11* | G1 6
2.9 | through the midpoint into the Home path | green G1 30 | G1 6 6 6 6 6 6 4
2.9 | through the midpoint and Home, backward | green G1 36 | backward G1 6 6 6 6 6 6 6 6
3 | seats that have finished are passed over | red home turns 4, blue home turns 5 |
3 | fewer turns count before lower numbers | blue to move, green turns 8, red turns 8 |
3.1.2 | grace: the first die is a 6 | rolls 6 2 1 1 |
3.1.2 | grace: the second die is a 6 | rolls 2 6 1 1 |
3.1.2 | grace: 1 and 5 | rolls 1 5 2 2 |
3.1.2 | grace: 4 and 2 | rolls 4 2 5 5 |
3.1.2 | grace: 3 and 3 | brawl, store 1 1 1 1 1, rolls 3 3 1 1 |
3.1.2 | no grace: only the third die is a 6 | rolls 1 2 6 6 |
3.1.2 | no grace: the second and the third add up to 6 | rolls 5 2 4 1 |
3.1.2 | grace: a single die, a 6 | store 1 1 1 2 2 2 3 3 3, rolls 6 |
3.1.2 | no grace: a single die, a 5 | store 1 1 1 2 2 2 3 3 3, rolls 5 |
3.1.2 | no grace in a seat's first turn | first turn, rolls 6 6 6 6 |
3.1.3 | no more credits than 4 | green credits 4, rolls 6 1 1 1 |
3.1.3 | the fourth credit | green credits 3, rolls 6 1 1 1 |
3.1.4 | forced grace: all Guards in the Yard | green N 20 credits 0, rolls 1 1 1 1 |
3.1.4 | forced: one in the Yard, three Home | green G1 75 G2 75 G4 75 credits 0, rolls 1 1 1 1 |
3.1.4 | none with a credit | green credits 1, rolls 1 1 1 1 |
3.1.4 | none with a Guard on the loop | green G2 5 credits 0, rolls 1 1 1 1 |
3.1.4 | none with a Guard on the Home path | green G2 70* credits 0, rolls 1 1 1 1 |
3.1.4 | none with all Guards Home | green G1 75 G2 75 G3 75 G4 75 N 5* credits 0, rolls 1 1 1 1 |
3.1.4 | none in a seat's first turn | first turn, green credits 0, rolls 1 1 1 1 |
3.1.4 | a grace roll and forced grace are one credit | green credits 0, rolls 6 1 1 1 |
3.1.5 | this roll's credit is spent in this turn | green G1 20 credits 0, rolls 6 1 1 1 | G2 6
3.2 | moving nothing | |
3.2 | credits belong to the first Guards in the Yard | green G1 20 | G2 3 G3 4
3.2 | a Guard in the Yard for which there is no credit | green G1 20 | G4 3
3.2 | no credit at all | green G1 20 credits 0 | G2 3
3.2 | a Guard in Home gets no roll | green G1 75 | G1 3
3.2 | a roll that is not in the store | green G1 20, rolls 1 1 2 2 | G1 6
3.2 | a roll given twice | green G1 20 G2 21, rolls 1 1 2 2 | G1 2 2 G2 2
3.2 | the Noble leaves the Yard without a credit | green G1 20 credits 0 | N 6
3.2 | a Noble in Home does not move | green N 75 | N 1
3.2 | the Noble makes 6 steps at most | green N 20 | N 7
3.2 | a Noble that stays is written as before | green N 20 | N 0 after
3.2 | rolls of earlier turns | green G1 36, store 2 5 5 5 5, rolls 1 1 1 | G1 5 5
3.3.1 | the sum of several rolls | green G1 17 | G1 3 3 5
3.3.2 | Guards that meet are no group | green G1 52 G2 53, red G1 56 G2 56 | G1 6 G2 6
3.3.2 | Guards leave the Yard one by one | red G1 2 G2 2 | G1 4 G2 4
3.3.2 | a group on the Home path | green G1 68* G2 68* | G1 2 G2 4
3.3.3 | the larger group first, then by number | green G1 6 G2 11 G3 40 G4 40 | G1 1 G2 1 G3 1 G4 1
3.3.3 | of two pairs that of G1 first | green G1 40 G2 6 G3 6 G4 40 | G1 1 G2 1 G3 1 G4 1
3.3.3 | a Guard without movement is in no group | green G1 6 G2 40 G3 40 | G1 1 G3 1
3.3.4 | one stops, the others go on | green G1 35 G2 35 G3 35 | G1 2 G2 4 G3 5
3.3.5 | the larger part goes on first | green G1 62 G2 62* G3 62*, red G1 65 G2 65 | G1 4 G2 4 G3 4
3.3.5 | of equal parts that of the lowest number | green G1 60 G2 60* | G1 6 5 G2 6 5
3.3.5 | parts before the next group | green G1 2 G2 2* G3 45 | backward G1 6 4 G2 6 4 G3 4
3.3.6 | blocked on its entering tile it pays nothing | red G1 0 G2 0 | G1 4 G2 1
3.3.6 | a Guard that leaves pays a credit | | G1 1 G2 2
3.3.7 | a captured stack stops nobody | green G1 54 G2 54 G3 50, red G1 57 G2 57 | G1 3 G2 3 G3 5 5
3.3.7 | the Noble's midpoint counts for captures after it | green N 33 G1 35, blue G1 36 | N 1 G1 1
3.3.7 | and not for captures before it | green N 33 G1 35, blue G1 36 | N 1 after G1 1
3.4 | the Noble first | green N 2 G1 5 G2 5 | N 5 G1 2 G2 2
3.4 | the Noble last | green N 2 G1 5 G2 5 | N 5 after G1 2 G2 2
3.4 | the Noble captures nobody | green N 35, red G1 36 | N 1
3.4 | the Noble leaves the Yard backward | | backward N 6
3.5.1 | a stack of two stops one | green G1 51, red G1 57 G2 57 | G1 6 2
3.5.1 | two pass a stack of two | green G1 51 G2 51, red G1 57 G2 57 | G1 6 2 G2 6 2
3.5.1 | three stop two | green G1 51 G2 51, red G1 57 G2 57 G3 57 | G1 6 2 G2 6 2
3.5.1 | no stack: one of each seat | green G1 51, red G1 57, blue G1 57, yellow G1 57 | G1 6 2
3.5.1 | a Noble adds nothing to a Guard | green G1 35, red G1 36 N 36 | G1 2
3.5.1 | a stack on its entering tile is not on the Home path | green G1 63*, red G1 0 G2 0 | G1 1
3.5.1 | nor for the Noble | green N 63*, red G1 0 G2 0 | N 1
3.5.1 | a stack of two stops the Noble | green N 51, red G1 54 G2 54 | N 6
3.5.2 | two own Guards stop the Noble | green N 51 G1 54 G2 54 | N 6
3.5.2 | one own Guard does not | green N 51 G1 54 | N 6
3.5.2 | also on the Home path | green N 69* G1 71* G2 71* | N 4
3.5.2 | never the step into Home | green N 74* G1 75 G2 75 | N 2
3.5.2 | own Guards stop no Guard | green G1 51 G2 54 G3 54 G4 54 | G1 6
3.5.3 | all the movement left is lost | green G1 60*, red G1 62 G2 62 | G1 6 6 6 6 6
3.5.3 | left alone by its group it is stopped | green G1 51 G2 51, red G1 57 G2 57 | G1 3 G2 6 2
3.5.4 | no penalty when only own Guards are in the way | green N 35 G1 37 G2 37 | N 4
3.5.4 | a penalty when another's are there too | green N 35 G1 37 G2 37, red G1 37 G2 37 | N 4
3.5.4 | one for each piece | brawl, green G1 51 G2 51, red G1 54 G2 54 G3 54 | G1 3 G2 4
3.6.1 | pieces passed are left alone | green G1 35, red G1 36, blue N 37 | G1 3
3.6.1 | a Guard that does not move captures nobody | green G1 36, red G1 36 | N 1
3.6.1 | stopped with no step made it captures nobody | green G1 53, red G1 54 G2 54 G3 53 | G1 3
3.6.1 | stopped after a step it captures there | green G1 52, red G1 54 G2 54 G3 53 | G1 3
3.6.1 | captured before the others go on | green G1 55 G2 55, red G1 57 G2 57 | G1 2 G2 4
3.6.1 | several seats on one tile | green G1 18, red G1 20 N 20, blue G1 20, yellow G1 20 | G1 2
3.6.2 | on an entering tile only its owner is safe | green G1 15, red G1 17 N 17, blue G1 17 | G1 2
3.6.2 | nobody is captured from the Home path | green G1 62*, red G1 0 | G1 2
3.6.2 | caught by a Guard that leaves its Yard | red G1 0 N 0 | G1 1
3.6.3 | what a captured piece loses and keeps | green G1 35, red G2 36*/5+90 G1 40*/0+70 | G1 1
3.6.4 | a captured Noble's seat starts with new credits | green G1 35, red N 36 credits 0 | G1 1
3.6.4 | also if it had more | green G1 35, red N 36 credits 4 | G1 1
3.6.4 | a captured Guard costs no credits | green G1 35, red G1 36 credits 1 | G1 1
3.6.5 | the Noble's place at that moment: moved before | green N 40 G1 35, red G1 36 | N 1 G1 1
3.6.5 | the Noble's place at that moment: moved after | green N 40 G1 35, red G1 36 | N 1 after G1 1
3.6.6 | a group captures once | green G1 52 G2 52, red G3 55 | G1 3 G2 3
4.1 | a checkpoint pays once | green G1 6/2 | G1 2
4.1 | the midpoint begins a new cycle | green G1 33/31+90 | G1 1
4.1 | with the flag on it does nothing | green G1 33*/4 | G1 1
4.1 | Home pays once | green G1 74*/2048 | G1 1
5 | the clock runs out | clock 10, red combat 10, blue combat 10, yellow combat -5 | G1 1
5 | the clock never shows less than 0 | clock 3 |
7.2 | leaving once more with its records | green G2 -1/3 | G2 6 2
7.3 | past the Home path | green G1 60 | G1 6 3
7.4 | into the Home path, forward | green G1 60* | G1 6 3
7.5 | into the Home path, backward | green G1 3* | backward G1 5
7.7 | a rich capture | brawl, green G1 18 N 30, red G1 20 N 20, blue G1 20, yellow G1 20 | G1 2
7.12 | no dice | green G1 75 G2 75 credits 0, store 1 1 2 2 3 3 4 4 5 5 6 6, rolls | G3 1
"""
"""A scene a line: the paragraph, what it shows, the position, the turn."""


def scenes() -> list[Scene]:
    """Return all scenes, in the order of the rules."""
    lines = [*_SCENES.strip().splitlines(), *_castles(), *_dice(), *_points(), *_worth(), *_ends()]
    found = [read_scene(line) for line in lines]
    return sorted(found, key=lambda scene: [int(number) for number in scene.rule.split(".")])


def _castles() -> Iterator[str]:
    """Yield a scene for each Castle: pieces on it are not captured."""
    for offset in CASTLES:
        pieces = f"green G1 {offset - 1}, red G1 {offset}, blue N {offset}"
        yield f"3.6.2 | safe on the Castle at {offset} | {pieces} | G1 1"


def _dice() -> Iterator[str]:
    """Yield the smallest and the largest store of each row of the table of dice."""
    for mode in MODES:
        ruleset, least = load_ruleset(mode), 0
        for most, dice in ruleset.dice:
            rolls = " ".join(("1", "1", "3", "2", "4")[:dice])
            for held in sorted({least, most}):
                store = " ".join(str(1 + index % 6) for index in range(held))
                position = f"{mode}, store {store}, rolls {rolls}"
                yield f"3.1.1 | {dice} dice with {held} rolls in store | {position} |"
            least = most + 1


def _points() -> Iterator[str]:
    """Yield what a Guard and the Noble are paid for each kind of checkpoint, and penalties."""
    places = {
        "own entering tile": "-1",
        "the midpoint": "33",
        "a Castle": "6",
        "another's entering tile": "16",
        "Home": "74*",
    }
    for mode in MODES:
        for name, place in places.items():
            yield f"4.1 | points: {name} | {mode}, green G1 {place} N {place} | G1 1 N 1"
        for piece in ("G1", "N"):
            position = f"{mode}, green {piece} 51, red G1 54 G2 54"
            yield f"3.5.4 | penalty of {piece} | {position} | {piece} 5"


def _worth() -> Iterator[str]:
    """Yield what captures are worth, by where the own Noble is."""
    places = {
        "in the Yard": "-1",
        "on its entering tile": "0",
        "on the first tile of its Home path": "68",
        "in Home": "75",
        "on a Castle": "41",
        "on a regular tile": "40",
        "next to its entering tile": "1",
        "on another's entering tile": "51",
        "on its midpoint": "34",
    }
    for mode in MODES:
        for name, place in places.items():
            for past in ("", "*") if place != "-1" else ("",):
                words = f"worth: own Noble {name}{', past its midpoint' if past else ''}"
                position = f"{mode}, green G1 35 N {place}{past}, blue G3 36 N 36"
                yield f"4.2 | {words} | {position} | G1 1"


def _ends() -> Iterator[str]:
    """Yield a finish in each place, the last one ending the match.

    The seats before finished in another order than that in which they sit.
    """
    mover = "green G1 75 G2 75 G3 75 G4 75 N 74* turns 5"
    home = [
        f"{SEAT_NAMES[seat]} home turns {4 - seat} combat {10 * seat}" for seat in range(1, SEATS)
    ]
    for mode in MODES:
        for earlier in range(SEATS):
            others = home[:earlier] + [f"{name} turns 5" for name in SEAT_NAMES[1 + earlier :]]
            position = ", ".join([mode, mover, *others])
            yield f"4.3 | finished as number {earlier + 1} | {position} | N 1"
    position = ", ".join([mover, *home])
    yield f"5 | the last seat finishes as the clock runs out | clock 10, {position} | N 1"
