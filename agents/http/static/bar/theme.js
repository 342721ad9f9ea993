// The chosen theme, before anything is drawn: "light", "dark" or, by default, the system's.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("underhost-theme");
  } catch {
    // Storage may be forbidden: then the choice lasts as long as the page.
  }
  document.documentElement.dataset.theme = chosen === "light" || chosen === "dark" ? chosen : "auto";
})();
