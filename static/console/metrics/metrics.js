// Charts, drawn by uPlot from the numbers in the page: stacked bars and areas, lines, gaps, and marks of changes.
import uPlot from "../../vendor/uplot/1.6.32/uPlot.esm.js";
import { onClick, onPage } from "../site/on.js";
import { refresh } from "../site/request.js";

const EVERY = 60000; // milliseconds between two refreshes of a range up to now
const DASHES = [[], [6, 4], [2, 3]];
// seconds between two labels of an axis of times: never less than what the labels tell apart, minutes or days
const DAY = 86400;
const DISTANCES = [1, 2, 5, 10, 15, 30, 60, 120, 180, 240, 360, 480, 720].map((it) => it * 60).concat([...Array(90).keys()].map((it) => (it + 1) * DAY));
const { lang, dataset: page } = document.documentElement;
const drawn = new Map(); // charts by their figures
const resized = new ResizeObserver((entries) => {
  for (const { target } of entries) drawn.get(target)?.setSize(sizeOf(target));
});

const place = () => document.getElementById("metrics");
const spotOf = (figure) => figure.querySelector(".chart-place");
const sizeOf = (figure) => {
  const { clientWidth, clientHeight } = spotOf(figure);
  return { width: Math.max(200, clientWidth - 16), height: clientHeight };
};

/** Numbers in few characters, or counts in full, by the unit of a chart. */
function writer(unit, isFull) {
  if (unit === "seconds") {
    const plain = new Intl.NumberFormat(lang, { maximumSignificantDigits: 3 });
    return (value) => (value >= 10 ? `${plain.format(value)} s` : `${plain.format(value * 1000)} ms`);
  }
  if (unit === "bytes") {
    const units = ["B", "KB", "MB", "GB", "TB", "PB"];
    return (value) => {
      const power = value < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(value) / 10));
      return `${new Intl.NumberFormat(lang, { maximumSignificantDigits: 3 }).format(value / 1024 ** power)} ${units[power]}`;
    };
  }
  const count = new Intl.NumberFormat(lang, isFull ? {} : { maximumSignificantDigits: 3, notation: "compact" });
  return (value) => count.format(value);
}

/** Each column on top of those before it. */
function stack(columns) {
  const sums = [];
  for (const column of columns) {
    const below = sums.at(-1);
    sums.push(column.map((value, row) => (value === null ? null : value + (below?.[row] ?? 0))));
  }
  return sums;
}

/** Draw times without data behind the lines, and in front of them changes, with their numbers in the list. */
function backgroundOf({ times, gaps }, marks, colours) {
  const step = times.length > 1 ? times[1] - times[0] : 60;
  const text = place().dataset.wait;
  return {
    drawAxes: (plot) => {
      const { ctx, bbox } = plot;
      ctx.save();
      ctx.fillStyle = colours.gap;
      for (let first = 0; first < gaps.length; first++) {
        if (!gaps[first]) continue;
        let last = first;
        while (gaps[last + 1]) last++;
        const left = Math.max(plot.valToPos(times[first] - step / 2, "x", true), bbox.left);
        const right = Math.min(plot.valToPos(times[last] + step / 2, "x", true), bbox.left + bbox.width);
        ctx.fillRect(left, bbox.top, right - left, bbox.height);
        ctx.font = `${11 * devicePixelRatio}px ${colours.font}`;
        if (ctx.measureText(text).width < right - left - 8) {
          ctx.save();
          ctx.fillStyle = colours.axis;
          ctx.textAlign = "center";
          ctx.fillText(text, (left + right) / 2, bbox.top + bbox.height / 2);
          ctx.restore();
        }
        first = last;
      }
      ctx.restore();
    },
    draw: (plot) => {
      const { ctx, bbox } = plot;
      ctx.save();
      ctx.strokeStyle = ctx.fillStyle = colours.mark;
      ctx.font = `600 ${10 * devicePixelRatio}px ${colours.font}`;
      ctx.textAlign = "center";
      ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
      const labels = []; // those that would overprint each other are one
      for (const { at, number } of marks) {
        // a period is drawn around its start, so a mark goes where its period is
        const x = plot.valToPos(at - step / 2, "x", true);
        if (x < bbox.left || x > bbox.left + bbox.width) continue;
        ctx.beginPath();
        ctx.moveTo(x, bbox.top);
        ctx.lineTo(x, bbox.top + bbox.height);
        ctx.stroke();
        const near = labels.at(-1);
        if (near && x - near.right < 40 * devicePixelRatio) Object.assign(near, { right: x, last: number });
        else labels.push({ left: x, right: x, first: number, last: number });
      }
      for (const { left, right, first, last } of labels) {
        const text = first === last ? first : `${first}–${last}`;
        const half = ctx.measureText(text).width / 2;
        const middle = Math.min((left + right) / 2, bbox.left + bbox.width - half);
        ctx.fillText(text, middle, bbox.top - 3 * devicePixelRatio);
      }
      ctx.restore();
    },
  };
}

function draw(figure, { size, inks, faint, colours }, marks) {
  const periods = JSON.parse(place().dataset.periods);
  const { times } = periods;
  const values = JSON.parse(figure.dataset.columns);
  const legend = [...figure.querySelectorAll(".chart-legend > li")];
  const { chart: kind, unit } = figure.dataset;
  const isStacked = kind !== "lines";
  const columns = isStacked ? stack(values) : values;
  const order = columns.map((_, index) => index);
  if (isStacked) order.reverse(); // the highest first, so that the lower ones cover it
  const write = writer(unit);
  const writeFully = writer(unit, true);
  const isWhole = unit === "count";
  const series = order.map((index) => ({
    label: String(index),
    stroke: inks[index],
    width: kind === "bars" ? 0 : 2,
    dash: kind === "lines" ? DASHES[index % DASHES.length] : undefined,
    fill: kind === "bars" ? inks[index] : kind === "area" ? faint[index] : undefined,
    paths: kind === "bars" ? uPlot.paths.bars({ size: [0.8, 40], align: 0 }) : undefined,
    points: { show: kind !== "bars" && columns[index].some((it, at, all) => it !== null && (all[at - 1] ?? all[at + 1] ?? null) === null) },
  }));
  const totals = legend.map((item) => item.querySelector("[data-total]"));
  const usual = totals.map((it) => it.textContent);
  const output = figure.querySelector("output");
  const time = new Intl.DateTimeFormat(lang, { timeZone: page.zone, hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  const day = new Intl.DateTimeFormat(lang, { timeZone: page.zone, day: "numeric", month: "short" });
  const span = times.at(-1) - times[0];
  const options = {
    ...size,
    padding: [14, 20, 0, 0],
    legend: { show: false },
    tzDate: (at) => uPlot.tzDate(new Date(at * 1000), page.zone),
    cursor: { y: false, points: { show: kind !== "bars" }, drag: { x: true, y: false, setScale: false } },
    scales: { x: { time: true, range: xRange(times) }, y: { range: (_, low, high) => [0, high > 0 ? high * 1.08 : 1] } },
    axes: [
      {
        stroke: colours.axis,
        grid: { show: false },
        ticks: { stroke: colours.grid, width: 1, size: 4 },
        font: `11px ${colours.font}`,
        size: 28,
        space: 70,
        incrs: DISTANCES.filter((it) => span <= 2 * DAY || it >= DAY),
        values: (_, at) => at.map((it) => (span > 2 * DAY ? day : time).format(it * 1000)),
      },
      {
        stroke: colours.axis,
        grid: { stroke: colours.grid, width: 1, dash: [3, 3] },
        ticks: { show: false },
        font: `11px ${colours.font}`,
        size: 62,
        space: 32,
        incrs: isWhole ? [1, 2, 5].flatMap((it) => [...Array(13).keys()].map((power) => it * 10 ** power)).sort((a, b) => a - b) : unit === "bytes" ? [...Array(50).keys()].map((power) => 2 ** power) : undefined,
        values: (_, numbers) => numbers.map(write),
      },
    ],
    series: [{}, ...series],
    hooks: {
      ...wrap(backgroundOf(periods, marks, colours)),
      setCursor: [
        ({ cursor: { idx } }) => {
          const at = idx ?? null;
          output.textContent = at === null ? "" : [day, time].map((it) => it.format(times[at] * 1000)).join(" ");
          totals.forEach((it, column) => {
            it.textContent = at === null ? usual[column] : (values[column][at] ?? null) === null ? "–" : writeFully(values[column][at]);
          });
        },
      ],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width < 8) return;
          const half = times.length > 1 ? (times[1] - times[0]) / 2 : 30;
          const read = (x) => new Date((plot.posToVal(x, "x") + half) * 1000).toISOString();
          const [since, until] = [read(left), read(left + width)];
          location.search = new URLSearchParams({ since, until });
        },
      ],
    },
  };
  drawn.set(figure, new uPlot(options, [times, ...order.map((index) => columns[index])], spotOf(figure)));
  resized.observe(figure);
}

/** Half a period of space on both sides, for the first and the last bar. */
function xRange(times) {
  const half = times.length > 1 ? (times[1] - times[0]) / 2 : 30;
  return [times[0] - half, times.at(-1) + half];
}

function wrap(hooks) {
  return Object.fromEntries(Object.entries(hooks).map(([name, act]) => [name, [act]]));
}

/** Colours as a browser computes them: a canvas knows no variables, and not every browser's knows light-dark(). */
function compute(element, colours) {
  const probes = colours.map((colour) => {
    const probe = document.createElement("i");
    probe.style.setProperty("color", colour);
    return probe;
  });
  element.append(...probes);
  const computed = probes.map((probe) => getComputedStyle(probe).color);
  for (const probe of probes) probe.remove();
  return computed;
}

const mix = (ink) => `color-mix(in srgb, ${ink} 30%, var(--surface))`;

/** Sizes and colours of all charts: read between their drawings, they would have the page laid out for each. */
function looksOf(figures) {
  const sizes = figures.map(sizeOf);
  const inks = figures.map((figure) => [...figure.querySelectorAll(".chart-legend i")].map((it) => getComputedStyle(it).color));
  const { fontFamily: font } = getComputedStyle(spotOf(figures[0]));
  const [axis, grid, gap, mark, ...mixed] = compute(spotOf(figures[0]), ["var(--axis)", "var(--grid)", "var(--gap)", "var(--mark)", ...inks.flat().map(mix)]);
  const colours = { axis, grid, gap, mark, font };
  return figures.map((_, at) => ({ size: sizes[at], inks: inks[at], faint: mixed.splice(0, inks[at].length), colours }));
}

function drawAll() {
  for (const [figure, plot] of drawn) {
    plot.destroy();
    resized.unobserve(figure);
  }
  drawn.clear();
  const marks = [...document.querySelectorAll("[data-mark]")].map(({ dataset }, index) => ({
    at: Number(dataset.mark),
    number: String(index + 1),
  }));
  const figures = [...document.querySelectorAll("[data-chart]")].filter(spotOf);
  if (!figures.length) return;
  const looks = looksOf(figures);
  figures.forEach((figure, at) => draw(figure, looks[at], marks));
}

/** Put the present numbers into the page. */
async function renew() {
  const old = place();
  const { found: answer } = await refresh(old.dataset.address);
  const found = answer.getElementById("metrics");
  if (!found || old !== place()) return;
  old.replaceWith(found);
  drawAll();
}

const isBusy = () => document.hidden || place().matches(":focus-within, :hover");
const follow = () => place() && "follows" in place().dataset && !isBusy() && renew().catch(() => {});
onClick("[data-metrics-refresh]", (link) => renew().catch(() => location.assign(link.href)));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
new MutationObserver(drawAll).observe(document.documentElement, { attributeFilter: ["data-theme", "data-density"] });
onPage((left) => {
  drawAll();
  const following = setInterval(follow, EVERY);
  left.addEventListener("abort", () => clearInterval(following));
});
