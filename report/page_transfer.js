/* What moving data costs: a curve for each way, through the sizes measured. */
const sheetOf = (id) => data.sheets.find((s) => s.id === id);

/* Both axes are logarithmic: sizes go from a cache line to a gigabyte. */
function curvesBySize(label, ways, points, value, format) {
  const drawn = ways.filter((w) => points.filter((p) => p.way === w && known(value(p))).length > 1);
  const all = points.filter((p) => drawn.includes(p.way) && known(value(p))), least = (of) => Math.min(...all.map(of)), most = (of) => Math.max(...all.map(of)), size = (p) => p.size;
  return drawn.length && chart(label, 440, () => ({
    type: "line", data: { datasets: drawn.map((w, i) => ({ label: w, data: points.filter((p) => p.way === w && known(value(p))).map((p) => ({ x: p.size, y: value(p) })), borderColor: colorOf(i, drawn.length), backgroundColor: colorOf(i, drawn.length), pointStyle: SHAPES[i % SHAPES.length], borderWidth: 2, pointRadius: 3 })) },
    options: { plugins: { legend: { position: "bottom", labels: { usePointStyle: true, boxHeight: 8 } }, tooltip: { callbacks: { title: (t) => bytes(t[0].raw.x), label: (t) => `${t.dataset.label}: ${format(t.raw.y)}` } } },
      scales: { x: { type: "logarithmic", title: { display: true, text: "size" }, ticks: decadesBetween(least(size), most(size), true, bytes) }, y: { type: "logarithmic", ticks: decadesBetween(least(value), most(value), false, format) } } } }));
}

function transferParts() {
  const points = sheetOf("points").rows, fits = sheetOf("fits").rows, ways = [...new Set(points.map((p) => p.way))];
  const inCaches = new Set(fits.filter((f) => f.level === "memory" || /^L\d/.test(f.level)).map((f) => f.way)), rates = ways.filter((w) => points.some((p) => p.way === w && known(p.rate)));
  const list = [
    ["caches", "Caches and memory", "Bytes that are read and written for each second, as STREAM counts them, by the size of all arrays together.", rates.filter((w) => inCaches.has(w)), (p) => p.rate, rate],
    ["loads", "Loads that wait", "What one load takes, by the size of the memory that they go round in.", ways.filter((w) => !rates.includes(w)), (p) => p.time, time],
    ["sent", "Sent, read, packed", "Bytes for each second, by how many are sent at once.", rates.filter((w) => !inCaches.has(w)), (p) => p.rate, rate],
    ["small", "How long it takes", "The same as time: where the curve is flat, the start counts and not the bytes.", rates.filter((w) => !inCaches.has(w)), (p) => p.time, time],
  ].map(([id, title, caption, which, value, format]) => [id, title, caption, curvesBySize(title, which, points, value, format)]);
  const intro = el("section", { id: "summary" }, el("h1", {}, "What moving data costs"), el("p", { class: "sub" }, `${data.system || "?"}, ${plural(data.threads, "thread")}, ${data.cache} caches: ${plural(data.measured, "size")} measured` + (data.missing ? `, ${data.missing} missing` : "") + "."));
  const tables = data.sheets.filter((s) => s.id !== "points");
  return [intro, ...list.filter((c) => c[3]).map(([id, title, caption, box]) => section(id, title, figure(caption, box))), ...tables.map(sheet), sheet(sheetOf("points"))];
}

DOCUMENTS.transfer = { parts: transferParts, choices: (box) => { box.hidden = true; } };
