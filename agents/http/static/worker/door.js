// The door of the worker: what the page may do, and signing in with the token once. The cookie that comes of it is the
// browser's to keep; no script can read it, and the token is kept nowhere.

import { reach } from "./reach.js";

const SESSION = "/api/v1/session";

export class SignInNeeded extends Error {}

let standing = null; // {needed, reads, signedIn}, once the worker has said it
let asking = null; // the promise of the dialog that is open
const listeners = [];

/** `told(standing)` at every change: whether there is a token to show, reading is open without, one is signed in. */
export function onStanding(told) {
  listeners.push(told);
}

function stand(now) {
  standing = now;
  for (const told of listeners) told(now);
  return now;
}

let looking = null; // several requests ask at once when the page begins

function look() {
  looking ??= reach(SESSION, { headers: { Accept: "application/json" } })
    .then((response) => (response.ok ? response.json() : Promise.reject(new Error(response.statusText))))
    .then(stand)
    .finally(() => (looking = null));
  return looking;
}

/** Wait until a request is let in. `asks`: it does more than read what is held. `quiet`: nobody is asked to sign in. */
export async function admitted({ asks = false, quiet = false } = {}) {
  const { needed, reads, signedIn } = standing ?? (await look());
  if (!needed || signedIn || (reads && !asks)) return;
  if (quiet || !(await signIn())) throw new SignInNeeded("sign in with the token first");
}

/** A request was refused all the same: the session has ended. Whether it is worth another try. */
export async function admittedAgain(how) {
  const { needed, signedIn } = await look();
  if (!needed || signedIn) return false;
  await admitted(how);
  return true;
}

/** Ask for the token; whether somebody has signed in. */
export function signIn() {
  asking ??= new Promise((done) => {
    const dialog = document.getElementById("sign-in");
    const [form, token, said] = [dialog.querySelector("form"), dialog.querySelector("input"), dialog.querySelector("output")];
    let signedIn = false;
    said.textContent = "";
    form.onsubmit = async (event) => {
      event.preventDefault();
      said.textContent = await show(token.value).catch((error) => String(error.message ?? error));
      signedIn = said.textContent === "";
      token.value = "";
      if (signedIn) dialog.close();
    };
    dialog.querySelector("[type=button]").onclick = () => dialog.close();
    dialog.onclose = () => {
      token.value = "";
      asking = null;
      done(signedIn);
    };
    dialog.showModal();
  });
  return asking;
}

/** Show the token to the worker; what is wrong with it, "" where nothing is. */
async function show(token) {
  const headers = { "Content-Type": "application/json", Accept: "application/json" };
  const response = await reach(SESSION, { method: "POST", headers, body: JSON.stringify({ token: token.trim() }) });
  const answer = await response.json().catch(() => ({ error: `${response.status} ${response.statusText}` }));
  if (!response.ok) return answer.error ?? response.statusText;
  stand(answer);
  return "";
}

/** End the session; what was seen by it is gone from the page. */
export async function signOut() {
  await reach(SESSION, { method: "DELETE" });
  location.reload();
}
