/* One iteration of the profile on a canvas: rows of calls, kernels and what lies between. */
const timelines = [];
const ROW_COLORS = { range: "--bar2", op: "--bar2", call: "--bar", api: "--muted", kernel: "--gain", copy: "--warn", memset: "--warn", sync: "--loss" };
const LINE = 17, LABEL = 15;

/* Where nothing of the busiest sort runs: kernels where there are any, else library calls. */
function gaps(t) {
  const sort = ["kernel", "call", "op"].find((k) => t.rows.some((r) => r.kind === k));
  const busy = t.rows.filter((r) => r.kind === sort || (sort === "kernel" && /copy|memset/.test(r.kind))).flatMap((r) => r.events.map((e) => [e[0], e[0] + e[1]])).sort((a, b) => a[0] - b[0]);
  const out = [];
  let end = 0;
  for (const [from, to] of busy) { if (from > end) out.push([end, from - end]); end = Math.max(end, to); }
  if (end < t.length) out.push([end, t.length - end]);
  return { sort, list: out };
}

function timeline(t) {
  timelines.length = 0;
  if (!t) return null;
  const idle = gaps(t), span = Math.max(t.length, ...t.rows.flatMap((r) => r.events.slice(-1).map((e) => e[0] + e[1])));
  const rows = [{ name: `gaps: no ${idle.sort} runs`, kind: "gap", depth: 1, events: idle.list.map(([s, n]) => [s, n, -1, 0]) }, ...t.rows];
  return section("timeline", "Timeline of one iteration",
    el("p", { class: "note" }, `The steady iteration of median latency, ${time(t.length * 1e-9)}` + (t.left_out ? `; the ${t.left_out} shortest events are left out` : "") + ". Drag to move; zoom with the buttons, with + and −, or with Ctrl and the wheel."),
    ...drawRows(t, rows, span, "Timeline of one iteration"), timelineTable(t, rows));
}

/* The drawing of rows of events, with its controls. */
function drawRows(t, rows, span, title) {
  const canvas = el("canvas", { tabindex: "0", role: "application", "aria-label": `${title}. Arrow keys move, plus and minus zoom, 0 shows all.` });
  const status = el("p", { class: "note", role: "status" });
  let top = 24;
  for (const r of rows) { r.top = top; top += LABEL + LINE * Math.max(1, r.depth) + 7; }
  const height = top + 4;
  let from = 0, width = span;
  const pixels = () => canvas.clientWidth || 1;
  const name = (e) => (e[2] < 0 ? "gap" : t.names[e[2]]);
  function clamp() { width = Math.min(span, Math.max(span / 5000, width)); from = Math.max(0, Math.min(span - width, from)); }
  function draw() {
    const ratio = devicePixelRatio || 1, w = pixels(), c = canvas.getContext("2d");
    canvas.width = w * ratio; canvas.height = height * ratio; canvas.style.height = height + "px";
    c.scale(ratio, ratio);
    c.font = "12px " + getComputedStyle(document.body).fontFamily;
    axis(c, w);
    for (const r of rows) {
      c.fillStyle = css("--muted");
      c.fillText(r.name, 6, r.top + 10);
      c.fillStyle = css(r.kind === "gap" ? "--loss" : ROW_COLORS[r.kind] || "--bar");
      for (const e of r.events) bar(c, r, e, w);
    }
  }
  function axis(c, w) {
    const least = (width / w) * 80, step = Math.pow(10, Math.floor(Math.log10(least))), by = [1, 2, 5, 10].map((f) => f * step).find((s) => s >= least);
    c.strokeStyle = css("--line");
    c.fillStyle = css("--muted");
    for (let x = Math.ceil(from / by) * by; x <= from + width; x += by) {
      const at = ((x - from) / width) * w;
      c.beginPath(); c.moveTo(at + 0.5, 18); c.lineTo(at + 0.5, height); c.stroke();
      const label = time(x * 1e-9);
      c.fillText(label, Math.min(w - c.measureText(label).width - 4, at + 3), 13);
    }
  }
  function bar(c, r, e, w) {
    const x = ((e[0] - from) / width) * w, n = Math.max(0.6, (e[1] / width) * w);
    if (x > w || x + n < 0) return;
    const left = Math.max(0, x), y = r.top + LABEL + e[3] * LINE, shown = Math.min(x + n, w) - left;
    c.globalAlpha = e[3] % 2 ? 0.7 : 0.95;
    c.fillRect(left, y, Math.max(0.6, shown - (shown > 3 ? 0.7 : 0)), LINE - 2);
    c.globalAlpha = 1;
    if (shown < 46 || e[2] < 0) return;
    const color = c.fillStyle;
    c.save(); c.beginPath(); c.rect(left, y, shown - 3, LINE); c.clip();
    c.fillStyle = css("--page");
    c.fillText(name(e), left + 4, y + 11.5);
    c.restore();
    c.fillStyle = color;
  }
  function at(event) {
    const box = canvas.getBoundingClientRect(), x = from + ((event.clientX - box.left) / box.width) * width, y = event.clientY - box.top, slack = (width / box.width) * 2;
    for (const r of rows) {
      const depth = Math.floor((y - r.top - LABEL) / LINE);
      if (depth < 0 || depth >= Math.max(1, r.depth)) continue;
      const hit = r.events.find((e) => e[3] === depth && e[0] - slack <= x && x <= e[0] + e[1] + slack);
      if (hit) return `${r.name}: ${name(hit)}, ${time(hit[1] * 1e-9)} at ${time(hit[0] * 1e-9)}`;
    }
    return "";
  }
  function say() { status.textContent = width >= span ? `All of the iteration, ${time(t.length * 1e-9)}.` : `${time(from * 1e-9)} to ${time((from + width) * 1e-9)} of ${time(span * 1e-9)}.`; }
  function zoom(factor, center) { const c = center === undefined ? from + width / 2 : center, before = width; width *= factor; clamp(); from = c - ((c - from) / before) * width; clamp(); draw(); say(); }
  function move(share) { from += share * width; clamp(); draw(); say(); }
  const all = () => { from = 0; width = span; draw(); say(); };
  canvas.addEventListener("wheel", (e) => { if (!e.ctrlKey && !e.metaKey) return; e.preventDefault(); zoom(e.deltaY > 0 ? 1.25 : 0.8, from + (e.offsetX / pixels()) * width); }, { passive: false });
  canvas.addEventListener("keydown", (e) => {
    const act = { ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2), "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), 0: all }[e.key];
    if (act) { e.preventDefault(); act(); }
  });
  let drag = null;
  canvas.addEventListener("pointerdown", (e) => { drag = e.clientX; canvas.setPointerCapture(e.pointerId); });
  canvas.addEventListener("pointerup", () => { drag = null; });
  canvas.addEventListener("pointermove", (e) => {
    if (drag !== null) { move((drag - e.clientX) / pixels()); drag = e.clientX; return; }
    const hit = at(e);
    canvas.title = hit;
    if (hit) status.textContent = hit; else say();
  });
  canvas.addEventListener("dblclick", (e) => zoom(0.3, from + (e.offsetX / pixels()) * width));
  new ResizeObserver(draw).observe(canvas);
  timelines.push({ draw });
  say();
  const button = (label, act) => el("button", { type: "button", onclick: act }, label);
  return [el("div", { class: "controls" }, button("Zoom in", () => zoom(0.6)), button("Zoom out", () => zoom(1 / 0.6)), button("Show all", all)),
    el("figure", { class: "timeline" }, canvas), status];
}

function timelineTable(t, rows) {
  const by = new Map();
  for (const r of rows)
    for (const e of r.events) {
      const name = e[2] < 0 ? "(gap)" : t.names[e[2]], key = r.kind + "\n" + name, x = by.get(key) || { kind: r.kind, name, n: 0, ns: 0, longest: 0 };
      x.n++; x.ns += e[1]; x.longest = Math.max(x.longest, e[1]);
      by.set(key, x);
    }
  return el("details", { class: "screen" }, el("summary", {}, "The same as a table"), table("Events of this iteration by name", [text("Sort", (x) => x.kind), text("Name", (x) => x.name, "cut"), number("Count", (x) => x.n, count),
    number("Time", (x) => x.ns * 1e-9, time), number("Longest", (x) => x.longest * 1e-9, time), number("Of the iteration", (x) => x.ns / t.length, percent)], [...by.values()], { sort: 3 }));
}
