// The service's answers, its refusals in words, and patience when it cannot be reached.

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 8000;
const MOST_SECONDS = 180; // the first request may wait until the engine is compiled

/** A refusal: what the service says of it. */
export class ServiceError extends Error {
  constructor(status, { code, field, reason }) {
    super(field ? `${field}: ${reason}` : reason);
    this.status = status;
    this.code = code;
  }
}

/** Fires `lost` when the service cannot be reached, and `back` when it answers again. */
export const connection = new EventTarget();
let isLost = false;

function report(lost) {
  if (lost === isLost) return;
  isLost = lost;
  connection.dispatchEvent(new Event(lost ? "lost" : "back"));
}

const pause = (milliseconds, signal) =>
  new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)));
  });

async function refusal(response) {
  const fallback = { code: "unknown", field: null, reason: `the service answered ${response.status}` };
  const body = await response.json().catch(() => null);
  return new ServiceError(response.status, body?.error ?? fallback);
}

/**
 * Return the response to a request. What cannot be reached, or has too much to do, is asked again
 * until it answers, unless `once`: for what must not happen twice.
 */
async function send(path, { body, token, signal, once = false } = {}) {
  const headers = {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (token) headers.Authorization = `Bearer ${token}`;
  const options = { method: body === undefined ? "GET" : "POST", headers, cache: "no-store" };
  if (body !== undefined) options.body = JSON.stringify(body);
  for (let wait = FIRST_PAUSE; ; wait = Math.min(2 * wait, LONGEST_PAUSE)) {
    const limit = AbortSignal.timeout(1000 * MOST_SECONDS);
    options.signal = signal ? AbortSignal.any([signal, limit]) : limit;
    let response = null;
    try {
      response = await fetch(path, options);
    } catch (error) {
      signal?.throwIfAborted();
      if (once) throw new Error("the service cannot be reached", { cause: error });
      report(true);
    }
    if (response) {
      report(false);
      if (response.ok) return response;
      if (once || ![429, 503].includes(response.status)) throw await refusal(response);
      wait = Math.max(wait, 1000 * (Number(response.headers.get("Retry-After")) || 0));
    }
    await pause(wait, signal);
  }
}

/** Return the JSON that answers a GET, or a POST if there is a `body`. */
export async function ask(path, options) {
  return (await send(path, options)).json();
}

export async function askText(path, options) {
  return (await send(path, options)).text();
}

/**
 * Follow the events of a match, from after the turns already `known()` and through every loss of the
 * connection. `handlers` has a function for each kind of event, and `gone` for when the match has
 * been lost. Returns a function that ends it.
 */
export function follow(id, known, handlers) {
  const ending = new AbortController();
  const { signal } = ending;
  let source = null;
  let wait = FIRST_PAUSE;
  const open = () => {
    source = new EventSource(`/v1/matches/${id}/events?after=${known() - 1}`);
    source.addEventListener("open", () => {
      wait = FIRST_PAUSE;
      report(false);
    });
    for (const name of ["turn", "due", "end"])
      source.addEventListener(name, (event) => {
        if (name === "end") source.close();
        handlers[name](JSON.parse(event.data));
      });
    source.addEventListener("error", again);
  };
  // Browsers connect again by themselves only in some cases, and never tell a refusal from a loss.
  const again = async () => {
    source.close();
    report(true);
    try {
      await pause(wait, signal);
      wait = Math.min(2 * wait, LONGEST_PAUSE);
      await ask(`/v1/matches/${id}`, { signal });
      open();
    } catch (error) {
      if (!signal.aborted) handlers.gone(error);
    }
  };
  open();
  return () => {
    ending.abort();
    source.close();
  };
}
