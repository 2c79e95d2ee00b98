/* The search as a dialog over any page: results by htmx, rows by arrow keys, Enter opens. */
const palette = document.getElementById("palette");
const box = palette.querySelector("input");
const hits = document.getElementById("hits");
const links = () => [...hits.querySelectorAll("a")];
let answered = null;

const choose = (by) => {
  const rows = links();
  const next = rows.indexOf(document.activeElement) + by;
  (next < 0 ? box : rows[Math.min(next, rows.length - 1)])?.focus();
};

hits.addEventListener("htmx:afterSwap", ({ detail }) => {
  answered = new URL(detail.xhr.responseURL).searchParams.get("q") ?? "";
});
palette.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  // From the box, the first row is the one just below it.
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (by) { event.preventDefault(); choose(by); return; }
  const first = links()[0];
  if (event.key === "Enter" && event.target === box && first && answered === box.value) {
    event.preventDefault();
    first.click();
  }
  // Who types on while in the list goes on in the box.
  if (event.key.length === 1 && event.target !== box) box.focus();
});
palette.addEventListener("click", (event) => {
  if (event.target === palette) palette.close();
});
