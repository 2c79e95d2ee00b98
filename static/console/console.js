/* Upgrades of pages that work without it: times in the viewer's zone, polling only
   while visible, filters that apply themselves, open folds that survive a refresh. */
const root = document.documentElement;
root.classList.add("js");

/* The zone that the filters ask for, else the profile's (data-zone of <html>), else the browser's,
   as far as this browser knows them: the server's are newer, or its own. */
const isZone = (timeZone) => { try { return !!new Intl.DateTimeFormat([], { timeZone }); } catch { return false; } };
const browserZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const ownZone = [root.dataset.zone, browserZone].find((name) => name && isZone(name)) || "UTC";
const formsOf = (timeZone) => {
  const two = { hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone };
  return {
    clock: new Intl.DateTimeFormat(undefined, { ...two, second: "2-digit" }),
    minute: new Intl.DateTimeFormat(undefined, two),
    date: new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", timeZone }),
    day: new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", ...two }),
    full: new Intl.DateTimeFormat(undefined, {
      year: "numeric", month: "short", day: "numeric", ...two, second: "2-digit", timeZoneName: "short",
    }),
  };
};
let zone = ownZone;
let forms = formsOf(zone);
const chooseZone = () => {
  const asked = document.querySelector("[data-tz]")?.dataset.tz || ownZone;
  if (asked !== zone && isZone(asked)) [zone, forms] = [asked, formsOf(asked)];
};

const isToday = (at) => forms.date.format(at) === forms.date.format(Date.now());
const ago = (at) => {
  const seconds = Math.max(0, Math.round((Date.now() - at) / 1000));
  if (seconds < 90) return `${seconds} s ago`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  return forms.day.format(at);
};

const write = (form, at) => {
  if (form === "ago") return ago(at);
  if (form === "lately") return (isToday(at) ? forms.minute : forms.day).format(at);
  return (forms[form] || forms.day).format(at);
};

const showTimes = (within) => {
  chooseZone();
  for (const element of within.querySelectorAll("time[data-form]")) {
    const at = new Date(element.dateTime);
    element.textContent = write(element.dataset.form, at);
    if (!element.dataset.utc) element.dataset.utc = element.title;
    element.title = element.dataset.utc ? `${forms.full.format(at)} (${element.dataset.utc})` : forms.full.format(at);
  }
  for (const label of within.querySelectorAll("text[data-form]")) label.textContent = write(label.dataset.form, new Date(label.dataset.at));
  for (const element of within.querySelectorAll("span[data-zone]")) element.textContent = zone;
  for (const box of within.querySelectorAll("[data-zone-box]")) box.placeholder = ownZone;
};

setInterval(() => {
  if (document.hidden) return;
  for (const element of document.querySelectorAll("time[data-form=ago]")) {
    element.textContent = ago(new Date(element.dateTime));
  }
}, 5000);

const showCopied = (button) => {
  const label = (button.dataset.label ||= button.textContent);
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = label; }, 2000);
};
const copy = (button, text) => navigator.clipboard.writeText(text).then(() => showCopied(button));
const addCopyButtons = (within) => {
  if (!navigator.clipboard) return;
  for (const snippet of within.querySelectorAll(".snippet:not(:has(button))")) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Copy" });
    button.addEventListener("click", () => copy(button, snippet.querySelector("pre").textContent));
    snippet.append(button);
  }
};

/* The figures of lines are numbers of a unit; shares are percentages. */
const UNITS = {
  ms: (value) => (value >= 1000 ? `${+(value / 1000).toPrecision(3)} s` : `${Math.round(value)} ms`),
  tokens: (value) => value.toLocaleString(undefined, { notation: "compact" }),
  usd: (value) => `$${+value.toPrecision(3)}`,
};
const linesOf = ({ since, width, unit, labels, values }) => {
  const lines = values.split("|").map((line) => line.split(","));
  const figure = (text) => (text ? UNITS[unit](Number(text)) : "–");
  const named = (place) => labels.split("|").map((label, line) => `${label} ${figure(lines[line][place])}`);
  const begin = (place) => write("day", new Date((Number(since) + place * Number(width)) * 1000));
  return lines[0].map((_, place) => [begin(place), ...named(place)].join(" · "));
};

/* The values of a chart under the pointer, or by arrow keys: those of its table. */
const bucketsOf = (figure) => (figure.dataset.values ? linesOf(figure.dataset)
  : [...figure.querySelectorAll("tbody[data-width] tr")]
    .map((row) => [...row.cells].map((cell) => cell.textContent.trim()).join(" · ")));
const readOut = (svg, choose) => {
  const figure = svg.closest("[data-chart]");
  const buckets = bucketsOf(figure);
  const at = Math.min(Math.max(choose(buckets.length), 0), buckets.length - 1);
  svg.dataset.bucket = at;
  figure.querySelector(".readout").textContent = buckets[at];
  svg.querySelector(".cursor").setAttribute("d", `M${((at + 0.5) / buckets.length) * 1000} 0v${svg.height.baseVal.value}`);
};
const STEPS_OF_KEYS = { ArrowLeft: (at) => at - 1, ArrowRight: (at) => at + 1, Home: () => 0, End: () => Infinity };
const addReadouts = (within) => {
  for (const svg of within.querySelectorAll("[data-chart] svg.curve:not([tabindex])")) {
    svg.tabIndex = 0;
    svg.append(document.createElementNS(svg.namespaceURI, "path"));
    svg.lastElementChild.setAttribute("class", "cursor");
    const readout = Object.assign(document.createElement("output"), { className: "readout" });
    readout.textContent = "Point at the chart, or use the arrow keys, for values.";
    svg.closest(".plot").after(readout);
    svg.addEventListener("pointermove", ({ clientX }) => {
      const box = svg.getBoundingClientRect();
      readOut(svg, (count) => Math.floor(((clientX - box.left) / box.width) * count));
    });
    svg.addEventListener("keydown", (event) => {
      const step = STEPS_OF_KEYS[event.key];
      if (!step) return;
      event.preventDefault();
      readOut(svg, (count) => step(Number(svg.dataset.bucket ?? count)));
    });
  }
};
const upgrade = (within) => { showTimes(within); addCopyButtons(within); addReadouts(within); };
upgrade(document);

/* What is new is meant in the reader's own zone, which only the browser knows; a form
   that came back is read from its first fault on. */
for (const box of document.querySelectorAll("[data-own-zone]")) box.value = ownZone;
document.querySelector("main form [aria-invalid=true]")?.focus();

/* A poll asks nothing while the page is hidden, and catches up when it is seen again. */
const isPaused = (element) => element.hasAttribute("data-tail") && document.querySelector("[data-pause][aria-pressed=true]");
const isPoll = (element) => element.hasAttribute("data-poll");
document.addEventListener("htmx:confirm", (event) => {
  if (isPoll(event.detail.elt) && (document.hidden || isPaused(event.detail.elt))) event.preventDefault();
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  for (const element of document.querySelectorAll("[data-poll]")) htmx.trigger(element, "seen");
});

/* The tail: a button pauses it, and it keeps no more rows than a page can bear. */
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-pause]");
  if (!button) return;
  const paused = button.getAttribute("aria-pressed") !== "true";
  button.setAttribute("aria-pressed", paused);
  button.textContent = paused ? "Resume" : "Pause";
  const state = document.querySelector("[data-tail-state]");
  if (state) state.textContent = paused ? "paused" : "following";
  if (!paused) for (const tail of document.querySelectorAll("[data-tail]")) htmx.trigger(tail, "seen");
});
document.addEventListener("htmx:afterSwap", (event) => {
  const tail = event.detail.target;
  if (tail.id !== "tail") return;
  while (tail.children.length > Number(tail.dataset.most)) tail.lastElementChild.remove();
  if (tail.children.length) document.getElementById("tail-empty")?.remove();
});

/* An answer that is the same as the last one is not swapped in: focus, folds and
   the live region stay as they are. */
const tags = new Map();
const folds = new Set();
/* Nor is what a person writes or chooses taken away: until it is sent or emptied, the
   part around it stands still. */
const FIELDS = "input:not([type=hidden]), textarea, select";
const isChanged = (field) => {
  if (field.matches("select")) return field.selectedIndex !== Math.max([...field.options].findIndex((one) => one.defaultSelected), 0);
  return field.matches("[type=checkbox], [type=radio]") ? field.checked !== field.defaultChecked : field.value !== field.defaultValue;
};
const isWrittenIn = (part) => [...part.querySelectorAll(FIELDS)].some((field) => field === document.activeElement || isChanged(field));
let isHeld = false;
document.addEventListener("htmx:beforeSwap", (event) => {
  // The event is the target's own; who asked may be another.
  const { requestConfig: { elt }, target, xhr } = event.detail;
  const tag = xhr.getResponseHeader("ETag");
  const url = xhr.responseURL;
  isHeld = isPoll(elt) && isWrittenIn(target);
  if (isHeld) { event.detail.shouldSwap = false; return; }
  if (isPoll(elt) && tag && tags.get(url) === tag) event.detail.shouldSwap = false;
  // A query that took too long says how to ask for less; a refresh keeps what is there.
  if (xhr.status === 503 && xhr.getResponseHeader("HX-Retarget") && !isPoll(elt)) {
    Object.assign(event.detail, { shouldSwap: true, isError: false });
  }
  if (tag) tags.set(url, tag);
  folds.clear();
  for (const fold of target.querySelectorAll("details[id][open]")) folds.add(fold.id);
});
document.addEventListener("htmx:load", (event) => {
  const within = event.detail.elt;
  for (const fold of within.querySelectorAll("details[id]")) if (folds.has(fold.id)) fold.open = true;
  upgrade(within);
});
/* A live region must outlast the swap to be read out: this one stands outside it. */
const announcement = document.getElementById("announcement");
const headline = () => document.querySelector("[data-announce] h1")?.textContent || "";
let announced = headline();
document.addEventListener("htmx:afterSettle", () => {
  if (headline() !== announced) {
    announced = headline();
    announcement.textContent = announced;
  }
});
/* What a page asked for and did not get is said: a refresh that fails leaves old figures
   standing, and a link that fails would seem to do nothing. */
const fault = document.getElementById("fault");
let silentSince = null;
const sayFault = (event) => {
  const { elt, xhr } = event.detail;
  const why = xhr?.status ? `the server answered ${xhr.status}` : "the server does not answer";
  silentSince ||= new Date();
  fault.textContent = isPoll(elt)
    ? `Not up to date since ${forms.minute.format(silentSince)}: ${why}. Trying again by itself.`
    : `That did not work: ${why}. Nothing was changed; try again.`;
  fault.hidden = false;
};
document.addEventListener("htmx:responseError", sayFault);
document.addEventListener("htmx:sendError", sayFault);
document.addEventListener("htmx:afterRequest", (event) => {
  if (!event.detail.successful) return;
  silentSince = null;
  fault.hidden = true;
  // What was asked for just now and had not changed was checked just now.
  const checked = document.querySelector("time[data-checked]");
  if (!checked || isHeld) return;
  checked.dateTime = new Date().toISOString();
  checked.textContent = write("ago", new Date());
});

/* A session that ended reloads the page, unless something is written there: sending it leads
   to sign-in and back, draft kept. */
document.addEventListener("htmx:beforeOnLoad", (event) => {
  const { elt, xhr } = event.detail;
  if (!isPoll(elt) || !xhr.getResponseHeader("HX-Refresh") || !isWrittenIn(document.body)) return;
  event.preventDefault();
  fault.textContent = "You were signed out. Send what you are writing, then sign in: the draft is kept.";
  fault.hidden = false;
});

/* An address says what was chosen, not what was left open. */
document.addEventListener("htmx:configRequest", (event) => {
  // A page that refreshes itself keeps no session open.
  if (isPoll(event.detail.elt)) event.detail.headers["X-Poll"] = "1";
  const { parameters, verb } = event.detail;
  if (verb !== "get") return;
  for (const [name, value] of Object.entries(parameters)) if (value === "") delete parameters[name];
});

/* A second click sends nothing again: two runs, two keys. What htmx sends, it sends itself;
   a page that comes back from the history, or is left standing, may send once more. */
const RESEND_MS = 8000;
let sentForms = new WeakMap();
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.method !== "post") return;
  if (Date.now() - (sentForms.get(form) ?? -Infinity) < RESEND_MS) event.preventDefault();
  else sentForms.set(form, Date.now());
});
addEventListener("pageshow", () => { sentForms = new WeakMap(); });

document.addEventListener("change", (event) => {
  const { form } = event.target;
  if (form && form.hasAttribute("data-auto") && event.target.matches("select, [type=checkbox], [type=radio]")) form.requestSubmit();
});

/* The bound and the default of a limit are those of the signal that is chosen beside it. */
document.addEventListener("input", ({ target: { form } }) => {
  const { limit, signal } = form?.elements || {};
  if (limit?.dataset.limits) [limit.max, limit.placeholder] = JSON.parse(limit.dataset.limits)[signal.value];
});

/* Times without a zone are meant in the one that the page shows. */
document.addEventListener("submit", (event) => {
  const { from, to, tz } = event.target.elements;
  if (tz && !tz.value && (from?.value || to?.value)) tz.value = ownZone;
}, true);

/* Suggestions for the last term that is being typed, from the lists of the filter bar. */
const SHORT = { environment: "env", prompt_version: "prompt" };
const quoted = (value) => (/[\s":\\]/.test(value) ? `"${value.replace(/["\\]/g, "\\$&")}"` : value);
const fill = (list, values) => list.replaceChildren(...values.map((value) => new Option("", value)));
const suggest = (box) => {
  const at = box.value.lastIndexOf(" ") + 1;
  const [before, typed] = [box.value.slice(0, at), box.value.slice(at)];
  const sign = typed.startsWith("-") ? "-" : "";
  const key = typed.slice(sign.length).split(":")[0];
  const terms = [];
  for (const list of document.querySelectorAll("#pick select")) {
    const name = SHORT[list.name] || list.name;
    terms.push(`${name}:`);
    if (!typed.includes(":") || (key !== name && key !== list.name)) continue;
    for (const option of list.options) if (option.value && option.value !== "-") terms.push(`${key}:${quoted(option.value)}`);
  }
  fill(box.list, terms.map((term) => before + sign + term));
};
document.addEventListener("input", (event) => {
  if (event.target.id === "q" && event.target.list) suggest(event.target);
});
document.addEventListener("focusin", (event) => {
  const zones = event.target.hasAttribute("data-zone-box") && event.target.list;
  if (!zones || !Intl.supportedValuesOf || zones.options.length > 20) return;
  fill(zones, ["UTC", ...Intl.supportedValuesOf("timeZone")]);
});
/* [data-copy-link=seconds] pins the times that are shown, of a range that ends now. */
let shownAt = new Date();
document.addEventListener("htmx:afterSettle", () => { shownAt = new Date(); });
const linkWith = (seconds) => {
  const address = new URL(location.href);
  if (!seconds) return address.href;
  address.searchParams.delete("range");
  address.searchParams.set("from", new Date(shownAt - seconds * 1000).toISOString());
  address.searchParams.set("to", shownAt.toISOString());
  return address.href;
};
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy-link]");
  if (button && navigator.clipboard) copy(button, linkWith(Number(button.dataset.copyLink)));
});

/* [data-copy-from] copies the text behind a link; where that fails, the link is followed. */
const readText = async (address) => {
  const answer = await fetch(address, { headers: { Accept: "text/plain" } });
  if (!answer.ok) throw new Error(answer.statusText);
  return new Blob([await answer.text()], { type: "text/plain" });
};
document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-copy-from]");
  if (!link || !isPlain(event) || !navigator.clipboard || !window.ClipboardItem) return;
  event.preventDefault();
  // The promise is given to the clipboard: a click allows no later write.
  navigator.clipboard.write([new ClipboardItem({ "text/plain": readText(link.href) })])
    .then(() => showCopied(link), () => { location.href = link.href; });
});

/* Lists by keyboard, [data-keys]: j and k go from row to row, x picks, o opens; a button
   with data-key is pressed for what is picked, or for the row one is at. */
const KEYS_OFF = "single keys off";
const areKeysOn = () => localStorage.getItem(KEYS_OFF) === null;
const isPlain = (event) => !(event.ctrlKey || event.metaKey || event.altKey);
const FIELD = "input, textarea, select, [contenteditable]";
const isFree = (event, taken) => areKeysOn() && isPlain(event) && !event.target.closest(taken);
const rowsOf = (list) => [...list.querySelectorAll("tbody > tr")];
const linkOf = (row) => row.querySelector("a.name, a");
const rowAt = (list) => rowsOf(list).find((row) => row.contains(document.activeElement))
  || list.querySelector("tr.current");
const goTo = (list, row) => {
  for (const one of rowsOf(list)) one.classList.toggle("current", one === row);
  linkOf(row)?.focus();
  row.scrollIntoView({ block: "nearest" });
};
const step = (list, by) => {
  const rows = rowsOf(list);
  const at = rows.indexOf(rowAt(list));
  const next = rows[at < 0 ? 0 : Math.min(Math.max(at + by, 0), rows.length - 1)];
  if (next) goTo(list, next);
};
const countPicked = (list) => {
  const picked = list.querySelectorAll("[name=id]:checked").length;
  const told = list.querySelector("[data-picked]");
  if (told) told.textContent = `${picked} selected`;
  return picked;
};
const pick = (list) => {
  const box = rowAt(list)?.querySelector("[name=id]");
  if (box) { box.checked = !box.checked; countPicked(list); }
};
const press = (list, button) => {
  const row = list && rowAt(list);
  const box = row?.querySelector("[name=id]");
  if (list?.querySelector("[name=id]") && !countPicked(list)) {
    if (!box) return;
    box.checked = true;
  }
  if (row) sessionStorage.setItem("row", `${location.pathname} ${rowsOf(list).indexOf(row)}`);
  button.click();
};
const openKeys = () => {
  const dialog = document.getElementById("keys");
  if (!dialog) { document.querySelector("[data-help]")?.click(); return; }
  dialog.querySelector("[data-keys-on]").checked = areKeysOn();
  dialog.showModal();
};
const MOVES = {
  j: (list) => step(list, 1), k: (list) => step(list, -1),
  x: pick, o: (list) => { const row = rowAt(list); if (row) linkOf(row)?.click(); },
};
const ARROWS = { ArrowDown: MOVES.j, ArrowUp: MOVES.k };
document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || !isPlain(event)) return;
  if (event.target.closest("dialog[open], textarea, select, [contenteditable], input:not([type=checkbox])")) return;
  if (event.key === "?") { event.preventDefault(); openKeys(); return; }
  const list = document.querySelector("[data-keys]");
  const move = list && (areKeysOn() && MOVES[event.key]
    || event.target.closest("[data-keys] tbody") && ARROWS[event.key]);
  if (move) { event.preventDefault(); move(list); return; }
  const button = areKeysOn() && /^[a-z[\]]$/.test(event.key)
    && document.querySelector(`[data-key="${event.key}"]`);
  if (button) { event.preventDefault(); press(button.closest("[data-keys]"), button); }
});
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-open-keys]")) openKeys();
  else if (event.target.closest("[data-help]") && document.getElementById("keys")) { event.preventDefault(); openKeys(); }
});
document.addEventListener("change", (event) => {
  const box = event.target;
  if (box.matches("[data-keys-on]")) {
    if (box.checked) localStorage.removeItem(KEYS_OFF); else localStorage.setItem(KEYS_OFF, "yes");
  }
  const list = box.closest("[data-keys]");
  if (!list) return;
  if (box.matches("[data-check-all]")) {
    for (const one of list.querySelectorAll("[name=id]")) one.checked = box.checked;
  }
  countPicked(list);
});
/* After a key that did something the page is a new one: go on where it was pressed. */
const [rowPath, rowNumber] = (sessionStorage.getItem("row") || "").split(" ");
sessionStorage.removeItem("row");
const keyed = document.querySelector("[data-keys]");
if (keyed && rowPath === location.pathname) {
  const row = rowsOf(keyed)[Math.min(Number(rowNumber), rowsOf(keyed).length - 1)];
  if (row) goTo(keyed, row);
}

/* g, then a letter: the pages of the bar. */
let leading = 0;
document.addEventListener("keydown", (event) => {
  if (!isFree(event, `${FIELD}, dialog[open]`)) return;
  const page = Date.now() - leading < 1500 && /^[a-z]$/.test(event.key)
    && document.querySelector(`.bar nav [data-go="${event.key}"]`);
  leading = event.key === "g" && !page ? Date.now() : 0;
  if (page) { event.preventDefault(); event.stopImmediatePropagation(); location.assign(page.href); }
}, true); // Before the keys of a list: the m of g m mutes nothing.

/* The search opens over the page, with what was typed into its box. */
const find = document.getElementById("find");
const openSearch = () => {
  const palette = document.getElementById("palette");
  const box = palette.querySelector("input");
  if (!palette.open) palette.showModal();
  if (find.value) box.value = find.value;
  find.value = "";
  box.focus();
  box.setSelectionRange(box.value.length, box.value.length);
  // What is typed meanwhile waits for nothing.
  import(find.dataset.search);
  htmx.trigger(box, "open");
};
if (find) {
  find.addEventListener("click", openSearch);
  find.addEventListener("input", openSearch);
  document.addEventListener("keydown", (event) => {
    if (event.key !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    event.preventDefault();
    openSearch();
  });
}

/* The zoomable chart comes when it is asked for. */
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-zoom]");
  if (!button) return;
  button.disabled = true;
  import(button.dataset.zoom)
    .then(({ zoom }) => zoom(button.closest("[data-chart]"), button, zone, forms, UNITS))
    .catch(() => { button.textContent = "Zoom could not be loaded"; });
});

document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});
/* Who goes on by keyboard leaves nothing open over what comes next. */
document.addEventListener("focusout", ({ target, relatedTarget }) => {
  const menu = target.closest("details.menu[open]");
  if (menu && relatedTarget && !menu.contains(relatedTarget)) menu.open = false;
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  }
  if (event.key === "/" && isFree(event, FIELD)) {
    const filter = document.getElementById("q");
    if (filter || find) event.preventDefault();
    if (filter) filter.focus(); else if (find) openSearch();
  }
});
