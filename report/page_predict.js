/* Predictions: systems side by side, and how far off predictions of what is known were. */
const chosen = { model: 0, round: 0, system: 0 };
const dollars = (v) => (known(v) ? "$" + Number(v.toPrecision(4)) : "–");
const interval = (low, high, format) => (known(low) && known(high) ? `${format(low)} to ${format(high)}` : "not known");
/* Documents that have a page of their own. */
const DOCUMENTS = {
  whatif: { parts: whatIfParts, choices: (box) => { box.hidden = true; } },
  predict: { parts: predictedParts, choices: (box) => { const list = cases(); box.hidden = list.length < 2; box.replaceChildren(...(box.hidden ? [] : [select("Model, batch", list.map((c) => c.name), chosen, "model")])); } },
  "predict-errors": { parts: errorParts, choices: (box) => {
    box.hidden = false;
    box.replaceChildren(select("Left out", data.rounds.map(leftOut), chosen, "round"), select("System", ["all"].concat(round().systems.map((s) => s.name)), chosen, "system"));
  } },
};

/* ---- systems side by side ---- */

/* Who has no rank cannot run it, or too little of it has a price. */
const ranked = (rows) => rows.filter((r) => known(r.rank));

/* Rows of one model at one batch, the fastest first, those without a rank last. */
function cases() {
  const by = new Map();
  for (const r of data.rows) {
    const key = JSON.stringify([r.model, r.batch]);
    if (!by.has(key)) by.set(key, { name: basename(r.model) + (r.batch ? " · batch " + r.batch : ""), rows: [] });
    by.get(key).rows.push(r);
  }
  const list = [...by.values()];
  const place = (r) => (known(r.rank) ? r.rank : data.rows.length + 1);
  list.forEach((c) => c.rows.sort((x, y) => place(x) - place(y) || x.sequential - y.sequential));
  return list;
}

const priced$ = (rows) => rows.filter((r) => known(r.rank_by_cost)).sort((x, y) => x.rank_by_cost - y.rank_by_cost);
const costOf = (r, seconds) => (r.sequential > 0 ? (r.cost * seconds) / r.sequential : NaN);
/* What most of the time rests on, and how much does not. */
const own = (r) => r.by.record >= 0.5;
const source = (r) => (own(r) ? "own records" + (r.predicted ? `, ${percent(1 - r.by.record)} predicted` : "") : "predicted" + (r.by.record > 0 ? `, ${percent(r.by.record)} own records` : ""));

/* Marks in the order of rank, each on its interval. The axis is logarithmic, for systems differ by a factor of fifty: so equal lengths are equal
 * factors, and no bar begins at nothing. */
function rankedMarks(label, rows, value, format) {
  const ends = rows.map((r) => [value(r, r.low), value(r, r.high)]), row = rows.length > 16 ? 22 : 30, all = [...rows.map((r) => value(r, r.sequential)), ...ends.flat()].filter((v) => v > 0 && known(v));
  const from = Math.min(...all) / 1.15, to = Math.max(...all) * 1.15;
  const intervals = { id: "intervals", beforeDatasetsDraw(c) {
    const g = c.ctx;
    g.save();
    g.strokeStyle = css("--muted");
    g.lineWidth = 2;
    ends.forEach(([low, high], i) => {
      if (!known(low) || !known(high) || !(high > low && low > 0)) return;
      const y = c.scales.y.getPixelForValue(i), a = c.scales.x.getPixelForValue(low), b = c.scales.x.getPixelForValue(high);
      g.beginPath();
      for (const [x0, y0, x1, y1] of [[a, y, b, y], [a, y - 5, a, y + 5], [b, y - 5, b, y + 5]]) { g.moveTo(x0, y0); g.lineTo(x1, y1); }
      g.stroke();
    });
    g.restore();
  } };
  const sets = [[false, "predicted, most or all of it", "circle"], [true, "by records of the system itself, most or all of it", "rect"]].filter(([k]) => rows.some((r) => own(r) === k));
  return chart(label, 80 + row * rows.length, () => ({
    type: "line", plugins: [intervals],
    data: { labels: rows.map((r) => lines(r.system)), datasets: sets.map(([k, label, shape]) => ({ label, showLine: false, data: rows.map((r) => (own(r) === k ? value(r, r.sequential) : null)), pointStyle: shape, pointRadius: 6, pointHoverRadius: 8, pointHitRadius: 12, backgroundColor: css("--bar"), borderColor: css("--page"), pointBorderWidth: 1 })) },
    options: { indexAxis: "y", plugins: { legend: { position: "bottom", onClick: null, labels: { usePointStyle: true, boxHeight: 8, generateLabels: (c) => Chart.defaults.plugins.legend.labels.generateLabels(c).map((i) => ({ ...i, strokeStyle: css("--bar") })) } }, tooltip: { callbacks: { title: (t) => rows[t[0].dataIndex].system, label: (t) => { const r = rows[t.dataIndex], [low, high] = ends[t.dataIndex]; return `${format(t.raw)} (${interval(low, high, format)}), ${source(r)}`; } } } },
      scales: { x: { type: "logarithmic", min: from, max: to, ticks: decadesBetween(from, to, true, format) }, y: { offset: true, ticks: { autoSkip: false, color: css("--text") } } } } }));
}

function predictedAnswer(c) {
  const best = c.rows[0], cheap = priced$(c.rows)[0], strong = (t) => el("strong", {}, t);
  const beyond = c.rows.filter((r) => r.beyond && r.by.record < 1);
  const close = ranked(c.rows).slice(1).filter((r) => r.low < best.high).length, tight = c.rows.filter((r) => !r.fits);
  return [!known(best.rank) ? el("p", { class: "answer" }, best.enough ? "It fits into the memory of none of them." : "Too little of it has a price for a time.") : el("p", { class: "answer" }, c.rows.length > 1 ? "It would run fastest on " : "It would run on ", strong(best.system), ": ", strong(time(best.sequential)), ` (${interval(best.low, best.high, time)}, ${source(best)}).`,
    cheap ? [" Cheapest on ", strong(cheap.system), ": ", strong(dollars(cheap.cost)), ` a million inferences (${source(cheap)}).`] : null),
    tight.length ? el("p", { class: "note" }, `${tight.map((r) => r.system).join(", ")}: no rank, for one layer alone has ${bytes(tight[0].needed)} of operands, more than the memory.`) : null,
    close ? el("p", { class: "note" }, `The ${close > 1 ? `intervals of ${close} other systems begin` : "interval of one other system begins"} below the end of this one: which is the fastest is not sure.`) : null,
    beyond.length ? el("p", { class: "note" }, `${beyond.map((r) => r.system).join(", ")}: newer or older than all systems whose records tell of ${beyond.length > 1 ? "them" : "it"}; such intervals were never held against a measurement.`) : null];
}

function predictedParts() {
  const list = cases(), c = list[chosen.model], costs = priced$(c.rows), lacking = Math.max(...c.rows.map((r) => r.unpriced));
  const byCost = costs.length ? [number("$ a million", (r) => r.cost, dollars), number("Rank by cost", (r) => r.rank_by_cost, count)] : [];
  const by = (title, key) => number(title, (r) => r.by[key], percent);
  const head = el("section", { id: "summary", "aria-labelledby": "title" }, el("h1", { id: "title" }, c.name), el("p", { class: "sub" }, `Predicted for ${plural(c.rows.length, "system")}`), predictedAnswer(c),
    lacking ? el("p", { class: "warning", role: "note" }, `Up to ${plural(lacking, "layer")} could not be priced: the times are lower ends.`) : null);
  const side = section("systems", "Systems side by side",
    ranked(c.rows).length ? figure("The bound as written on each system, the fastest first. The line through a mark is the interval that should hold nine of ten measured times. The axis is logarithmic: equal distances are equal factors.", rankedMarks("Predicted time on each system with its interval, the fastest first", ranked(c.rows), (r, s) => s, time)) : null,
    table("Systems in the order of predicted time", [text("System", (r) => r.system, "cut"), number("Rank", (r) => r.rank, count), number("As written", (r) => r.sequential, time), number("From", (r) => r.low, time), number("To", (r) => r.high, time), number("Parallel", (r) => r.parallel, time),
      number("Fused", (r) => r.fused, time), number("A second", (r) => r.throughput, count), ...byCost, text("Source", source, "wrap")], c.rows),
    el("details", {}, el("summary", {}, "What the times rest on"), el("p", { class: "note" }, "Shares of the time: by records of the system itself; by records of the same problem on others; by the same on others at other batches; by what was learned from problems like it; by the roofline alone."),
      table("Where the times are from", [text("System", (r) => r.system, "cut"), by("Own records", "record"), by("Same problem elsewhere", "neighbours"), by("At other batches", "batches"), by("Learned", "learned"), by("Roofline", "roofline"), number("Layers", (r) => r.layers, count), number("Of them predicted", (r) => r.predicted, count), number("Without a price", (r) => r.unpriced, count)], c.rows)));
  const cost = costs.length ? section("cost", "Cost", costs.length < c.rows.length ? el("p", { class: "note" }, `${costs.length} of ${c.rows.length} systems have a price.`) : null,
    figure("Dollars of a million inferences, one after the other, the cheapest first: predicted time by the price of an hour. The line is the interval of the time.", rankedMarks("Predicted cost of a million inferences on each system with its interval, the cheapest first", costs, costOf, dollars),
      table("Systems in the order of predicted cost", [text("System", (r) => r.system, "cut"), number("Rank by cost", (r) => r.rank_by_cost, count), number("$ a million", (r) => r.cost, dollars), number("From", (r) => costOf(r, r.low), dollars), number("To", (r) => costOf(r, r.high), dollars), number("Rank by time", (r) => r.rank, count), text("Source", source, "wrap")], costs))) : null;
  return [head, side, cost, list.length > 1 ? allCases(list) : null].filter(Boolean);
}

/* Every model and batch in a row, and how the systems do over all of them. */
function allCases(list) {
  const rows = list.map((c, i) => ({ i, name: c.name, best: ranked(c.rows)[0], cheap: priced$(c.rows)[0] })), costs = rows.some((r) => r.cheap), by = new Map();
  for (const c of list)
    for (const r of ranked(c.rows)) {
      const s = by.get(r.system) || { system: r.system, n: 0, first: 0, cheapest: 0, log: 0 };
      s.n++;
      s.first += r.rank === 1;
      s.cheapest += r.rank_by_cost === 1;
      s.log += Math.log(r.sequential / c.rows[0].sequential);
      by.set(r.system, s);
    }
  const go = (r) => { chosen.model = r.i; render(); document.getElementById("summary").scrollIntoView(); };
  return section("all", "All models and batches", table("The fastest system of each, as predicted; select a name for its systems", [{ title: "Model", value: (r) => r.name, cell: (r) => el("button", { type: "button", class: "link", onclick: () => go(r) }, middle(r.name)), class: "cut" },
    text("Fastest", (r) => r.best && r.best.system, "cut"), number("Time", (r) => r.best && r.best.sequential, time), number("From", (r) => r.best && r.best.low, time), number("To", (r) => r.best && r.best.high, time), ...(costs ? [text("Cheapest", (r) => r.cheap && r.cheap.system, "cut"), number("$ a million", (r) => r.cheap && r.cheap.cost, dollars)] : [])], rows),
    table("Systems over all of them, as predicted", [text("System", (s) => s.system, "cut"), number("Of", (s) => s.n, count), number("Fastest in", (s) => s.first, count), ...(costs ? [number("Cheapest in", (s) => s.cheapest, count)] : []), number("× the fastest (geometric mean)", (s) => Math.exp(s.log / s.n), times)], [...by.values()], { sort: costs ? 4 : 3, down: false }));
}

/* ---- how far off they were ---- */

const round = () => data.rounds[chosen.round];
const leftOut = (r) => `one ${r.left_out}` + (r.budget > 0 ? `, measured for ${time(r.budget)}` : r.few > 0 ? `, ${Number((100 * r.few).toPrecision(3))} % of its problems measured` : "");
const signed = (v) => (known(v) && Math.abs(v) >= 5e-4 ? (v < 0 ? "−" : "+") : "") + percent(Math.abs(v));
const inside = (p) => (known(p.low) ? p.measured >= p.low && p.measured <= p.high : true);
const SHAPES = ["circle", "triangle", "rect", "rectRot"]; /* those that can be hollow */

/* One colour and one shape for each system. */
function colorOf(i, n) {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches && !paper.matches;
  return `hsl(${Math.round(210 + (360 * i) / n) % 360}, 62%, ${dark ? 66 : 40}%)`;
}

function points(r) {
  return r.points.map(([measured, predicted, low, high, system, network, batch]) => ({ measured, predicted, low, high, system, network: r.networks[network].name, batch })).filter((p) => p.measured > 0 && p.predicted > 0 && (!chosen.system || p.system === chosen.system - 1));
}

/* Powers of ten from one end to the other, as many as there is room for; of few decades 2 and 5 times them, too. */
function decadesBetween(low, high, across, format = time) {
  const most = narrow.matches && across ? 4 : 12, span = Math.log10(high / low), step = Math.ceil(span / most);
  if (span > (narrow.matches && across ? 1.2 : 2.5)) return decadesOf((v) => (Math.round(Math.log10(v)) % step ? null : format(v)));
  return { callback: (v) => (/^[125]/.test(v.toExponential(6)) && Number(v.toPrecision(1)) === Number(v.toPrecision(6)) ? format(v) : null), autoSkip: false, maxRotation: 0 };
}

/* Marks over the measured time; `ratio`: how far off they are instead of the time. `width`: of the intervals, NaN: not known. */
function marks(r, list, width, ratio) {
  const y = (p) => (ratio ? p.predicted / p.measured : p.predicted), name = (p) => r.systems[p.system].name;
  let from = Infinity, to = 0, most = Math.max(1.2, width || 0);
  for (const p of list) {
    from = Math.min(from, p.measured, ratio ? Infinity : p.predicted);
    to = Math.max(to, p.measured, ratio ? 0 : p.predicted);
    most = Math.max(most, p.predicted / p.measured, p.measured / p.predicted);
  }
  from /= 1.3, to *= 1.3, most *= 1.05;
  const line = (label, factor, more) => ({ type: "line", label, data: [from, to].map((x) => ({ x, y: factor * (ratio ? 1 : x) })), borderWidth: 1.5, pointRadius: 0, pointHitRadius: 0, pointStyle: "line", order: 2, borderColor: css("--muted"), fill: false, ...more });
  const sets = r.systems.map((s, i) => ({ label: s.name, own: list.filter((p) => p.system === i), color: colorOf(i, r.systems.length), shape: SHAPES[i % SHAPES.length] })).filter((s) => s.own.length);
  const band = { borderDash: [4, 4] }, steps = [0.1, 0.2, 0.5, 0.8, 1, 1.25, 2, 5, 10];
  return {
    type: "scatter",
    data: { datasets: sets.map((s) => ({ label: s.label, data: s.own.map((p) => ({ x: p.measured, y: y(p), p })), pointStyle: s.shape, borderColor: s.color, backgroundColor: s.color, pointBackgroundColor: s.own.map((p) => (inside(p) ? s.color : css("--page"))), pointBorderColor: s.color, pointRadius: 3.5, pointHoverRadius: 6, order: 1 }))
      .concat([line("as measured", 1)], known(width) ? [line("nine of ten, at the median", width, band), line("", 1 / width, { ...band, fill: "-1", backgroundColor: css("--bar2") + "38" })] : []) },
    options: { plugins: { legend: { position: "bottom", onClick: null, labels: { usePointStyle: true, boxHeight: 8, generateLabels: (c) => Chart.defaults.plugins.legend.labels.generateLabels(c).filter((i) => i.text).map((i) => ({ ...i, fillStyle: c.data.datasets[i.datasetIndex].borderColor })) } },
      tooltip: { filter: (t) => t.raw.p, callbacks: { label: (t) => { const p = t.raw.p; return [`${p.network}, batch ${p.batch}, ${name(p)}`, `measured ${time(p.measured)}, predicted ${time(p.predicted)} (${interval(p.low, p.high, time)})`]; } } } },
      scales: { x: { type: "logarithmic", min: from, max: to, title: { display: true, text: "measured" }, ticks: decadesBetween(from, to, true) },
        y: ratio ? { type: "logarithmic", min: 1 / most, max: most, title: { display: true, text: "predicted / measured" }, afterBuildTicks: (axis) => { axis.ticks = steps.filter((v) => v >= 1 / most && v <= most).map((value) => ({ value })); }, ticks: { callback: (v) => v + "\u00a0×", autoSkip: false } }
          : { type: "logarithmic", min: from, max: to, title: { display: true, text: "predicted" }, ticks: decadesBetween(from, to) } } } };
}

function scatter(r) {
  const list = points(r), widths = list.filter((p) => known(p.high)).map((p) => p.high / p.predicted).sort((a, b) => a - b), width = widths.length ? widths[widths.length >> 1] : NaN;
  if (!list.length) return null;
  const outside = list.filter((p) => !inside(p)).length, height = narrow.matches ? 420 : 560, what = `of ${plural(list.length, "sum")}; ${outside} outside of their intervals`;
  return section("scatter", "Predicted against measured", figure(`Each mark is a network at one batch on one system, predicted without ${r.left_out === "system" ? "the records of that system" + (r.few > 0 || r.budget > 0 ? " but the few that were measured first" : "") : `this ${r.left_out}`}. Each system has a colour and a shape of its own. On the line it is as measured. ` +
    (known(width) ? `The band is the interval of nine of ten at its median width (${digits(width)} × up and down). ` : "") + `${outside} of ${list.length} are outside of their own intervals and drawn hollow.`, chart(`Predicted against measured time ${what}`, height, () => marks(r, list, width, false)),
    table("Predicted and measured times", [text("Network", (p) => p.network, "cut"), number("Batch", (p) => p.batch, count), text("System", (p) => r.systems[p.system].name, "cut"), number("Measured", (p) => p.measured, time), number("Predicted", (p) => p.predicted, time), number("Off by", (p) => p.predicted / p.measured - 1, signed), number("From", (p) => p.low, time), number("To", (p) => p.high, time), text("Inside", (p) => (known(p.low) ? (inside(p) ? "yes" : "no") : null))], list)),
    figure("The same marks, larger: how many times as long as measured the prediction is.", chart(`Predicted by measured time ${what}`, narrow.matches ? 360 : 420, () => marks(r, list, width, true))));
}

/* The error over what was measured on the system first: a share of its problems, and seconds where records tell them. */
function curves() {
  const of = (keep, x) => data.rounds.filter((r) => r.left_out === "system" && keep(r)).map((r) => ({ x: x(r), y: r.all[0].predicted, calls: r.all[0].calls })).filter((p) => known(p.x)).sort((a, b) => a.x - b.x);
  const draw = (what, list, format) => (list.length < 3 ? null : figure(`${what}: a network's time, and all calls by time.`, chart(`${what}, from ${percent(list[0].y)} at nothing to ${percent(list[list.length - 1].y)}`, 300, () => ({
    type: "scatter",
    data: { datasets: [["a network's time", "y", "--bar"], ["all calls, by time", "calls", "--muted"]].map(([label, key, color]) => ({ label, showLine: true, data: list.map((p) => ({ x: p.x, y: p[key] })), borderColor: css(color), backgroundColor: css(color), borderWidth: 2, pointRadius: 4 })) },
    options: { plugins: { legend: { position: "bottom", onClick: null }, tooltip: { callbacks: { label: (t) => `${t.dataset.label}: off by ${percent(t.raw.y)} after ${format(t.raw.x)}` } } },
      scales: { x: { beginAtZero: true, ticks: tick(format) }, y: { beginAtZero: true, ticks: tick(percent) } } } }))));
  const parts = [draw("The error over the share of a system's problems that is measured first", of((r) => !r.budget, (r) => r.few), percent), draw("The error over the time of measuring first", of((r) => r.budget || !r.few, (r) => (r.budget ? r.spent : 0)), time)].filter(Boolean);
  return parts.length ? section("few", "A few records of the system itself", ...parts) : null;
}

function errorParts() {
  if (chosen.system > round().systems.length) chosen.system = 0; /* a round may lack one */
  const r = round(), all = r.all[0], s = el("section", { id: "summary", "aria-labelledby": "title" }, el("h1", { id: "title" }, "How far off predictions are"), el("p", { class: "sub" }, `Left out and predicted: ${leftOut(r)}, one after the other · ${plural(all.n, "sum")}`));
  s.append(el("p", { class: "answer" }, "A network's time is off by ", el("strong", {}, percent(all.predicted)), " on average", known(r.ranked) && r.systems.length > 1 ? [", and ", el("strong", {}, percent(r.ranked)), " of pairs of systems are in the right order"] : "", known(all.inside) ? [". ", el("strong", {}, percent(all.inside)), " of the measured times lie in their intervals, which are made for 90 %"] : "", "."));
  const scalings = r.left_out.startsWith("system") ? ["peak", "bandwidth", "multiprocessors", "roofline", "waves", "dense"].filter((k) => known(all[k])).map((k) => number(k === "multiprocessors" ? "By SMs" : "By " + k, (x) => x[k], percent)) : [];
  const totals = [number("Sums", (x) => x.n, count), number("Error", (x) => x.predicted, percent), number("Bias", (x) => x.bias, signed)], calls = [number("All calls, by time", (x) => x.calls, percent), number("Single problems, median", (x) => x.median, percent)];
  const note = scalings.length ? el("p", { class: "note" }, "Beside the prediction, for comparison: scaling from each of the other systems by one rule (peak rate, bandwidth, number of multiprocessors (SMs), roofline, waves" + (known(all.dense) ? ", a network of dense layers" : "") + ").") : null;
  return [s, scatter(r), section("by-system", "Errors by system", note, table("Errors by system that was predicted", [text("System", (x) => x.name, "cut"), ...totals, ...calls, number("Inside", (x) => x.inside, percent), ...scalings], r.systems)),
    r.pairs.length ? section("by-pair", "From one system to another", table("Errors by pair: a network's time on one system by its very calls on one other", [text("From", (x) => x.from, "cut"), text("To", (x) => x.to, "cut"), number("Sums", (x) => x.n, count), number("Error", (x) => x.predicted, percent), ...scalings], r.pairs, { sort: 3 })) : null,
    section("by-kind", "Errors by kind", table("Errors by kind of problem", [text("Kind", (x) => x.name), number("Problems", (x) => x.n, count), ...calls, ...scalings], r.kinds, { sort: 2 })),
    section("by-network", "Errors by network", table("Errors by network", [text("Network", (x) => x.name, "cut"), ...totals, ...scalings], r.networks, { sort: 2 })),
    curves(), section("rounds", "What else was left out", table("Errors by what was left out", [text("Left out", leftOut, "wrap"), number("Sums", (x) => x.all[0].n, count), number("Error", (x) => x.all[0].predicted, percent), number("Bias", (x) => x.all[0].bias, signed), number("All calls, by time", (x) => x.all[0].calls, percent), number("Single problems, median", (x) => x.all[0].median, percent), number("Inside", (x) => x.all[0].inside, percent), number("Pairs in order", (x) => x.ranked, percent)], data.rounds), ...data.not_made.map((m) => el("p", { class: "note" }, `No ${m.left_out} was left out: ${m.missing}.`)))].filter(Boolean);
}
