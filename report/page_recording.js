/* What a recording tells by itself: the answer, advice, tables, timeline. The tables say what their columns are. */
const rate = (v) => (known(v) ? bytes(v) + "/s" : "–");
const figureCount = (v) => (known(v) && !Number.isInteger(v) ? v.toFixed(1) : count(v));
const SHEET_FORMATS = { count: figureCount, seconds: time, bytes, bytes_per_second: rate, share: percent, large: figureCount };

function sheetTable(s) {
  const columns = s.columns.map((c) => (c.type === "text" ? text(c.title, (r) => r[c.key], "cut wide") : number(c.title, (r) => r[c.key], SHEET_FORMATS[c.type])));
  return [s.note && el("p", { class: "note" }, s.note), table(s.title, columns, s.rows)].filter(Boolean);
}
const sheet = (s) => section("table-" + s.id, s.title, ...sheetTable(s));

/* The tables of `benanza profile tables`, folded: one is built when it is opened for the first time. */
function moreTables(list) {
  if (!list || !list.tables.length) return null;
  const shown = el("div", {}), pick = el("select", { onchange: () => show() }, list.tables.map((t, i) => el("option", { value: i }, t.title)));
  const show = () => shown.replaceChildren(...sheetTable(list.tables[Number(pick.value)]));
  const fold = el("details", { ontoggle: () => { if (fold.open && !shown.firstChild) show(); } },
    el("summary", {}, `${plural(list.tables.length, "table")} as other analyzers have them: idle, overlap, launches, queues, kernels, ranges, critical path`),
    el("div", { class: "controls" }, el("label", {}, "Table", pick)), shown);
  return section("more-tables", "More tables", fold);
}

function recording(r, drawn, whatif, tables) {
  const s = el("section", { id: "summary", "aria-labelledby": "summary-title" }, el("h1", { id: "summary-title" }, r.profile), el("p", { class: "answer" }, r.answer),
    el("ul", { class: "note" }, r.facts.map((f) => el("li", {}, f))));
  if (r.warnings.length) s.append(el("ul", { class: "warnings" }, r.warnings.map((w) => el("li", {}, w))));
  return [s, advice(r), timeline(drawn), whatIf(whatif), ...r.tables.map(sheet), moreTables(tables)].filter(Boolean);
}

/* Recordings, and behind them the analyses that rest on their calls. */
function views() {
  const names = recordings.map((r) => r.profile).concat(data.models.map((a) => `${a.model}: layers rebuilt from its calls, on ${a.system}`));
  const s = el("select", { onchange: () => {
    const i = Number(s.value), n = recordings.length;
    state.recording = i < n ? i : -1;
    if (i >= n) { state.analysis = i - n; state.ladder = 0; }
    render();
  } }, names.map((n, i) => el("option", { value: i }, n)));
  s.value = state.recording < 0 ? recordings.length + state.analysis : state.recording;
  return el("label", {}, "Show", s);
}
