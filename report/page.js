/* The page: state, text, tables. Nothing of the data is ever markup: everything goes through textContent. */
const read = (id) => JSON.parse(document.getElementById(id).textContent);
const data = read("data"), drawing = read("drawing"); /* what --json prints, and what it does not tell: see join() */
const recordings = data.recordings || [];
const state = { analysis: 0, ladder: 0, recording: recordings.length ? 0 : -1 }; /* recording: the one that is shown; -1: an analysis */
const printers = []; /* what to do before (true) and after (false) printing */
const FLAT = 300, ROW = 32; /* rows that are all put into the document; height of a row in longer tables */
const MORE = 50; /* rows that a phone shows at first, and with each touch of "more" */
const narrow = matchMedia("(max-width: 640px)"); /* tables are lists of cards then: report.css */

/* ---- elements and numbers ---- */

function el(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes || {}))
    if (k === "class") e.className = v;
    else if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else if (v === true) e.setAttribute(k, "");
    else if (v !== null && v !== undefined && v !== false) e.setAttribute(k, v);
  for (const c of children.flat(Infinity)) if (c !== null && c !== undefined && c !== "") e.append(c);
  return e;
}

const known = (v) => typeof v === "number" && isFinite(v);

/* Three significant digits. */
function digits(v) {
  const a = Math.abs(v);
  return a >= 99.95 ? v.toFixed(0) : a >= 9.995 ? v.toFixed(1) : v.toFixed(2);
}
function scaled(v, steps, separator) {
  if (!known(v)) return "–";
  const a = Math.abs(v);
  const [factor, unit] = steps.find(([f]) => a >= f * 0.9995) || steps[steps.length - 1];
  return (v < 0 ? "−" : "") + digits(a / factor) + separator + unit;
}
const TIMES = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];
const COUNTS = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
const time = (s) => (s === 0 ? "0 s" : scaled(s, TIMES, "\u00a0"));
const count = (n) => (!known(n) ? "–" : Math.abs(n) < 10000 && Number.isInteger(n) ? String(n) : scaled(n, COUNTS, "\u00a0").trim());
const bytes = (n) => (known(n) ? count(n) + (Math.abs(n) < 10000 ? "\u00a0B" : "B") : "–");
const percent = (v) => (known(v) ? (100 * v).toFixed(1) + "\u00a0%" : "–");
const times = (v) => (known(v) ? v.toFixed(2) + "\u00a0×" : "–");
const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
const basename = (path) => path.slice(path.lastIndexOf("/") + 1);
const provenance = (p) => el("span", { class: "prov " + p }, p);
const dash = (v) => (v === null || v === undefined || v === "" ? "–" : v);
const sum = (list, f) => list.reduce((t, x) => t + (f(x) || 0), 0);

/* A name in two halves: where a row has one line, the first half gives way, and the end stays. No number is cut in two:
 * of "layer_10/mlp" the end "0/mlp" would name another layer. */
function middle(v) {
  const s = String(dash(v)), least = Math.max(0, s.length - Math.min(18, s.length >> 1)), digit = (i) => s[i] >= "0" && s[i] <= "9";
  let cut = least;
  while (cut > 0 && least - cut < 4 && digit(cut) && digit(cut - 1)) cut--;
  return el("span", { class: "middle" }, el("span", {}, s.slice(0, cut)), el("span", {}, s.slice(cut)));
}

/* ---- tables ---- */

const collator = new Intl.Collator(undefined, { numeric: true });

/* columns: {title, value(row) for sorting, cell(row), class, header}. Long tables keep only the rows in
 * sight in the document; spacers stand for the others, and aria-rowindex tells where they are. On a phone rows
 * have no common height: there they come in portions. Roles are spelled out, since cards are no table to CSS. */
function table(caption, columns, rows, options) {
  const o = Object.assign({ sort: -1, down: true, print: 8 }, options);
  const body = el("tbody", { role: "rowgroup" }), scroll = el("div", { class: "scroll tall", tabindex: "0", role: "region", "aria-label": caption });
  let order = rows.slice(), printing = false, portion = MORE;
  const heads = columns.map((c, k) => {
    const th = el("th", { scope: "col", role: "columnheader", class: c.class === "num" ? "num" : null });
    if (o.fixed || !c.value) th.append(c.title);
    else th.append(el("button", { type: "button", onclick: () => sort(k, th.getAttribute("aria-sort") === "descending" ? false : th.getAttribute("aria-sort") === "ascending" ? true : c.class === "num") }, c.title));
    return th;
  });
  const row = (r, i) => el("tr", { class: r.path ? "path" : null, role: "row", "aria-rowindex": i + 2 },
    columns.map((c, k) => el(k === 0 ? "th" : "td", { scope: k === 0 ? "row" : null, role: k === 0 ? "rowheader" : "cell", class: c.class, "data-label": c.title, title: /cut/.test(c.class || "") ? String(c.value(r) ?? "") : null }, c.cell(r))));
  const aside = (...what) => el("tr", { role: "row" }, el("td", { colspan: columns.length, role: "cell" }, what));
  const spacer = (height) => { const td = el("td", { colspan: columns.length }); td.style.height = height + "px"; return el("tr", { class: "pad", "aria-hidden": "true" }, td); };
  function fill() {
    scroll.classList.toggle("long", order.length > FLAT && !printing && !narrow.matches);
    if (order.length <= FLAT || printing || narrow.matches) {
      const shown = printing ? order.slice(0, o.print) : narrow.matches ? order.slice(0, portion) : order, left = order.length - shown.length;
      body.replaceChildren(...shown.map(row));
      if (left && printing) body.append(aside(`and ${left} more: the page on a screen has them`));
      else if (left) body.append(aside(el("button", { type: "button", class: "link", onclick: () => { portion += MORE; fill(); } }, `${left} more: show ${Math.min(left, MORE)}`)));
      single();
      return;
    }
    const first = Math.max(0, Math.floor(scroll.scrollTop / ROW) - 15), last = Math.min(order.length, first + 60);
    if (body.dataset.first === String(first) && body.dataset.stamp === String(stamp)) return;
    body.dataset.first = first;
    body.dataset.stamp = stamp;
    body.replaceChildren(spacer(first * ROW), ...order.slice(first, last).map((r, i) => row(r, first + i)), spacer((order.length - last) * ROW));
    single();
  }
  /* The rows' buttons are one stop of the Tab key; arrow keys go from row to row. */
  function single() { body.querySelectorAll("th button").forEach((b, i) => { b.tabIndex = i ? -1 : 0; }); }
  body.addEventListener("keydown", (e) => {
    const way = { ArrowDown: 1, ArrowUp: -1 }[e.key], all = [...body.querySelectorAll("th button")], at = all.indexOf(e.target);
    if (!way || at < 0) return;
    e.preventDefault();
    const next = all[at + way];
    if (!next) return;
    all.forEach((b) => { b.tabIndex = b === next ? 0 : -1; });
    next.focus();
  });
  let stamp = 0, by = o.sort, down = o.down;
  function sort(k, descending) {
    by = k;
    down = descending;
    heads.forEach((h, i) => (i === k ? h.setAttribute("aria-sort", descending ? "descending" : "ascending") : h.removeAttribute("aria-sort")));
    arrange();
  }
  function arrange() {
    if (by >= 0) {
      const value = columns[by].value;
      order.sort((a, b) => {
        const x = value(a), y = value(b), nox = x === null || x === undefined || Number.isNaN(x), noy = y === null || y === undefined || Number.isNaN(y);
        if (nox || noy) return nox - noy; /* what is not known comes last, whatever the order */
        const way = typeof x === "number" && typeof y === "number" ? x - y : collator.compare(String(x), String(y));
        return down ? -way : way;
      });
    }
    stamp++;
    fill();
  }
  scroll.addEventListener("scroll", () => { if (scroll.classList.contains("long")) fill(); }, { passive: true });
  printers.push((on) => { printing = on; stamp++; fill(); });
  const whole = el("table", { role: "table", "aria-rowcount": rows.length + 1 }, el("caption", {}, caption), el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, heads)), body);
  scroll.append(whole);
  if (by >= 0) sort(by, down); else arrange();
  scroll.show = (list) => { order = list.slice(); whole.setAttribute("aria-rowcount", order.length + 1); scroll.scrollTop = 0; portion = MORE; arrange(); };
  return scroll;
}

const text = (title, get, cls) => ({ title, value: get, cell: (r) => (/cut/.test(cls || "") ? middle(get(r)) : dash(get(r))), class: cls });
const number = (title, get, format) => ({ title, value: get, cell: (r) => format(get(r)), class: "num" });

function section(id, title, ...content) {
  return el("section", { id, "aria-labelledby": id + "-title" }, el("h2", { id: id + "-title" }, title), ...content);
}

const facts = (pairs) => el("dl", { class: "facts" }, pairs.filter((p) => p && p[1] !== null && p[1] !== undefined && p[1] !== "").map(([k, v]) => [el("dt", {}, k), el("dd", {}, v)]));

/* ---- the data ---- */

/* A model's report and what is drawn of it list layers, modules, groups and profiles in the same order. Times of a layer
 * become those of all its runs. */
function join(a, d) {
  const path = new Set(a.path);
  a.layers.forEach((x, i) => {
    [x.kind, x.flops, x.bytes] = d.layers[i];
    x.path = path.has(x.node);
    for (const k of ["seconds", "low", "high", "runner_up", "hardware"]) if (known(x[k])) x[k] *= x.times;
  });
  a.modules.forEach((m, i) => { [m.from, m.to, m.layers] = d.modules[i]; });
  if (a.fused) a.fused.groups.forEach((g, i) => { g.nodes = d.groups[i]; });
  a.profiles.forEach((l, i) => { l.timeline = d.timelines[i]; l.whatif = d.whatifs[i]; });
  Object.assign(a, { details: d.details, clock: d.clock, dtype: d.dtype, no_peaks: d.no_peaks,
    flops: d.flops.map(([dtype, rate]) => ({ dtype, rate })), bandwidth: d.bandwidth.map(([bytes, rate]) => ({ bytes, rate })) });
}

/* ---- the answer ---- */

/* A time of the bound; a dash where too little is priced for one. `more`: layers that it lacks. */
const bound = (a, s, more) => (a.goal.enough && known(s) ? (more ? "≥ " : "") + time(s) : "–");
const share = (a, s) => (a.goal.enough && a.sequential > 0 ? s / a.sequential : NaN);

/* "10.9 % of the MACs and 4.2 % of the modelled time" */
function priced(a) {
  const g = a.goal;
  return `${a.n_layers - g.unpriced} of ${plural(a.n_layers, "layer")}, ${percent(g.priced_macs)} of the MACs and ${known(g.priced_time) ? percent(g.priced_time) + " of the modelled time" : percent(g.priced_bytes) + " of the bytes"}`;
}

function reasons(a, l) {
  if (l && l.waterfall) return l.waterfall.steps.filter((s) => s.seconds > 0);
  if (l && l.alignment) return l.alignment.causes.slice();
  return [];
}

/* What was measured, and no more than is known of it; and how sure the speed-up is. */
function took(l) {
  const what = l.open ? "what repeats, an iteration or a part of one," : "one iteration";
  return l.calls_alone ? `The library calls of ${what} took ` : what[0].toUpperCase() + what.slice(1) + " took ";
}

function answer(a, l) {
  const p = el("p", { class: "answer" });
  const g = a.goal, strong = (t) => el("strong", {}, t);
  if (l && known(l.latency)) p.append(took(l), strong(time(l.latency)), g.enough && !l.defect && !l.foreign && !l.ran_on ? "; " : ". ");
  if (l && l.foreign) {
    p.append(`The recording ${l.open ? "cannot be held against" : "does not fit"} the model: it ${l.foreign}.`);
  } else if (!g.enough) {
    p.append(`Too little is measured for a bound: ${priced(a)} are priced. `);
    if (g.measures) p.append("On ", el("code", {}, a.system), " this measures the rest: ", el("code", {}, g.measures), ". ");
    if (known(g.hardware)) p.append("The hardware allows ", strong(time(g.hardware)), " at best (modelled).");
  } else if (l && l.defect) {
    p.append(`The bound does not hold: ${l.defect}.`);
  } else if (l && known(l.latency) && l.ran_on) {
    p.append(`It ran on ${l.ran_on}; on ${a.system} the libraries could do it in `, strong(bound(a, g.sequential, g.unpriced)), ".");
  } else if (l && known(l.latency)) {
    const least = l.hidden + g.far > 0 ? `between ${(l.latency / (g.sequential + g.far + l.hidden)).toFixed(2)} × and ` : g.unpriced ? "up to " : l.calls_alone ? "at least " : "";
    p.append(`the libraries could do ${l.hidden ? "its calls" : "it"} in `, strong(bound(a, g.sequential, g.unpriced)), ": ", strong(least + l.speedup.toFixed(2) + " × faster"), ` is possible${l.hidden ? `: ${time(l.hidden)} lie between them, and nothing tells which layers ran there` : ""}${g.far ? `${l.hidden ? ", and" : ":"} ${time(g.far)} more are needed as ${bytes(g.weights)} of weights come from far (modelled)` : ""}. `);
    const why = reasons(a, l).sort((x, y) => y.seconds - x.seconds).slice(0, 3);
    if (why.length) p.append("What keeps it: ", why.map((w) => `${w.name} (${time(w.seconds)})`).join(", "), ".");
    else if (l.idle > 0 || l.excess > 0) p.append(`What keeps it: ${time(Math.max(0, l.idle))} outside of ${l.device ? "the device's work" : "library calls"}, ${time(Math.max(0, l.excess))} more work than the bound.`);
  } else {
    p.append("The model could run in ", strong(bound(a, g.sequential, g.unpriced)), ` (${g.bound === "fused" ? "fused bound" : "bound as written"}), or `, strong(bound(a, g.parallel, g.unpriced)), " where independent layers run at the same time. ");
    if (g.far) p.append(`As ${bytes(g.weights)} of weights come from far, it takes `, strong(time(g.sequential + g.far)), " (modelled). ");
    const slow = a.layers.filter((x) => known(x.seconds)).sort((x, y) => y.seconds - x.seconds)[0];
    if (slow && a.sequential > 0) p.append(`Its slowest layer, ${slow.name}, takes ${percent(share(a, slow.seconds))} of the bound as written.`);
  }
  return p;
}

function tiles(a, l) {
  const g = a.goal, list = [];
  const add = (name, value, how) => list.push(el("div", {}, el("dt", {}, name), el("dd", {}, value), el("dd", { class: "how" }, how)));
  const ratio = (which) => (l && known(l.ratio) && g.bound === which ? `${percent(l.ratio)} of measured` : null);
  if (l && known(l.latency)) {
    add("Measured", time(l.latency), `profile, median of ${plural(l.iterations, "iteration")}`);
    if (known(l.busy)) add(l.device ? "Device busy" : "Library busy", time(l.busy), `${percent(l.busy / l.latency)} of it`);
  }
  if (g.enough) {
    add("Bound as written", bound(a, a.sequential, a.unpriced), ratio("as written") || "every layer by itself, cheapest variant");
    if (a.fused) add("Bound, fused", bound(a, a.fused.sequential, !a.fused.complete), ratio("fused") || `${plural(a.fused.groups.length, "group")} stand for ${sum(a.fused.groups, (f) => f.nodes.length)} layers`);
    add("Parallel", bound(a, g.parallel, g.unpriced), "longest path through the graph");
  }
  if (known(g.hardware)) add("Hardware", time(g.hardware), `modelled: roofline, ${a.peaks} peaks`);
  add("Coverage", `${a.n_layers - a.unpriced} of ${a.n_layers}`, ["measured", "imported", "modelled", "unpriced", "free"].filter((p) => a[p]).map((p) => `${a[p]} ${p}`).join(", "));
  return el("dl", { class: "tiles" }, list);
}

function caveats(a, l) {
  const list = l ? l.warnings.map((w) => `${l.profile}: ${w}`) : [];
  if (a.noisy) list.push(`The price of ${plural(a.noisy, "layer")} is from records marked noisy or busy: ` + (a.marks.lasting ? `the bound may be up to ${percent(a.marks.above)} too high, which measuring again does not change.` : "'benanza bound --remeasure noisy' measures them again."));
  if (a.unpriced) list.push(`${plural(a.unpriced, "layer")} could not be priced: the totals are too low. The table of layers says why.`);
  if (a.fused && a.fused.missing) list.push(`${plural(a.fused.missing, "fusion group")} without a record: the fused bound may be too high.`);
  if (a.floor) list.push(`The price of ${plural(a.floor, "layer")} is a time between two events of the GPU: it is some µs too long.`);
  if (a.above_roofline) list.push(`The hardware bound does not hold for ${plural(a.above_roofline, "layer")} faster than the peaks allow: 'benanza system --measure' on a quiet machine measures the peaks again.`);
  if (a.loops_open) list.push(`${plural(a.loops_open, "loop")} of unknown length counted once, or as often as --trips says.`);
  return list.map((t) => el("p", { class: "warning", role: "note" }, t));
}

function summary(a, l) {
  const s = el("section", { id: "summary", "aria-labelledby": "title" });
  const where = [a.system, a.batch ? "batch " + a.batch : null, plural(a.threads, "thread"), a.cache + " cache", a.dtype, l ? "profile " + l.profile : null, l && l.framework].filter(Boolean).join(" · ");
  s.append(el("h1", { id: "title" }, basename(a.model)), el("p", { class: "sub" }, where), answer(a, l), ...caveats(a, l), tiles(a, l));
  return s;
}

/* What may as well be a loss is not drawn as a gain. */
function gain(x) {
  if (x.gain === null) return "gain not known";
  if (x.unsure) return `gain not known, between a loss of ${time(-x.low)} and a gain of ${time(x.high)}: ${x.unsure}`;
  return `saves ${time(x.gain)}` + (known(x.low) && known(x.high) ? ` (${time(x.low)} to ${time(x.high)})` : "") + (x.by === "estimate" ? ", an estimate" : ", by simulation");
}

function advice(l) {
  const none = l ? l.answers.filter((x) => x.why) : [], reasons = [...new Set(none.map((x) => x.why))]; // each is said once
  if (!l || (!l.advice.length && !none.length)) return null;
  return section("advice", "What to do", el("p", { class: "note" }, l.advice.length ? "The greatest gain comes first, changes that may also be a loss come last. Gains of several changes do not add up." : "No advice is known."),
    el("ol", { class: "advice" }, l.advice.map((x) => el("li", {}, el("strong", {}, x.what), " ",
      el("span", { class: x.gain === null || x.unsure ? "note" : "gain" }, gain(x)),
      x.evidence ? el("p", {}, x.evidence) : null, x.step ? el("pre", {}, x.step) : null))),
    none.length ? el("ul", { class: "none" }, reasons.map((why) =>
      el("li", {}, `${none.filter((x) => x.why === why).map((x) => `${x.item}, ${time(x.seconds)}`).join("; ")}: ${why}`))) : null);
}

/* ---- layers ---- */

function layerDetail(r, a) {
  return [el("h3", {}, r.name), facts([
    ["Time", [time(r.seconds), known(r.low) ? ` (${time(r.low)} to ${time(r.high)}) ` : " ", provenance(r.provenance), r.noisy ? " marked noisy or busy" : "", r.floor ? " timed by events" : ""]],
    r.times !== 1 ? ["Runs", r.times + " times, in a body"] : null,
    ["Share of the bound", percent(share(a, r.seconds))],
    ["Variant", r.variant], ["Next best", known(r.runner_up) ? `${time(r.runner_up)}: ${r.runner_up_variant}` : null],
    ["Roofline", known(r.hardware) ? [`${time(r.hardware)}, limited by ${r.limit} `, provenance("modelled")] : null],
    ["Why it has no price", r.why], ["Work", `${count(r.flops)} operations, ${bytes(r.bytes)}`],
    ["Key", el("code", {}, r.key)], ["Problems", r.problems.length ? el("code", {}, r.problems.join("\n")) : null]])];
}

function layers(a) {
  const detail = el("div", { class: "detail", "aria-live": "polite", hidden: true });
  const status = el("p", { class: "note", role: "status" });
  const open = (r) => { detail.hidden = false; detail.replaceChildren(...layerDetail(r, a)); detail.scrollIntoView({ block: "nearest" }); };
  const columns = [
    { title: "Layer", value: (r) => r.name, cell: (r) => el("button", { type: "button", class: "link", onclick: () => open(r) }, middle(r.name)), class: "cut" },
    text("Kind", (r) => r.kind), number("Time", (r) => r.seconds, time), number("Share", (r) => share(a, r.seconds), percent),
    { title: "Provenance", value: (r) => r.provenance, cell: (r) => el("span", {}, provenance(r.provenance), r.noisy ? ", noisy" : "") },
    number("Of roofline", (r) => (known(r.hardware) && r.seconds > 0 ? r.hardware / r.seconds : NaN), percent),
    number("Next best", (r) => (known(r.runner_up) ? r.runner_up - r.seconds : NaN), (v) => (known(v) ? "+" + time(v) : "–")),
    number("Work", (r) => r.flops, count), number("Moves", (r) => r.bytes, bytes), text("Variant", (r) => r.variant, "cut")];
  const t = table("Layers of the model; those of the critical path are marked in red", columns, a.layers, { sort: 2, print: 12 });
  const search = el("input", { type: "search", oninput: filter, placeholder: "name, kind, key, variant" });
  const pick = (label, values) => { const s = el("select", { onchange: filter }, el("option", { value: "" }, "all"), [...new Set(values)].sort().map((v) => el("option", { value: v }, v))); return [s, el("label", {}, label, s)]; };
  const [kind, kindLabel] = pick("Kind", a.layers.map((r) => r.kind)), [prov, provLabel] = pick("Provenance", a.layers.map((r) => r.provenance));
  const path = el("input", { type: "checkbox", onchange: filter });
  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = a.layers.filter((r) => (!kind.value || r.kind === kind.value) && (!prov.value || r.provenance === prov.value) && (!path.checked || r.path) &&
      words.every((w) => `${r.name} ${r.kind} ${r.key} ${r.variant || ""}`.toLowerCase().includes(w)));
    const priced = shown.filter((r) => known(r.seconds)).length;
    t.show(shown);
    status.textContent = `${shown.length} of ${plural(a.layers.length, "layer")} that cost something, ${priced ? (priced < shown.length ? "≥ " : "") + time(sum(shown, (r) => r.seconds)) : shown.length ? "none of them priced" : "0 s"}` + (a.goal.enough ? ` of ${bound(a, a.sequential, a.unpriced)}` : "");
  }
  filter();
  return section("layers", "Layers", el("p", { class: "note" }, `${plural(a.n_layers, "layer")}, ${a.free} of them free (views, constants). Select a name for its key, problems and variants.`),
    el("div", { class: "controls" }, el("label", {}, "Find", search), kindLabel, provLabel, el("label", { class: "check" }, path, "critical path only")), status, t, detail);
}

/* ---- the other questions ---- */

function algorithms(l) {
  const r = l && l.algorithms;
  if (!r || !r.rows.length) return null;
  const lead = r.known > 0 ? `The best variants would save ${time(r.loss)} of ${time(r.used)} per iteration; ${r.known} of ${r.calls} calls are known.` : `None of its ${r.calls} calls per iteration has a record.`;
  return section("algorithms", "Algorithms", el("p", {}, lead), table("Calls of the profile by the variant they used, and the best known one", [
    text("Used", (x) => x.variant, "cut"), number("Calls", (x) => x.calls, count), number("Seen", (x) => x.seen, time), number("By record", (x) => x.used, time),
    number("Best", (x) => x.best, time), number("Loss", (x) => x.loss, (v) => (v > 0 ? time(v) : "–")), text("Best variant", (x) => x.best_variant, "cut"),
    text("The library's pick", (x) => x.chosen_variant, "cut"), text("Problem", (x) => x.problem + (x.padded ? " (padded by the program)" : ""), "cut")], r.rows, { sort: 5 }));
}

function deviations(l) {
  const d = l && l.alignment;
  if (!d) return null;
  const s = section("deviations", "What the program did besides", el("p", {}, `The layers ask for ${d.expected} calls, the program made ${d.made}: ` + ["same", "changed", "fused", "split", "missing", "spared", "extra"].filter((k) => d[k]).map((k) => `${d[k]} ${k}`).join(", ") + (d.moved ? `, ${d.moved} in another order` : "") + "."));
  if (d.causes.length)
    s.append(table("Time that no layer asks for, per iteration", [text("Cause", (x) => x.name), number("Count", (x) => x.count, count), number("Time", (x) => x.seconds, time),
      number("Share of the latency", (x) => x.seconds / l.latency, percent), text("When", (x) => (x.busy ? "busy" : "in between")), text("Example", (x) => x.example, "cut"), text("Where", (x) => x.where, "wrap mono")], d.causes, { sort: 2 }));
  const rows = d.rows.filter((x) => x.kind !== "same" || x.moved);
  if (rows.length)
    s.append(table("Calls that differ from what the layers ask for", [text("What", (x) => x.kind + (x.moved ? ", moved" : "")), text("Layers", (x) => x.layers.join(", "), "cut"), text("Call", (x) => x.call, "cut"),
      text("Changed: expected → found", (x) => x.changes.map((c) => `${c.parameter}: ${c.expected} → ${c.found}`).join("; "), "wrap"), number("Time", (x) => x.seconds, time), number("Bound", (x) => x.bound, time),
      text("Problem", (x) => x.problem, "cut"), text("Where", (x) => x.where, "wrap mono")], rows));
  return s;
}

function fusion(a) {
  const f = a.fusion;
  if (!a.fused && !f) return null;
  const s = section("fusion", "Fusion");
  if (f && !known(f.sequential)) s.append(el("p", {}, "Too little is priced to tell what fusion would gain."));
  else if (f) s.append(el("p", {}, `All patterns together save ${time(f.sequential)} of the sequential bound, ${time(f.parallel)} of the parallel one.`));
  else if (a.goal.enough) s.append(el("p", {}, `The cheapest cover by layers and groups takes ${time(a.fused.sequential)}, ${time(a.sequential - a.fused.sequential)} less than every layer by itself.`));
  if (f && f.patterns.length)
    s.append(table("Fusion patterns, by measured records", [text("Pattern", (x) => x.pattern), number("Places", (x) => x.places, count), number("In the cover", (x) => x.covered, count), number("Fused by the program", (x) => x.fused, count),
      number("As written", (x) => x.written, time), number("Fused", (x) => x.together, time), number("Gain", (x) => x.gain, time), number("Gain alone", (x) => x.alone, time)], f.patterns, { sort: 6 }));
  if (a.fused && a.fused.groups.length) {
    const at = new Map(a.layers.map((x) => [x.node, x]));
    const rows = a.fused.groups.map((g) => ({ ...g, written: sum(g.nodes, (i) => at.get(i) && at.get(i).seconds) }));
    s.append(table("Groups that the fused bound rests on", [text("Pattern", (x) => x.pattern), number("Layers", (x) => x.nodes.length, count), number("As written", (x) => x.written, time), number("Fused", (x) => x.seconds, time),
      number("Gain", (x) => x.written - x.seconds, time), { title: "Provenance", value: (x) => x.provenance, cell: (x) => provenance(x.provenance) }, text("Which", (x) => x.layers.join(", "), "cut")], rows, { sort: 4 }));
  }
  return s;
}

function units(a, l) {
  const u = (l && l.units) || a.units, ways = a.units ? a.units.ways : [];
  if (!u) return null;
  const s = section("units", u.unit || "Matrix units", el("p", {}, u.unit ? `${plural(u.used, "layer")} used them, ${u.could} could and did not.` : "The system has none."));
  if (ways.some((x) => known(x.gain)))
    s.append(table("What lower precision would gain, conversions counted", [text("Way", (x) => x.name), number("Sequential", (x) => x.sequential, time), number("Parallel", (x) => x.parallel, time), number("Conversions", (x) => x.conversions, time),
      number("Gain", (x) => x.gain, time), number("Layers that gain", (x) => x.layers, count), number("Without a record", (x) => x.unknown, count)], ways, { sort: 4 }));
  if (u.rows.some((x) => x.evidence || x.why || known(x.seconds) || known(x.best)))
    s.append(table("Layers that could use them", [text("Layer", (x) => x.layer || x.call, "cut"), text("Used", (x) => (x.used ? "yes" : "no")), text("What tells", (x) => x.evidence, "cut"), text("Why not", (x) => x.why, "wrap"),
      number("Now", (x) => x.seconds, time), number("Best", (x) => x.best, time), text("Way", (x) => x.best_way)], u.rows));
  return s;
}

function flatten(o, prefix, out) {
  for (const [k, v] of Object.entries(o)) {
    if (v && typeof v === "object" && !Array.isArray(v)) flatten(v, prefix + k + " ", out);
    else if (!Array.isArray(v)) out.push([prefix + k, String(v)]);
  }
  return out;
}

function origins(a, l) {
  let details = [];
  try { details = flatten(JSON.parse(a.details), "", []); } catch (e) { details = []; }
  const rows = ["measured", "imported", "modelled", "unpriced"].map((p) => ({ p, n: a[p], macs: a["macs_" + p], s: p === "unpriced" ? NaN : sum(a.layers.filter((x) => x.provenance === p), (x) => x.seconds) })).filter((x) => x.n);
  return section("provenance", "Where the numbers come from",
    el("p", { class: "note" }, "Measured: by benanza's benchmarks on this system. Imported: records made by others. Modelled: computed from bytes or peaks. What a profile tells was measured in the user's program."),
    table("Layers by the provenance of their price", [{ title: "Provenance", value: (x) => x.p, cell: (x) => provenance(x.p) }, number("Layers", (x) => x.n, count), number("MACs", (x) => (a.macs ? x.macs / a.macs : NaN), percent), number("Time", (x) => x.s, time), number("Share of the bound", (x) => share(a, x.s), percent)], rows),
    facts([["Model", a.model], ["System", a.system], ["Setting", `${plural(a.threads, "thread")}, ${a.cache} cache${a.clock ? ", clock " + a.clock : ""}`], ["Noisy", a.noisy ? "records marked noisy or busy price " + plural(a.noisy, "layer") + (a.marks.lasting ? `; measuring again does not change that: the bound may be up to ${percent(a.marks.above)} too high` : "") : "no record is marked"],
      ["Bounds", ["as written, fused, parallel: from the records above; hardware: ", provenance("modelled"), a.no_peaks ? ` (not known: ${a.no_peaks})` : ` from peaks: ${a.peaks}`]],
      ["Launch overhead", a.launch > 0 ? time(a.launch) + " to start the calls; the bounds above do not contain it" : null], a.problems ? ["Problems", `${a.problems} of the models, ${a.problems_known} known before, ${a.benchmarks} records made now`] : null,
      l ? ["Profile", [`${l.profile}: ${plural(l.iterations, "steady iteration")} `, provenance("measured")]] : null, ["Program", "benanza " + drawing.version]]),
    details.length ? el("details", {}, el("summary", {}, "What the database knows of the system"), facts(details)) : null);
}

/* One picture at a time: the whole, or a part of it. A box with a double frame opens its part; the list has them all. */
function graph(number) {
  const template = document.getElementById("graph-" + number);
  if (!template || !template.content.childElementCount) return null;
  const content = template.content.cloneNode(true), view = el("div", { "aria-live": "polite" }), parts = new Map();
  const list = el("select", { onchange: () => show(list.value) });
  (function collect(box, id, name, depth) {
    const inner = [...box.children].filter((e) => e.tagName === "DETAILS");
    parts.set(id, [...box.children].filter((e) => e.tagName !== "DETAILS" && e.tagName !== "SUMMARY"));
    list.append(el("option", { value: id }, "\u2003".repeat(depth) + name));
    inner.forEach((e) => collect(e, e.id, e.querySelector("summary").textContent, depth + 1));
  })(content, "", "the whole graph", 0);
  const note = el("p", { class: "print" }, "The graph is too long for paper: --svg draws it.");
  function show(id) {
    list.value = id;
    view.replaceChildren(...parts.get(id));
    const box = view.querySelector("svg"), size = box && box.viewBox.baseVal, long = size && size.height > 3 * size.width;
    view.classList.toggle("screen", Boolean(long));
    note.hidden = !long;
  }
  show("");
  view.addEventListener("click", (e) => {
    const link = e.target.closest("a"), id = link && (link.getAttribute("xlink:href") || link.getAttribute("href") || "").slice(1);
    if (!id || !parts.has(id)) return;
    e.preventDefault();
    show(id);
    list.focus();
  });
  return section("graph", "Graph", el("p", { class: "note" }, "The critical path is red. A box with a double frame is a part of the graph: select it to open it."),
    parts.size > 1 ? el("div", { class: "controls" }, el("label", {}, "Shown", list)) : null, view, note);
}

/* ---- the page ---- */

const NAMES = { evaluation: "All", ladder: "Bounds", advice: "Advice", timeline: "Timeline", whatif: "What if", deviations: "Deviations", modules: "Modules", provenance: "Provenance" }; /* in the contents */

/* Chooses of[key], the number of a name. */
function select(label, names, of, key) {
  const s = el("select", { onchange: () => { of[key] = Number(s.value); if (key === "analysis") state.ladder = 0; render(); } }, names.map((n, i) => el("option", { value: i }, n)));
  s.value = of[key];
  return el("label", {}, label, s);
}

function choices() {
  const box = document.getElementById("choice");
  if (DOCUMENTS[data.record]) return DOCUMENTS[data.record].choices(box);
  box.replaceChildren();
  if (recordings.length + data.models.length > 1 && recordings.length) box.append(views());
  if (state.recording >= 0) { box.hidden = !box.childElementCount; return; }
  const { profiles } = data.models[state.analysis];
  if (data.models.length > 1) box.append(select("Model, system, batch", data.models.map((a) => `${basename(a.model)} · ${a.system}` + (a.batch ? ` · batch ${a.batch}` : "")), state, "analysis"));
  if (profiles.length > 1) box.append(select("Profile", profiles.map((l) => l.profile), state, "ladder"));
  box.hidden = !box.childElementCount;
}

function render() {
  const main = document.getElementById("main");
  dropCharts();
  const parts = DOCUMENTS[data.record] ? DOCUMENTS[data.record].parts() : state.recording < 0 ? analysisParts() : recording(recordings[state.recording], drawing.recordings[state.recording], drawing.whatifs[state.recording], drawing.tables[state.recording]);
  main.replaceChildren(...parts);
  document.getElementById("contents").replaceChildren(el("ul", {}, parts.filter((p) => p.id !== "summary").map((p) => el("li", {}, el("a", { href: "#" + p.id }, NAMES[p.id] || p.querySelector("h2").textContent)))));
  const box = document.getElementById("choice"), focused = [...box.querySelectorAll("select")].indexOf(document.activeElement);
  choices();
  if (focused >= 0 && box.querySelectorAll("select")[focused]) box.querySelectorAll("select")[focused].focus();
  drawCharts();
}

function analysisParts() {
  const a = data.models[state.analysis], l = a.profiles[state.ladder];
  return [data.evaluation ? evaluation() : null, summary(a, l), advice(l), ladderSection(a, l), layers(a), roofline(a), timeline(l && l.timeline), whatIf(l && l.whatif), graph(state.analysis), algorithms(l), deviations(l), fusion(a), units(a, l), modules(a), origins(a, l), ...(a.tables || []).map(sheet)].filter(Boolean);
}

function modules(a) {
  const outer = a.modules.filter((m) => m.within < 0);
  if (!outer.length || !a.goal.enough) return null;
  return section("modules", "Parallel modules", el("p", { class: "note" }, "Places in the graph where layers do not need each other's results. Places within such a place are not listed."), table("Parallel modules", [text("From", (m) => m.from, "cut"), text("To", (m) => m.to, "cut"), number("Layers", (m) => m.layers, count), number("At once", (m) => m.width, count),
    number("Sequential", (m) => m.sequential, time), number("Parallel", (m) => m.parallel, time), number("Gain", (m) => m.sequential - m.parallel, time)], outer, { sort: 6 }));
}

function start() {
  (data.models || []).forEach((a, i) => join(a, drawing.models[i]));
  document.getElementById("footer").textContent = `benanza ${drawing.version} · charts by Chart.js 3.9.1, MIT licence · nothing on this page is loaded from elsewhere`;
  render();
}
