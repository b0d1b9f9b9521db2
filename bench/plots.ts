/** Draws the figures of the benchmark as SVG. */
import { type EChartsOption, init } from "echarts";
import type { Compared, Side } from "./course.ts";
import type { AllFigures, CourseFigures, FairnessFigures, GrowthRow, Run } from "./results.ts";
import { median, quantile } from "./table.ts";

const SIZE = { width: 640, height: 400 };
const NAMES: Compared<string> = { floor: "floor", ours: "Inlay" };
/** Distinguishable with all kinds of color blindness. */
const COLORS: Compared<string> = { floor: "#7f7f7f", ours: "#0072b2" };

/** The file names and texts of all plots for which there are figures. */
export function plotsOf({ rotations, rollouts, growth, fairness }: AllFigures): Map<string, string> {
  const plots = new Map<string, string>();
  if (growth) plots.set("growth.svg", growthPlot(growth, growth.rows));
  if (rotations) plots.set("latency-fields.svg", latencyPlot("a changed field", rotations));
  if (rollouts) plots.set("latency-restarts.svg", latencyPlot("a restart", rollouts));
  if (rotations && rollouts) plots.set("bursts.svg", burstPlot(rotations, rollouts));
  if (fairness) plots.set("fairness.svg", fairnessPlot(fairness));
  return plots;
}

function growthPlot(run: Run, rows: readonly GrowthRow[]): string {
  const counted = rows.filter(({ bindings }) => bindings !== undefined);
  return draw("Latency of one change, by the number of bindings", run, {
    xAxis: { ...axis("bindings"), type: "log" },
    yAxis: { ...axis("median latency (ms)"), type: "value", min: 0 },
    series: both((side) => ({
      type: "line",
      data: counted.map(({ bindings, median }) => [bindings, median[side]]),
      symbolSize: 8,
      label: { show: true, align: "left", formatter: ({ value }) => label((value as number[])[1]) },
    })),
  });
}

/** How many of the changes have arrived, by time. Without the slowest of a hundred, which would make the others unreadable. */
function latencyPlot(what: string, { latency, ...run }: Run & CourseFigures): string {
  const slowest = Math.max(quantile(latency.floor, 0.99), quantile(latency.ours, 0.99));
  return draw(`Latency of ${what}`, run, {
    xAxis: { ...axis("time since the change (ms)"), type: "value", max: 10 * Math.ceil(slowest / 10) },
    yAxis: { ...axis("arrived (%)"), type: "value", min: 0, max: 100 },
    series: both((side) => {
      const sorted = [...latency[side]].sort((a, b) => a - b);
      const data = sorted.map((time, i) => [time, (100 * (i + 1)) / sorted.length]);
      return { type: "line", step: "end", showSymbol: false, data };
    }),
  });
}

function burstPlot(rotations: Run & CourseFigures, rollouts: CourseFigures): string {
  return draw("Bursts of changes", rotations, {
    xAxis: { type: "category", data: ["fields", "restarts"] },
    yAxis: { ...axis("changes per second"), type: "value" },
    series: both((side) => bars([rotations, rollouts].map(({ burst }) => median(burst[side])))),
  });
}

function fairnessPlot({ quiet, beside, ...run }: Run & FairnessFigures): string {
  const groups: [name: string, times: Compared<number[]>, q: number][] = [
    ["median,\nquiet", quiet, 0.5],
    ["median,\nbeside a burst", beside, 0.5],
    ["p99,\nquiet", quiet, 0.99],
    ["p99,\nbeside a burst", beside, 0.99],
  ];
  return draw("Single changes beside a burst of another namespace", run, {
    xAxis: { type: "category", data: groups.map(([name]) => name) },
    yAxis: { ...axis("latency (ms)"), type: "value" },
    series: both((side) => bars(groups.map(([, times, q]) => quantile(times[side], q)))),
  });
}

const label = (value = 0): string => value.toFixed(value < 100 ? 1 : 0);

const axis = (name: string) => ({ name, nameLocation: "middle" as const, nameGap: 44 });

type Series = Extract<NonNullable<EChartsOption["series"]>, unknown[]>[number];

const bars = (data: number[]): Series => ({
  type: "bar",
  data,
  label: { show: true, position: "top", formatter: ({ value }) => label(value as number) },
});

const both = (of: (side: Side) => Series): Series[] =>
  (["floor", "ours"] as const).map((side) => ({ ...of(side), name: NAMES[side], color: COLORS[side] }) as Series);

function draw(title: string, { date, kubernetes, scale }: Run, option: EChartsOption): string {
  const chart = init(null, null, { renderer: "svg", ssr: true, ...SIZE });
  chart.setOption({
    ...option,
    animation: false,
    backgroundColor: "#ffffff",
    title: {
      text: title,
      subtext: `${date}, Kubernetes ${kubernetes}${scale === 1 ? "" : `, scale ${scale}`}`,
      left: "center",
    },
    legend: { top: 60 },
    grid: { top: 100, bottom: 60, left: 80, right: 40 },
  });
  const svg = chart.renderToSVGString();
  chart.dispose();
  return `${withoutCounters(svg)}\n`;
}

/** Removes the styles for a mouse, and the number of the chart from ids, so that the same figures lead to the same text. */
const withoutCounters = (svg: string): string =>
  svg
    .replaceAll(/ class="zr[\w-]+"/g, "")
    .replace(/<style.*?<\/style>\n?/s, "")
    .replaceAll(/\bzr\d+-/g, "");
