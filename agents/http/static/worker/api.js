// The connection to the worker: documents once, then its events. It ends and comes back without losing what happened
// meanwhile; where too much happened, everything is read again.

import { SignInNeeded, admitted, admittedAgain } from "./door.js";
import { SILENT, reach } from "./reach.js";

const PIECES = 10_000; // pods above which the map comes in pieces
const SILENCE = 45_000; // milliseconds: three heartbeats of the server
const HIDDEN = 60_000; // a tab that nobody sees gives its connection back: a browser has six for one server
const LIVE = Object.freeze({ state: "live", text: "live" });
const FIRST_PAUSE = 1000;
const LONGEST_PAUSE = 15_000;

/** A document. `asks`: it is worked out for this request; `quiet`: nobody is asked to sign in for it. */
export function getJson(path, how = {}) {
  return ask(path, { headers: { Accept: "application/json" } }, how);
}

export function postJson(path, body) {
  const headers = { "Content-Type": "application/json", Accept: "application/json" };
  return ask(path, { method: "POST", headers, body: JSON.stringify(body) }, { asks: true });
}

async function ask(path, options, how) {
  await admitted(how);
  let response = await reach(path, options, how);
  if (response.status === 401 && (await admittedAgain(how))) response = await reach(path, options, how);
  const said = `${response.status} ${response.statusText}`;
  const document = await response.json().catch(() => null); // a proxy's page, say
  if (!response.ok) throw new Error(document?.error ?? said);
  if (document === null) throw new Error(`the answer is not that of a worker (${said})`);
  return document;
}

const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

/**
 * Follows one site. `told` gets (kind, data): severities, sites, state, load, change, activity, activities. A state is live,
 * waiting, lost, paused, or unready: the worker answers, and says itself why the site is not up to date.
 */
export class Live {
  #site = "";
  #told;
  #source = null;
  #seen = "";
  #run = 0;
  #watchdog = 0;
  #pause = FIRST_PAUSE;

  constructor(told) {
    this.#told = told;
    let hiding = 0;
    document.addEventListener("visibilitychange", () => {
      clearTimeout(hiding);
      if (document.hidden) hiding = setTimeout(() => this.#rest(), HIDDEN);
      else if (!this.#source) this.#begin();
    });
  }

  /** Follow this site from now on; "" is the worker's own. */
  follow(site) {
    this.#site = site;
    this.#seen = "";
    this.#begin();
  }

  #rest() {
    this.#run += 1;
    this.#close();
    this.#told("state", { state: "paused", text: "paused" });
  }

  #close() {
    clearTimeout(this.#watchdog);
    this.#source?.close();
    this.#source = null;
  }

  async #begin() {
    const run = (this.#run += 1);
    this.#close();
    while (run === this.#run) {
      try {
        const [{ severities }, sites] = await Promise.all([getJson("/api/v1/severities"), getJson("/api/v1/sites")]);
        if (run !== this.#run) return;
        this.#told("severities", severities);
        this.#told("sites", sites);
        const name = this.#site || sites.sites.find((each) => each.ready)?.site || sites.sites[0]?.site;
        const summary = sites.sites.find((each) => each.site === name);
        if (summary?.ready) {
          this.#site = name;
          await this.#open(run, summary.pods > PIECES);
          return;
        }
        this.#told("state", { state: "waiting", text: "waiting", reason: summary?.reason ?? `no site ${name}` });
      } catch (error) {
        if (run !== this.#run) return;
        if (error instanceof SignInNeeded) {
          this.#told("state", { state: "waiting", text: "signed out", reason: String(error.message) });
          return;
        }
        this.#told("state", { state: "lost", text: "not connected", reason: String(error.message ?? error) });
        this.#pause = Math.min(LONGEST_PAUSE, this.#pause * 1.6);
      }
      await sleep(this.#pause);
    }
  }

  async #open(run, large) {
    const query = `site=${encodeURIComponent(this.#site)}`;
    if (!this.#seen) {
      const [map, findings] = await Promise.all([
        getJson(`/api/v1/map?${query}${large ? "&pods=named" : ""}`),
        getJson(`/api/v1/findings?${query}`),
      ]);
      if (run !== this.#run) return;
      this.#seen = older(map.version, findings.version);
      this.#told("load", { site: this.#site, map, findings: findings.findings, notJudged: findings.notJudged });
    }
    getJson(`/api/v1/activity?${query}`).then(
      (document) => run === this.#run && this.#told("activities", document.entries),
      () => {}, // it is shown once it can be had
    );
    this.#listen(run, query);
  }

  #listen(run, query) {
    const source = new EventSource(`/api/v1/events?${query}&since=${encodeURIComponent(this.#seen)}`);
    this.#source = source;
    const heard = () => {
      clearTimeout(this.#watchdog);
      this.#watchdog = setTimeout(silent, SILENCE);
    };
    const silent = () => {
      if (run !== this.#run) return;
      this.#told("state", { state: "lost", text: "reconnecting", reason: SILENT });
      this.#begin();
    };
    const on = (kind, act) =>
      source.addEventListener(kind, (event) => {
        if (run !== this.#run) return;
        heard();
        if (event.lastEventId) this.#seen = event.lastEventId;
        act(event.data);
      });
    source.onopen = () => {
      this.#pause = FIRST_PAUSE;
      heard();
      this.#told("state", LIVE);
    };
    source.onerror = () => {
      if (run !== this.#run) return;
      this.#told("state", { state: "lost", text: "reconnecting", reason: SILENT });
      if (source.readyState === EventSource.CLOSED) setTimeout(() => run === this.#run && this.#begin(), this.#pause);
    };
    on("ping", (data) => {
      const { reason } = JSON.parse(data);
      this.#told("state", reason ? { state: "unready", text: "not up to date", reason } : LIVE);
    });
    on("change", (data) => this.#told("change", JSON.parse(data)));
    on("activity", (data) => this.#told("activity", JSON.parse(data)));
    on("reset", () => {
      this.#seen = "";
      this.#begin();
    });
    heard();
  }
}

/** Of two versions of one feed, the one that saw less. */
function older(one, other) {
  const at = (version) => Number(version.slice(version.lastIndexOf("-") + 1));
  return at(one) <= at(other) ? one : other;
}
