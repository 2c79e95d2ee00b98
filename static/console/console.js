/* Upgrades of pages that work without it: times in the viewer's zone, polling only
   while visible, filters that apply themselves, open folds that survive a refresh. */
(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("js");

  /* The zone that the filters ask for, else the profile's (data-zone of <html>), else the browser's. */
  const ownZone = root.dataset.zone || Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  const formsOf = (timeZone) => {
    const two = { hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone };
    return {
      clock: new Intl.DateTimeFormat(undefined, { ...two, second: "2-digit" }),
      minute: new Intl.DateTimeFormat(undefined, two),
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
    if (asked === zone) return;
    try { forms = formsOf(asked); zone = asked; } catch { /* a zone this browser does not know */ }
  };

  const ago = (at) => {
    const seconds = Math.max(0, Math.round((Date.now() - at) / 1000));
    if (seconds < 90) return `${seconds} s ago`;
    if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
    return forms.day.format(at);
  };

  const LATELY = 20 * 3600 * 1000;
  const write = (form, at) => {
    if (form === "ago") return ago(at);
    if (form === "lately") return (Date.now() - at < LATELY ? forms.minute : forms.day).format(at);
    return (forms[form] || forms.day).format(at);
  };

  const showTimes = (within) => {
    chooseZone();
    for (const element of within.querySelectorAll("time[data-form]")) {
      const at = new Date(element.dateTime);
      element.textContent = write(element.dataset.form, at);
      if (!element.dataset.utc) element.dataset.utc = element.title;
      element.title = `${forms.full.format(at)} (${element.dataset.utc})`;
    }
    for (const element of within.querySelectorAll("[data-zone]")) element.textContent = zone;
    for (const box of within.querySelectorAll("[data-zone-box]")) box.placeholder = ownZone;
  };

  setInterval(() => {
    if (document.hidden) return;
    for (const element of document.querySelectorAll("time[data-form=ago]")) {
      element.textContent = ago(new Date(element.dateTime));
    }
  }, 5000);

  const copySnippet = (button) => {
    const text = button.parentElement.querySelector("pre").textContent;
    navigator.clipboard.writeText(text).then(() => {
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
  };
  const addCopyButtons = (within) => {
    if (!navigator.clipboard) return;
    for (const snippet of within.querySelectorAll(".snippet:not(:has(button))")) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = "Copy";
      button.addEventListener("click", () => copySnippet(button));
      snippet.append(button);
    }
  };

  const upgrade = (within) => { showTimes(within); addCopyButtons(within); };
  upgrade(document);

  /* A poll asks nothing while the page is hidden, and catches up when it is seen again. */
  const isPoll = (element) => element.hasAttribute("data-poll");
  document.addEventListener("htmx:confirm", (event) => {
    if (isPoll(event.detail.elt) && document.hidden) event.preventDefault();
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return;
    for (const element of document.querySelectorAll("[data-poll]")) htmx.trigger(element, "seen");
  });

  /* An answer that is the same as the last one is not swapped in: focus, folds and
     the live region stay as they are. */
  const tags = new Map();
  const folds = new Set();
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { elt, target, xhr } = event.detail;
    const tag = xhr.getResponseHeader("ETag");
    const url = xhr.responseURL;
    if (isPoll(elt) && tag && tags.get(url) === tag) event.detail.shouldSwap = false;
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
    const titled = document.querySelector("[data-title]");
    if (titled) document.title = titled.dataset.title;
    if (headline() !== announced) {
      announced = headline();
      announcement.textContent = announced;
    }
  });
  /* What was asked for just now and had not changed was checked just now. */
  document.addEventListener("htmx:afterRequest", (event) => {
    const checked = document.querySelector("time[data-checked]");
    if (!checked || !event.detail.successful) return;
    checked.dateTime = new Date().toISOString();
    checked.textContent = write("ago", new Date());
  });

  /* An address says what was chosen, not what was left open. */
  document.addEventListener("htmx:configRequest", (event) => {
    // A page that refreshes itself keeps no session open.
    if (event.detail.elt.hasAttribute("data-poll")) event.detail.headers["X-Poll"] = "1";
    const { parameters, verb } = event.detail;
    if (verb !== "get") return;
    for (const [name, value] of Object.entries(parameters)) if (value === "") delete parameters[name];
  });

  document.addEventListener("change", (event) => {
    const { form } = event.target;
    if (form && form.hasAttribute("data-auto") && event.target.matches("select, [type=checkbox], [type=radio]")) form.requestSubmit();
  });

  /* Times without a zone are meant in the one that the page shows. */
  document.addEventListener("submit", (event) => {
    const { from, to, tz } = event.target.elements;
    if (tz && !tz.value && (from?.value || to?.value)) tz.value = ownZone;
  }, true);

  /* Suggestions for the last term that is being typed, from the lists of the filter bar. */
  const SHORT = { environment: "env", prompt_version: "prompt" };
  const quoted = (value) => (/[\s":\\]/.test(value) ? `"${value.replace(/["\\]/g, "\\$&")}"` : value);
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
    box.list.replaceChildren(...terms.map((term) => {
      const option = document.createElement("option");
      option.value = before + sign + term;
      return option;
    }));
  };
  document.addEventListener("input", (event) => {
    if (event.target.id === "q" && event.target.list) suggest(event.target);
  });
  document.addEventListener("focusin", (event) => {
    const zones = event.target.hasAttribute("data-zone-box") && event.target.list;
    if (!zones || !Intl.supportedValuesOf || zones.options.length > 20) return;
    zones.replaceChildren(...["UTC", ...Intl.supportedValuesOf("timeZone")].map((name) => {
      const option = document.createElement("option");
      option.value = name;
      return option;
    }));
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy-link]");
    if (!button || !navigator.clipboard) return;
    navigator.clipboard.writeText(location.href).then(() => {
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy link"; }, 2000);
    });
  });

  /* g, then a letter: the pages of the bar. */
  const PAGES = { n: "/", m: "/models/", f: "/failures/", g: "/goals/", i: "/incidents/", l: "/live/" };
  let leading = 0;
  document.addEventListener("keydown", (event) => {
    if (event.target.closest("input, textarea, select, [contenteditable], dialog[open]")) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Date.now() - leading < 1500 && document.querySelector(`.bar nav a[href="${PAGES[event.key]}"]`);
    leading = event.key === "g" && !page ? Date.now() : 0;
    if (page) { event.preventDefault(); event.stopImmediatePropagation(); location.assign(page.href); }
  });

  document.addEventListener("click", (event) => {
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select, [contenteditable]");
    if (event.key === "Escape") {
      for (const menu of document.querySelectorAll("details.menu[open]")) {
        menu.open = false;
        menu.querySelector("summary").focus();
      }
    }
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      const find = document.getElementById("q") || document.getElementById("find");
      if (find) { event.preventDefault(); find.focus(); }
    }
  });
})();
