/* A chart that can be zoomed: loaded, with uPlot, when its reader asks for it. The figures
   are those of the table beside it; a range that is chosen becomes a link of the page. */
const make = (name, attributes) => Object.assign(document.createElement(name), attributes);
const load = (name, attributes) => new Promise((resolve, reject) => {
  document.head.append(make(name, { ...attributes, onload: resolve, onerror: reject }));
});

const loaded = new Map();
const once = (address, fetched) => {
  if (!loaded.has(address)) loaded.set(address, fetched());
  return loaded.get(address);
};

const marksOf = (figure) => [...figure.querySelectorAll("ol.flags li[data-at]")].map((item) => [Number(item.dataset.at), item.dataset.n]);
const readLines = ({ since, width, unit, labels, values }) => {
  const lines = values.split("|").map((line) => line.split(",").map((value) => (value === "" ? null : Number(value))));
  const [begin, step] = [Number(since), Number(width)];
  return {
    width: step,
    since: begin,
    until: begin + lines[0].length * step,
    columns: [lines[0].map((value, place) => begin + (place + 0.5) * step), ...lines],
    labels: labels.split("|"), unit, usual: null, onset: null, marks: [],
  };
};

const read = (figure) => {
  if (figure.dataset.values) return readLines(figure.dataset);
  const body = figure.querySelector("tbody[data-width]");
  const width = Number(body.dataset.width);
  const rows = [...body.rows];
  const figures = (name) => rows.map((row) => (name in row.dataset ? Number(row.dataset[name]) : null));
  return {
    width,
    since: Number(rows[0].dataset.at),
    until: Number(rows.at(-1).dataset.at) + width,
    columns: [rows.map((row) => Number(row.dataset.at) + width / 2), ...["share", "low", "high"].map(figures)],
    usual: "usual" in body.dataset ? Number(body.dataset.usual) : null,
    onset: "onset" in body.dataset ? Number(body.dataset.onset) : null,
    marks: marksOf(figure),
  };
};

/* Colours come from the page, whichever theme it has: a canvas knows no custom properties. */
const palette = (figure) => {
  const probe = make("i");
  figure.append(probe);
  const colours = {};
  for (const name of ["ink", "ink-2", "ink-3", "hair", "accent", "bad", "warn"]) {
    probe.className = `colour-${name}`;
    colours[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return colours;
};

const faint = (colour, share) => colour.replace(/^rgb\(([^)]*)\)$/, `rgba($1, ${share})`);

const stroke = (u, x, y, wide, high, thick, colour, dash) => {
  u.ctx.strokeStyle = colour;
  u.ctx.lineWidth = devicePixelRatio * thick;
  u.ctx.setLineDash(dash.map((length) => length * devicePixelRatio));
  u.ctx.beginPath();
  u.ctx.moveTo(x, y);
  u.ctx.lineTo(x + wide, y + high);
  u.ctx.stroke();
};
const strokeAt = (u, at, colour, dash = []) => {
  const x = u.valToPos(at, "x", true);
  if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) return null;
  stroke(u, x, u.bbox.top, 0, u.bbox.height, 1.5, colour, dash);
  return x;
};

const decorate = (u, told, colours) => {
  u.ctx.save();
  if (told.usual !== null) {
    stroke(u, u.bbox.left, u.valToPos(told.usual, "y", true), u.bbox.width, 0, 1, colours["ink-2"], [4, 3]);
  }
  if (told.onset !== null) strokeAt(u, told.onset, colours.bad);
  u.ctx.fillStyle = colours.ink;
  u.ctx.textAlign = "center";
  for (const [at, number] of told.marks) {
    const x = strokeAt(u, at, colours["ink-3"], [2, 3]);
    if (x !== null) u.ctx.fillText(number, x, u.bbox.top - 4 * devicePixelRatio);
  }
  u.ctx.restore();
};

const optionsOf = (told, colours, zone, size, chosen) => {
  const axis = { stroke: colours["ink-2"], grid: { stroke: colours.hair, width: 1 }, ticks: { stroke: colours.hair, width: 1 } };
  const unit = told.write;
  const percent = (u, value) => (value === null ? "none" : unit ? unit(value) : `${value.toFixed(1)} %`);
  const top = unit ? Infinity : 100;
  return {
    ...size,
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), zone),
    padding: [16, 8, 0, 0],
    cursor: { drag: { x: true, y: false, setScale: true } },
    scales: { y: { range: (u, low, high) => [0, Math.min(top, Math.max(high || (unit ? 0.001 : 1), told.usual || 0) * 1.1)] } },
    axes: [{ ...axis, space: 80, values: (u, values, index, space, step) => values.map((at, place) => told.tick(at, values[place - 1], step)) }, { ...axis, size: 52, values: (u, values) => values.map((value) => (unit ? unit(value) : `${value} %`)) }],
    series: [
      { label: "Time", value: (u, at) => (at === null ? "–" : told.moment(at)) },
      ...(told.labels ? told.labels.map((label, place) => ({ label, stroke: place ? colours.warn : colours.accent, width: 2, dash: place ? [6, 3] : [], value: percent, points: { size: 4 } })) : [{ label: "Share", stroke: colours.accent, width: 2, value: percent, points: { size: 4 } },
      { label: "low", stroke: "transparent", value: percent, points: { show: false } },
      { label: "high", stroke: "transparent", value: percent, points: { show: false } }]),
    ],
    bands: told.labels ? [] : [{ series: [3, 2], fill: faint(colours.accent, 0.18) }],
    hooks: { draw: [(u) => decorate(u, told, colours)], setScale: [(u, scale) => { if (scale === "x") chosen(u.scales.x); }] },
  };
};

/* Times in the page's zone; a tick names its day where the day begins. */
const wordsOf = (forms) => {
  const write = (form) => (seconds) => form.format(seconds * 1000);
  const [dayOf, timeOf, moment] = [forms.date, forms.minute, forms.day].map(write);
  const tick = (at, before, step) => {
    if (step >= 86400) return dayOf(at);
    const isNew = before === undefined || dayOf(before) !== dayOf(at);
    return isNew ? `${timeOf(at)}\n${dayOf(at)}` : timeOf(at);
  };
  return { moment, tick };
};

const iso = (seconds) => new Date(seconds * 1000).toISOString().replace(".000Z", "Z");

const button = (label, title, act) => {
  const made = make("button", { type: "button", textContent: label, title, ariaLabel: title });
  made.addEventListener("click", act);
  return made;
};

export const zoom = async (figure, asked, zone, forms, units) => {
  await Promise.all([
    once(asked.dataset.style, () => load("link", { rel: "stylesheet", href: asked.dataset.style })),
    once(asked.dataset.uplot, () => load("script", { src: asked.dataset.uplot })),
  ]);
  const told = { ...read(figure), ...wordsOf(forms), write: units[figure.dataset.unit] };
  const place = figure.querySelector("[data-zoomed]");
  const canvas = make("div");
  const tools = make("p", { className: "row" });
  const range = make("span", { className: "dim small", ariaLive: "polite" });
  const link = make("a", { className: "button", textContent: "Show only this range" });
  /* A range ends where slots end: half a slot would count differently. */
  const chosen = ({ min, max }) => {
    const slot = (at, round) => told.since + round((at - told.since) / told.width) * told.width;
    const from = Math.max(told.since, slot(min, Math.floor));
    const to = Math.min(told.until, Math.max(slot(max, Math.ceil), from + told.width));
    const query = new URLSearchParams(figure.dataset.query);
    query.set("from", iso(from));
    query.set("to", iso(to));
    link.href = `${figure.dataset.page || ""}?${query}`;
    range.textContent = `${told.moment(from)} to ${told.moment(to)}`;
  };
  const size = () => ({ width: Math.max(place.clientWidth - 16, 240), height: 280 });
  let plot;
  const draw = (limits) => {
    plot?.destroy();
    plot = new uPlot(optionsOf(told, palette(figure), zone, size(), chosen), told.columns, canvas);
    plot.setScale("x", limits || { min: told.since, max: told.until });
  };
  const move = (scale, shift) => {
    const { min, max } = plot.scales.x;
    const half = Math.max(((max - min) / 2) * scale, told.width);
    const middle = (min + max) / 2 + (max - min) * shift;
    plot.setScale("x", { min: Math.max(told.since, middle - half), max: Math.min(told.until, middle + half) });
  };
  const still = figure.querySelector("[data-still]");
  const close = () => {
    plot.destroy();
    place.hidden = true;
    place.replaceChildren();
    still.hidden = false;
    asked.disabled = false;
    asked.focus();
  };
  tools.append(
    button("+", "Zoom in", () => move(0.5, 0)), button("−", "Zoom out", () => move(2, 0)),
    button("←", "Earlier", () => move(1, -0.25)), button("→", "Later", () => move(1, 0.25)),
    button("All", "The whole time", () => plot.setScale("x", { min: told.since, max: told.until })),
    range, link, button("Close", "Back to the drawing", close),
  );
  still.hidden = true;
  place.hidden = false;
  place.replaceChildren(canvas, tools);
  draw();
  tools.querySelector("button").focus();
  new ResizeObserver(() => { if (!place.hidden && plot.width !== size().width) plot.setSize(size()); }).observe(place);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    if (!place.hidden) draw({ ...plot.scales.x });
  });
};
