// Dice as a pure function of (seed, seat, that seat's turn, die): SplitMix64's finaliser, counted.

const WORD = (1n << 64n) - 1n;
const GAMMA = 0x9e3779b97f4a7c15n;

/** Scramble a 64-bit word, a BigInt from 0 to 2^64 - 1. */
export function mix(word) {
  word = ((word ^ (word >> 30n)) * 0xbf58476d1ce4e5b9n) & WORD;
  word = ((word ^ (word >> 27n)) * 0x94d049bb133111ebn) & WORD;
  return word ^ (word >> 31n);
}

/**
 * One die, 1 to 6.
 * @param {number} seed 0 to 2^53 - 1
 * @param {number} seat 0 to 3
 * @param {number} turn how many turns this seat has taken before
 * @param {number} index of the die in the roll, from 0
 */
export function die(seed, seat, turn, index) {
  const counter = BigInt(1 + index + 64 * (seat + 4 * turn));
  const key = mix((BigInt(seed) + GAMMA) & WORD);
  const word = mix((key + GAMMA * counter) & WORD);
  return 1 + Number(((word >> 32n) * 6n) >> 32n);
}

/** The first `count` dice of a seat's turn, in the order in which they fall. */
export function roll(seed, seat, turn, count) {
  return Array.from({ length: count }, (_, index) => die(seed, seat, turn, index));
}
