// `fetch`, whose own words for a worker that is not there ("Failed to fetch") help nobody, and which waits for ever for one
// that stands still.

export const SILENT = "the worker does not answer";
const PATIENCE = 30_000; // milliseconds until an answer begins
const LONGEST = 150_000; // of one that is worked out: a worker may read the topics and try a plan for a minute each

/** The response. `asks`: it is worked out for this request. Throws an Error that says that there is none. */
export async function reach(path, options, { asks = false } = {}) {
  const ending = new AbortController();
  const timer = setTimeout(() => ending.abort(), asks ? LONGEST : PATIENCE);
  try {
    return await fetch(path, { ...options, signal: ending.signal });
  } catch (error) {
    throw error instanceof TypeError || ending.signal.aborted ? new Error(SILENT) : error;
  } finally {
    clearTimeout(timer);
  }
}
