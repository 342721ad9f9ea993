// `fetch`, whose own words for a worker that is not there ("Failed to fetch") help nobody, and which waits for ever for one
// that stands still.

export const SILENT = "the worker does not answer";
const PATIENCE = 30_000; // milliseconds until an answer begins
// Of one that is worked out: a worker may read the topics and try a plan for a minute each. And until one that has begun ends.
const LONGEST = 150_000;

/** The response, all of it read. `asks`: it is worked out for this request. Throws an Error that says that there is none. */
export async function reach(path, options, { asks = false } = {}) {
  const ending = new AbortController();
  const within = (milliseconds) => setTimeout(() => ending.abort(), milliseconds);
  let timer = within(asks ? LONGEST : PATIENCE);
  try {
    const response = await fetch(path, { ...options, signal: ending.signal });
    clearTimeout(timer);
    timer = within(LONGEST);
    const body = await response.arrayBuffer();
    return new Response(body.byteLength ? body : null, response);
  } catch (error) {
    throw error instanceof TypeError || ending.signal.aborted ? new Error(SILENT) : error;
  } finally {
    clearTimeout(timer);
  }
}
