/* Charts. Each has its numbers as a table beside it, for those who don't see it. */
const waiting = [], drawn = [];

function css(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

/* `make` gives Chart.js its configuration when it is drawn: colours are those of that moment. */
function chart(label, height, make) {
  const canvas = el("canvas", { role: "img", "aria-label": label });
  const box = el("div", { class: "chart" }, canvas);
  box.style.height = height + "px";
  waiting.push({ canvas, make });
  return box;
}
function dropCharts() {
  drawn.splice(0).forEach((c) => c.chart.destroy());
  waiting.length = printers.length = 0;
}
function drawCharts() {
  Chart.defaults.color = css("--muted");
  Chart.defaults.borderColor = css("--line");
  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  Chart.defaults.font.size = 13;
  Chart.defaults.animation = false;
  Chart.defaults.maintainAspectRatio = false;
  const list = drawn.splice(0).map((c) => { c.chart.destroy(); return c.item; }).concat(waiting.splice(0));
  for (const item of list) drawn.push({ item, chart: new Chart(item.canvas, item.make()) });
  timelines.forEach((t) => t.draw());
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawCharts);
narrow.addEventListener("change", () => { printers.forEach((p) => p(false)); drawCharts(); });
addEventListener("beforeprint", () => { printers.forEach((p) => p(true)); drawCharts(); });
addEventListener("afterprint", () => { printers.forEach((p) => p(false)); drawCharts(); });

/* On paper the canvas keeps the colours it was drawn in: light ones, whatever the screen has. */
const paper = matchMedia("print");
paper.addEventListener("change", drawCharts);

const figure = (caption, box, more) => el("figure", {}, el("figcaption", {}, caption), box, more ? el("details", { class: "screen" }, el("summary", {}, "The same as a table"), more) : null);
const tick = (format) => ({ callback: (v) => format(Number(v)), maxTicksLimit: narrow.matches ? 4 : paper.matches ? 6 : 11, maxRotation: 0 });
/* The label of a bar, in lines that leave room for the bar on a phone. */
function lines(s) {
  const most = narrow.matches ? 20 : 44, out = [""];
  for (const word of s.split(/(?<=[ /_])/)) {
    if (out[out.length - 1] && (out[out.length - 1] + word).trimEnd().length > most) out.push("");
    out[out.length - 1] += word;
  }
  return out.slice(0, 3).map((l, i) => short(l.trimEnd() + (i === 2 && out.length > 3 ? "…" : ""), most));
}
/* The height of as many bars with these labels: no label reaches into the next. */
const tall = (names, least) => names.length * Math.max(least, ...names.map((n) => 16 * lines(n).length));
const short = (s, n) => (s.length > n ? s.slice(0, n - 1) + "…" : s);

/* ---- from what was measured to the bound ---- */

/* Without a waterfall, the three numbers of the ladder: they add up to the latency, too. Nothing where there is no bound. */
function steps(a, l) {
  if (!a.goal.enough || l.defect || l.foreign || l.ran_on || !known(l.latency)) return null;
  if (l.waterfall && l.waterfall.steps.length) return { from: l.waterfall.from, to: l.waterfall.to, name: "bound", list: l.waterfall.steps };
  if (known(l.excess)) return { from: l.latency, to: a.goal.parallel, name: "parallel bound", list: [{ name: l.device ? "device idle" : "outside of library calls", seconds: l.idle }, { name: "more work than the bound", seconds: l.excess }, { name: "one after the other", seconds: l.overlap }] };
  return { from: l.latency, to: a.goal.sequential, name: a.goal.bound + " bound", list: [{ name: "all that is above the bound", seconds: l.latency - a.goal.sequential }] };
}

function waterfall(a, l) {
  const w = steps(a, l);
  if (!w) return null;
  let at = w.from;
  const rows = [{ name: "measured", from: 0, to: w.from, total: true }];
  for (const s of w.list) { rows.push({ name: (s.seconds < 0 ? "contradiction: " : "") + s.name, from: at, to: at - s.seconds, s: s.seconds }); at -= s.seconds; }
  rows.push({ name: w.name, from: 0, to: w.to, total: true });
  const color = (r) => (r.total ? css("--bar") : r.s < 0 ? css("--loss") : css("--gain"));
  const box = chart("Waterfall from the measured latency to the bound", 60 + tall(rows.map((r) => r.name), 34), () => ({
    type: "bar",
    data: { labels: rows.map((r) => lines(r.name)), datasets: [{ data: rows.map((r) => [r.from, r.to]), backgroundColor: rows.map(color), borderRadius: 3, maxBarThickness: 26, minBarLength: 2 }] },
    options: { indexAxis: "y", plugins: { legend: { display: false }, tooltip: { callbacks: { title: (t) => rows[t[0].dataIndex].name, label: (t) => { const r = rows[t.dataIndex]; return r.total ? time(r.to) : r.s < 0 ? `the records are ${time(-r.s)} above what was measured` : "saves " + time(r.s); } } } },
      scales: { x: { beginAtZero: true, ticks: tick(time) }, y: { grid: { display: false }, ticks: { autoSkip: false, color: css("--text") } } } } }));
  const rest = table("From measured to the bound: the steps add up exactly", [text("Step", (r) => r.name), number("Saves", (r) => (r.total || r.s < 0 ? NaN : r.s), time), number("Of measured", (r) => (r.total ? r.to : r.s < 0 ? NaN : r.s) / w.from, percent), number("Left", (r) => r.to, time)], rows, { fixed: true });
  return figure("From measured to the bound: each step is time that could be saved.", box, rest);
}

function joint(l) {
  if (!l || !l.waterfall || !l.waterfall.joint.some((x) => x.ways.length && known(x.seconds))) return null;
  const names = { framework: "no framework overhead", algorithms: "best algorithms", precision: "lower precision" };
  const rows = l.waterfall.joint.filter((x) => known(x.seconds)).map((x) => ({ s: x.seconds, n: x.ways.length, name: x.ways.map((w) => names[w] || w).join(" + ") || "as measured" }));
  return el("details", {}, el("summary", {}, "Any combination of these ways"), table("Latency with each combination", [text("With", (r) => r.name, "wrap"), number("Ways", (r) => r.n, count), number("Latency", (r) => r.s, time), number("Speed-up", (r) => l.waterfall.from / r.s, times)], rows, { sort: 2, down: false }));
}

function bounds(a, l) {
  const rows = [];
  const add = (name, s, prov) => known(s) && rows.push({ name, s, prov });
  const f = a.fused;
  add("hardware", a.goal.hardware, "modelled");
  const records = ["measured", "imported", "modelled"].filter((p) => a[p]).join(", ");
  if (a.goal.enough) {
    if (f) { add("fused, parallel", f.parallel, records); add("fused", f.sequential, records); }
    add("parallel", a.parallel, records);
    for (const s of a.streams.slice(1).reverse()) add(s.k + " streams", s.seconds, records);
    add("sequential", a.sequential, records);
    if (a.goal.far) add("weights from far", a.goal.sequential + a.goal.far, "modelled");
  }
  if (l) { add(l.device ? "device busy" : "library busy", l.busy, "profile"); add("measured", l.latency, "profile"); }
  const box = chart("The bounds, from the hardware to what was measured", 50 + tall(rows.map((r) => r.name), 28), () => ({
    type: "bar",
    data: { labels: rows.map((r) => lines(r.name)), datasets: [{ data: rows.map((r) => r.s), backgroundColor: rows.map((r) => (r.prov === "profile" ? css("--loss") : r.prov === "modelled" ? css("--bar2") : css("--bar"))), borderRadius: 3, maxBarThickness: 22 }] },
    options: { indexAxis: "y", plugins: { legend: { display: false }, tooltip: { callbacks: { label: (t) => time(t.raw) } } }, scales: { x: { beginAtZero: true, ticks: tick(time) }, y: { grid: { display: false }, ticks: { autoSkip: false, color: css("--text") } } } } }));
  if (!rows.length) return null;
  return figure("The ladder: what the hardware allows, what the libraries reach, what was measured.", box,
    table("The ladder", [text("Bound", (r) => r.name), number("Time", (r) => r.s, time), number("Of the " + a.goal.bound + " bound", (r) => (a.goal.enough ? r.s / a.goal.sequential : NaN), percent), text("From", (r) => r.prov)], rows, { fixed: true }));
}

function kinds(a) {
  const by = new Map();
  for (const x of a.layers) if (known(x.seconds)) { const k = by.get(x.kind) || { kind: x.kind, n: 0, s: 0 }; k.n++; k.s += x.seconds; by.set(x.kind, k); }
  const rows = [...by.values()].sort((x, y) => y.s - x.s), top = rows.slice(0, 10);
  if (rows.length < 2 || !a.goal.enough) return null;
  const box = chart("The bound's time by kind of layer", 50 + 26 * top.length, () => ({
    type: "bar",
    data: { labels: top.map((r) => lines(r.kind)), datasets: [{ data: top.map((r) => r.s), backgroundColor: css("--bar"), borderRadius: 3, maxBarThickness: 20 }] },
    options: { indexAxis: "y", plugins: { legend: { display: false }, tooltip: { callbacks: { label: (t) => `${time(t.raw)}, ${plural(top[t.dataIndex].n, "layer")}` } } }, scales: { x: { beginAtZero: true, ticks: tick(time) }, y: { grid: { display: false }, ticks: { autoSkip: false, color: css("--text") } } } } }));
  return figure("Where the bound's time goes, by kind of layer.", box, table("Time by kind", [text("Kind", (r) => r.kind), number("Layers", (r) => r.n, count), number("Time", (r) => r.s, time), number("Share", (r) => share(a, r.s), percent)], rows, { sort: 2 }));
}

function ladderSection(a, l) {
  const parts = [l ? waterfall(a, l) : null, l ? joint(l) : null, bounds(a, l), kinds(a)];
  return parts.some(Boolean) ? section("ladder", l ? "From measured to the bound" : "The bounds", ...parts) : null;
}

/* ---- roofline ---- */

function roofline(a) {
  const same = new Map(); /* equal layers are one dot */
  for (const x of a.layers) {
    if (!(x.seconds > 0 && x.flops > 0 && x.bytes > 0)) continue;
    const q = same.get(x.key) || { x: x.flops / x.bytes, y: (x.flops * x.times) / x.seconds, layer: x, n: 0, s: 0 };
    q.n++; q.s += x.seconds;
    same.set(x.key, q);
  }
  const points = [...same.values()];
  if (!points.length) return null;
  const xs = points.map((q) => q.x), low = Math.pow(10, Math.floor(Math.log10(Math.min(...xs) * 0.7))), high = Math.pow(10, Math.ceil(Math.log10(Math.max(...xs, 10) * 1.4)));
  const ceilings = [], line = (name, get, dash) => ceilings.push({ name, dash, points: Array.from({ length: 81 }, (_, i) => { const x = low * Math.pow(high / low, i / 80); return { x, y: get(x) }; }) });
  const flops = a.flops.find((f) => f.dtype === (a.dtype || "f32")) || a.flops[0], memory = a.bandwidth[a.bandwidth.length - 1], cache = a.bandwidth[0];
  if (flops && memory) line(`${flops.dtype} peak ${count(flops.rate)}FLOP/s, memory ${count(memory.rate)}B/s`, (x) => Math.min(flops.rate, x * memory.rate));
  if (flops && cache && cache !== memory && cache.rate > 1.05 * memory.rate) line(`cache (${bytes(cache.bytes)}) ${count(cache.rate)}B/s`, (x) => Math.min(flops.rate, x * cache.rate), [5, 4]);
  /* memory would limit it, were it not for a cache of which no rate is known */
  const inside = (x) => flops && cache && !known(cache.rate) && x.bytes < memory.bytes && x.flops / x.bytes < flops.rate / memory.rate;
  const radius = (q) => 3 + 14 * Math.sqrt(q.s / a.sequential);
  const sets = [["limited by arithmetic", (x) => x.limit === "arithmetic" && !inside(x), "--bar"], ["limited by memory", (x) => x.limit === "memory", "--warn"], ["fits the cache, whose rate the data sheet does not tell", (x) => x.limit === "arithmetic" && inside(x), "--gain"], ["roofline not known", (x) => x.limit === null, "--muted"]]
    .map(([label, take, color]) => ({ label, color, list: points.filter((q) => take(q.layer)) })).filter((s) => s.list.length);
  const box = chart("Roofline: operations per second over operations per byte, both logarithmic", 440, () => ({
    type: "scatter",
    data: { datasets: sets.map((s) => ({ label: s.label, data: s.list, backgroundColor: css(s.color) + "b0", borderColor: css("--page"), borderWidth: 1, pointRadius: s.list.map(radius), pointHoverRadius: s.list.map((q) => radius(q) + 2) }))
      .concat(ceilings.map((c) => ({ label: c.name, data: c.points, type: "line", borderColor: css("--text"), borderWidth: 1.5, borderDash: c.dash, pointStyle: "line", pointRadius: 0, pointHitRadius: 0, fill: false }))) },
    options: { plugins: { legend: { position: "bottom", labels: { usePointStyle: true, boxHeight: 8 } }, tooltip: { callbacks: { label: (t) => (t.raw.layer ? `${short(t.raw.layer.name, 50)}${t.raw.n > 1 ? ` and ${t.raw.n - 1} like it` : ""}: ${time(t.raw.layer.seconds)} each, ${count(t.raw.y)}FLOP/s` : t.dataset.label) } } },
      scales: { x: { type: "logarithmic", min: low, max: high, title: { display: true, text: "operations per byte" }, ticks: decades() }, y: { type: "logarithmic", min: 0.5 * Math.min(...points.map((q) => q.y)), max: 2 * Math.max(flops ? flops.rate : 0, ...points.map((q) => q.y)), title: { display: true, text: "operations per second" }, ticks: decades() } } } }));
  return section("roofline", "Roofline", figure("Each dot is a layer at its cheapest record, equal layers together; its size is its share of the bound. The line is what the hardware allows" + (a.no_peaks ? ": not known, " + a.no_peaks : ` (${a.peaks})`) + ". Winograd’s algorithm needs fewer multiplications than are counted here, so that convolutions can stand above it.", box));
}
const decades = () => decadesOf((v) => (v < 1 ? String(Number(v.toPrecision(1))) : count(v)));
function decadesOf(format) {
  return { callback: (v) => (Math.abs(Math.log10(v) - Math.round(Math.log10(v))) < 1e-9 ? format(v) : null), autoSkip: false, maxRotation: 0 };
}
