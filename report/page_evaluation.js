/* Many analyses side by side. */
const WAYS = [["measured", "measured / bound"], ["algorithms", "algorithms"], ["fusion", "fusion"], ["units", "matrix units"], ["parallel", "parallel"], ["joint", "jointly"]];

function pickAnalysis(i) {
  state.analysis = i;
  state.ladder = 0;
  render();
  document.getElementById("summary").scrollIntoView();
}

/* A mean says over how many of how many. */
const mean = (title, get, of, format) => ({ title, value: get, cell: (g) => (of(g) ? `${format(get(g))} (${of(g)} of ${g.rows})` : "–"), class: "num" });

function evaluation() {
  const e = data.evaluation, rows = e.rows.map((r, i) => Object.assign({ i, name: basename(r.model), task: (e.models.find((m) => m.model === r.model) || {}).task }, r));
  const systems = new Set(rows.map((x) => x.system)).size;
  const ways = WAYS.filter(([k]) => rows.some((r) => known(r.ratios[k])));
  const s = el("section", { id: "evaluation", "aria-labelledby": "evaluation-title" }, el("h1", { id: "evaluation-title" }, `${plural(e.models.length, "model")}, ${plural(rows.length, "analysis").replace("analysiss", "analyses")}`),
    el("p", { class: "sub" }, `${count(e.layers)} layers, ${count(e.unique)} of them unique (${percent(e.unique / e.layers)}). Select a name for its analysis, below.`));
  const of = (k) => `${e.means_known[k]} of ${rows.length}`;
  const answer = ways.filter(([k]) => k !== "measured" && e.means[k] > 1.005).sort((x, y) => e.means[y[0]] - e.means[x[0]]);
  if (known(e.means.measured)) s.append(el("p", { class: "answer" }, "What was measured takes ", el("strong", {}, times(e.means.measured)), ` the bound (geometric mean, ${of("measured")}).`));
  if (answer.length) s.append(el("p", { class: "answer" }, "To gain, in the geometric mean: ", answer.map(([k, n]) => `${n} ${times(e.means[k])} (${of(k)})`).join(", "), "."));
  s.append(table("All analyses", [
    { title: "Model", value: (r) => r.name, cell: (r) => el("button", { type: "button", class: "link", onclick: () => pickAnalysis(r.i) }, middle(r.name)), class: "cut" },
    text("Task", (r) => r.task, "wrap"), ...(systems > 1 ? [text("System", (r) => r.system, "cut")] : []), number("Batch", (r) => r.batch, count), number("Hardware", (r) => r.hardware, time), number("Fused", (r) => r.fused, time), number("Parallel", (r) => r.parallel, time),
    number("Sequential", (r) => r.sequential, (v) => time(v)), text("Priced", (r) => (r.complete ? "all" : r.enough ? "enough: ≥" : "too little")), number("Measured", (r) => r.measured, time)].concat(ways.map(([k, n]) => number("× " + n, (r) => r.ratios[k], times))), rows));
  const shown = rows.slice(0, 40), label = (r) => short(r.name.replace(/\.onnx$/, ""), 26) + (systems > 1 ? " " + short(r.system, 18) : "") + (r.batch ? " b" + r.batch : "");
  s.append(figure("Bounds and what was measured" + (rows.length > shown.length ? `, of the first ${shown.length}` : "") + ".", chart("Bounds and measured times of all analyses", 70 + 30 * shown.length, () => ({
    type: "bar", data: { labels: shown.map((r) => lines(label(r))), datasets: [["hardware", "--bar2"], ["fused", "--gain"], ["sequential", "--bar"], ["measured", "--loss"]].filter(([k]) => shown.some((r) => known(r[k]))).map(([k, c]) => ({ label: k, data: shown.map((r) => r[k]), backgroundColor: css(c), borderRadius: 2 })) },
    options: { indexAxis: "y", plugins: { legend: { position: "bottom" }, tooltip: { callbacks: { label: (t) => `${t.dataset.label}: ${time(t.raw)}` } } }, scales: { x: { beginAtZero: true, ticks: tick(time) }, y: { grid: { display: false }, ticks: { autoSkip: false, color: css("--text") } } } } }))));
  s.append(...[batches(rows), gains(e, ways)].filter(Boolean));
  s.append(table("Models", [text("Model", (m) => basename(m.model), "cut"), text("Task", (m) => m.task), number("MACs", (m) => m.macs, count), number("Layers", (m) => m.layers, count), number("Unique", (m) => m.unique, count), number("Share", (m) => m.unique / m.layers, percent)], e.models));
  const all = { layers: sum(e.libraries, (x) => x.layers), macs: sum(e.libraries, (x) => x.macs), s: sum(e.libraries, (x) => x.seconds) };
  s.append(table("What computes the layers at the lowest price", [text("Library", (x) => x.name), number("Layers", (x) => x.layers, count), number("Of layers", (x) => x.layers / all.layers, percent), number("Of MACs", (x) => x.macs / all.macs, percent), number("Of time", (x) => x.seconds / all.s, percent)], e.libraries));
  if (e.groups.length > 1)
    s.append(table("By system and batch: geometric means over the models", [text("System", (g) => g.system, "cut"), number("Batch", (g) => g.batch, count), text("Models", (g) => `${g.models} of ${g.rows}`), number("Bound", (g) => g.sequential, time),
      mean("Per item, of the first batch", (g) => g.by_batch, (g) => g.by_batch_known, percent), mean("Of the first system", (g) => g.by_system, (g) => g.by_system_known, percent)].concat(ways.map(([k, n]) => mean("× " + n, (g) => g.ratios[k], (g) => g.known[k], times))), e.groups));
  return s;
}

function batches(rows) {
  const sizes = [...new Set(rows.map((r) => r.batch))].sort((a, b) => a - b);
  if (sizes.length < 2 || sizes[0] < 1) return null;
  const names = [...new Set(rows.map((r) => r.name + " · " + r.system))].slice(0, 12), colors = ["--bar", "--loss", "--gain", "--warn", "--imported", "--muted"];
  const value = (n, b) => { const r = rows.find((x) => x.name + " · " + x.system === n && x.batch === b); const s = r && r.enough ? (known(r.fused) ? r.fused : r.sequential) : null; return s > 0 ? s / b : null; };
  return figure("Bound per item by batch, both axes logarithmic.", chart("Time per item by batch", 360, () => ({
    type: "line", data: { datasets: names.map((n, i) => ({ label: n, data: sizes.map((b) => ({ x: b, y: value(n, b) })), borderColor: css(colors[i % 6]), backgroundColor: css(colors[i % 6]), borderDash: i > 5 ? [5, 4] : [] })) },
    options: { plugins: { legend: { position: "bottom" }, tooltip: { callbacks: { label: (t) => `${t.dataset.label}: ${time(t.raw.y)}` } } }, scales: { x: { type: "logarithmic", title: { display: true, text: "batch" }, ticks: { callback: (v) => (sizes.includes(v) ? String(v) : null), autoSkip: false } }, y: { type: "logarithmic", ticks: tick(time) } } } })));
}

function gains(e, ways) {
  const list = ways.filter(([k]) => known(e.means[k]));
  if (!list.length) return null;
  return figure("What each way would gain, geometric mean over the analyses where it is known.", chart("Gain by way", 60 + 30 * list.length, () => ({
    type: "bar", data: { labels: list.map(([k, n]) => `${n} (${e.means_known[k]} of ${e.rows.length})`), datasets: [{ data: list.map(([k]) => e.means[k]), backgroundColor: css("--gain"), borderRadius: 3, maxBarThickness: 22 }] },
    options: { indexAxis: "y", plugins: { legend: { display: false }, tooltip: { callbacks: { label: (t) => times(t.raw) } } }, scales: { x: { min: 0, ticks: tick((v) => v + " ×") }, y: { grid: { display: false }, ticks: { color: css("--text") } } } } })));
}
