// A trained policy in an ONNX file: is it the right one, and what does it choose?

import * as ort from 'onnxruntime-web';

import {
  OBSERVATION_VERSION,
  decodeTurn,
  observeSteps,
  observeTurn,
  startDraft,
  stepsMask,
  takeStep,
  turnMask,
  turnOf,
  turnParts,
} from './observation.js';

const EVEN = 1e-4;
const ROUNDED = 1e-6;
const f32 = Math.fround;

ort.env.wasm.numThreads = 1; // a pass takes microseconds; threads would also want page isolation

/**
 * The likeliest legal choice of each part, the first of those that are even.
 * @param {ArrayLike<number>} logits float32, the parts one after the other
 * @param {boolean[]} mask of the same length; each part has a legal choice
 * @param {number[]} nvec how many choices each part has
 */
export function maskedChoice(logits, mask, nvec) {
  let start = 0;
  return nvec.map((size) => {
    const part = Array.from(logits).slice(start, start + size);
    const legal = mask.slice(start, start + size);
    start += size;
    if (!legal.includes(true)) throw new RangeError('an action mask is empty');
    const largest = part.reduce((most, logit) => Math.max(most, Math.abs(logit)), 0);
    const even = Math.max(f32(EVEN), f32(f32(ROUNDED) * largest));
    const best = Math.max(...part.filter((_, choice) => legal[choice]));
    return part.findIndex((logit, choice) => legal[choice] && !(logit < f32(best - even)));
  });
}

/** Throw if a policy was made for something else. */
function check(manifest, rules, digest) {
  const capacity = rules.store_capacity;
  const sizes = { turn: [281 + capacity, 15 + 5 * capacity], steps: [295, 51] };
  const wanted = {
    format: 'retinue-artifact',
    version: 1,
    mode: rules.mode,
    rules_digest: digest,
    observation_version: OBSERVATION_VERSION,
  };
  for (const [key, right] of Object.entries(wanted)) {
    if (manifest[key] !== right) throw new Error(`${key} is ${manifest[key]}, not ${right}`);
  }
  if (!(manifest.encoding in sizes)) {
    throw new Error(`encoding is ${manifest.encoding}: policies over candidates need the service`);
  }
  const [observation, mask] = sizes[manifest.encoding];
  if (manifest.observation_size !== observation || manifest.mask_size !== mask) {
    throw new Error(`sizes are not ${observation} and ${mask}`);
  }
}

export class Policy {
  /**
   * @param {Uint8Array} model the ONNX file
   * @param {object} manifest the JSON file beside it
   * @param {object} rules that are played
   * @param {string} digest of them
   */
  static async load(model, manifest, rules, digest) {
    check(manifest, rules, digest);
    return new Policy(await ort.InferenceSession.create(model), manifest.encoding);
  }

  constructor(session, encoding) {
    this.session = session;
    this.encoding = encoding;
  }

  /** The logits of one observation, a Float32Array. */
  async logits(observation) {
    const observations = new ort.Tensor('float32', observation, [1, observation.length]);
    const { logits } = await this.session.run({ observations });
    return logits.data;
  }

  /**
   * The turn that it plays.
   * @param {object} decision of `receive` in game.js
   * @param {(logits: Float32Array, action: number[]) => void} watch is told of each step
   */
  async choose(decision, watch = () => {}) {
    if (this.encoding === 'turn') {
      const logits = await this.logits(observeTurn(decision));
      const action = maskedChoice(logits, turnMask(decision), turnParts(decision.rules));
      watch(logits, action);
      return decodeTurn(decision, action);
    }
    const draft = startDraft(decision);
    for (let complete = false; !complete;) {
      const logits = await this.logits(observeSteps(decision, draft));
      const mask = stepsMask(decision, draft);
      const action = maskedChoice(logits, mask, [mask.length]);
      watch(logits, action);
      complete = takeStep(decision, draft, action[0]);
    }
    return turnOf(draft);
  }
}
