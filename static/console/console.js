/* Upgrades of pages that work without it: times in the viewer's zone, polling only
   while visible, filters that apply themselves, open folds that survive a refresh. */
(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("js");

  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  const two = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  const forms = {
    clock: new Intl.DateTimeFormat(undefined, { ...two, second: "2-digit" }),
    minute: new Intl.DateTimeFormat(undefined, two),
    day: new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", ...two }),
    full: new Intl.DateTimeFormat(undefined, {
      year: "numeric", month: "short", day: "numeric", ...two, second: "2-digit", timeZoneName: "short",
    }),
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
    for (const element of within.querySelectorAll("time[data-form]")) {
      const at = new Date(element.dateTime);
      element.textContent = write(element.dataset.form, at);
      if (!element.dataset.utc) element.dataset.utc = element.title;
      element.title = `${forms.full.format(at)} (${element.dataset.utc})`;
    }
    for (const element of within.querySelectorAll("[data-zone]")) element.textContent = zone;
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
    const { parameters, verb } = event.detail;
    if (verb !== "get") return;
    for (const [name, value] of Object.entries(parameters)) if (value === "") delete parameters[name];
  });

  document.addEventListener("change", (event) => {
    const form = event.target.form;
    if (form && form.hasAttribute("data-auto")) form.requestSubmit();
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
      const find = document.getElementById("find");
      if (find) { event.preventDefault(); find.focus(); }
    }
  });
})();
