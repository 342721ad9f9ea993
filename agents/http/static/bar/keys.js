// The keys of the page. What is typed into a field is the field's; a slider or a list of choices is no field for text.

const TYPED = "input:not([type=range]), textarea, select";

/** `acts` by key: what is done. Escape works everywhere. */
export function listenToKeys(acts) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (!acts[key] || (key !== "Escape" && event.target.matches(TYPED))) return;
    event.preventDefault();
    acts[key]();
  });
}
