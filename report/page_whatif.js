/* What the iteration would take after changes: what 'benanza whatif --json' tells, and both time lines at one scale. */
function whatIf(w) {
  if (!w) return null;
  if (w.why) return section("whatif", "What if", el("p", {}, w.why));
  const t = w.told, applies = t.predictions.filter((p) => p.changed), not = t.predictions.filter((p) => !p.changed);
  const gain = (p) => (t.simulated_seconds - p.seconds) / t.simulated_seconds;
  const sources = (p) => [...new Set(p.assumed.map((a) => a.how))].join(", ");
  const columns = (title) => [text(title, (p) => p.shown, "cut"), number("After", (p) => p.seconds, time), number("From", (p) => p.low_seconds, time),
    number("To", (p) => p.high_seconds, time), number("Gain", gain, percent), text("Rests on what is", sources),
    ...(known(t.unrecorded_seconds) ? [number("Gain unrecorded", (p) => p.unrecorded_gain_seconds, time), number("At least", (p) => p.unrecorded_gain_low_seconds, time), number("At most", (p) => p.unrecorded_gain_high_seconds, time)] : [])];
  const parts = [...w.answer.trim().split("\n").map((line) => el("p", {}, line)),
    el("p", { class: "note" }, `The iteration as a graph of what waited for what, changed and simulated. Unchanged it takes ${time(t.simulated_seconds)}, ${percent(t.error)} off what was measured. Some assumptions are guesses: the interval says how far off the answer may be.${w.page ? "" : " 'What to do' leaves out changes for which the recording shows no reason, and has some that no simulation knows."}`)];
  if (applies.length) parts.push(table(w.alone ? "After the change" : "Each change alone", columns("Change"), applies.map((p) => ({ ...p, shown: p.name }))));
  if (t.together.length > 1) parts.push(table("Together, each with those above", columns("Changes"), t.together.map((p, i) => ({ ...p, shown: i ? "+ " + p.name.split(" + ").pop() : p.name }))));
  const last = t.together.length ? t.together[t.together.length - 1] : w.after ? t.predictions[t.predictions.length - 1] : null;
  if (last || w.page) parts.push(...timeLines(w, t, last));
  if (not.length) parts.push(el("details", {}, el("summary", {}, `${plural(not.length, "change")} that ${not.length > 1 ? "do" : "does"} not apply`), el("ul", { class: "note" }, not.map((p) => el("li", {}, `${p.name}: ${p.because || "it changes nothing"}`)))));
  return section("whatif", "What if", ...parts);
}

/* Before, and after all changes together where that was simulated; what the latter rest on, and what then decides. */
function timeLines(w, t, last) {
  const lines = [w.before, w.after].filter(Boolean), ends = (l) => l.rows.flatMap((r) => r.events.map((e) => e[0] + e[1]));
  const span = lines.reduce((most, l) => ends(l).reduce((a, b) => Math.max(a, b), Math.max(most, l.length)), 0);
  const path = (title, rows) => table(title, [text("Layer", (r) => r.name, "cut"), text("Kind", (r) => r.kind), number("Tasks", (r) => r.tasks, count), number("Time", (r) => r.seconds, time)], rows.slice(0, 12));
  const left = (l) => (l.left_out ? `; the ${l.left_out} shortest tasks are left out` : "");
  const parts = [el("h3", {}, `Before: ${time(t.simulated_seconds)}`), el("p", { class: "note" }, (w.after ? "Both time lines have one scale" : "One iteration") + left(w.before) + "."), ...drawRows(w.before, w.before.rows, span, "Before")];
  if (w.after) parts.push(el("h3", {}, `After ${t.together.length ? plural(t.together.length, "change") : last.name}: ${time(known(last.seconds) ? last.seconds : t.simulated_seconds)}`), ...drawRows(w.after, w.after.rows, span, "After all changes"));
  if (last) parts.push(el("details", { open: "" }, el("summary", {}, "What this rests on"), el("ul", { class: "note" }, last.assumed.map((a) => el("li", {}, `${a.how}: ${a.what} (${a.from})`)))));
  parts.push(path("Critical path before", t.critical));
  if (last && last.critical) parts.push(path("Critical path after", last.critical));
  return parts;
}

/* The page of 'benanza whatif --html'. */
function whatIfParts() {
  const shown = whatIf({ told: data, page: true, alone: Boolean(drawing.after), ...drawing });
  return [el("section", { id: "summary", "aria-labelledby": "title" }, el("h1", { id: "title" }, document.title.replace(" – benanza", "")), el("p", { class: "sub" }, `${data.overlaps ? "A step of the typical iteration takes" : "The typical iteration takes"} ${time(data.measured_seconds)}`)), shown];
}
