"use strict";
// What lives on a device over the step, by category.
page.drawMemory = function(data, section) {
  const memory = data.memory;
  if (memory.devices.length === 0) return;
  const names = memory.devices.map(
      (device) => `device ${device.device}${
          data.devices.stages.length > 1 ? `, stage ${device.stage + 1}` :
                                           ""}: ${page.bytesText(device.arena_bytes)}`);
  const fullest = memory.devices.reduce(
      (best, device, i) => (device.arena_bytes > memory.devices[best].arena_bytes ? i : best), 0);
  const select = page.element(
      "select", {id: "memory-device"},
      names.map((name, i) => page.element("option", {value: i, selected: i === fullest}, name)));
  const chart = page.element("div", {class: "drawn"});
  const draw = () =>
      chart.replaceChildren(page.memoryChart(data, Number(select.value), chart.clientWidth));
  select.addEventListener("change", draw);
  section.append(
      page.element(
          "div", {class: "tools"},
          page.element(
              "label",
              {for: "memory-device"
              },
              "Device ", select)),
      page.legend(memory.categories.map((name, i) => ({name, colour: `var(--memory-${i})`}))),
      chart,
      page.element(
          "p", {class: "note"},
          "What lives, in the order of the schedule, at the times at which its tasks start. A device needs " +
              "more than lives at its peak: gaps between buffers, and what libraries allocate. The dashed " +
              `line is its memory, ${page.bytesText(data.memory_bytes)}, where it is near.`),
      page.memoryTable(data));
  draw();
  new ResizeObserver(draw).observe(chart);
};

page.memoryChart = function(data, index, width) {
  const memory = data.memory, device = memory.devices[index];
  const height = 260, left = 72, right = 12, top = 10, bottom = 26;
  width = Math.max(300, width);
  const toBytes = (units) => units * memory.unit_bytes;
  const isNearLimit = data.memory_bytes < 1.7 * device.arena_bytes;
  const most = 1.05 * Math.max(device.arena_bytes, isNearLimit ? data.memory_bytes : 0);
  const x = d3.scaleLinear([0, memory.bins], [left, width - right]);
  const y = d3.scaleLinear([0, most], [height - bottom, top]);
  const svg = page.svg("svg", {
    width,
    height,
    role: "img",
    "aria-label": `Memory of device ${device.device} over the step: at most ${
        page.bytesText(device.live_bytes)} of ${
        page.bytesText(data.memory_bytes)}. The table below has the parts.`
  });
  const unit = most > 2 ** 30 ? 2 ** 30 : most > 2 ** 20 ? 2 ** 20 : 1024;
  const step = page.tickOf(most / unit, 5) * unit;
  for (let bytes = 0; bytes <= most; bytes += step) {
    svg.append(
        page.svg("line", {class: "grid", x1: left, x2: width - right, y1: y(bytes), y2: y(bytes)}),
        page.svg(
            "text", {class: "axis", x: left - 6, y: y(bytes) + 4, "text-anchor": "end"},
            page.bytesText(bytes)));
  }
  const base = new Array(memory.bins).fill(0);
  device.series.forEach((series, c) => {
    const low = base.slice();
    series.forEach((units, b) => {
      base[b] += toBytes(units);
    });
    const high = base.slice();
    // Steps: what is true of a bin is true of all of it.
    const area = d3.area().x((d) => x(d[0])).y0((d) => y(low[d[1]])).y1((d) => y(high[d[1]]));
    const points = low.flatMap((_, b) => [[b, b], [b + 1, b]]);
    svg.append(page.svg(
        "path", {d: area(points), fill: `var(--memory-${c})`},
        page.svg("title", {}, memory.categories[c])));
  });
  if (data.memory_bytes <= most) {
    svg.append(page.svg("line", {
      class: "limit",
      x1: left,
      x2: width - right,
      y1: y(data.memory_bytes),
      y2: y(data.memory_bytes)
    }));
  }
  const us = data.timeline.span_us / memory.bins;
  const tick = page.tickOf(data.timeline.span_us, Math.max(2, (width - left) / 110));
  for (let at = 0; at <= data.timeline.span_us; at += tick) {
    svg.append(page.svg(
        "text", {
          class: "axis",
          x: x(at / us),
          y: height - 8,
          "text-anchor": at === 0     ? "start" :
              x(at / us) > width - 40 ? "end" :
                                        "middle"
        },
        at === 0 ? "0" : page.timeText(at)));
  }
  return svg;
};

page.memoryTable = function(data) {
  const memory = data.memory;
  const rows = memory.devices.map((device) => {
    const totals =
        device.series[0].map((_, b) => device.series.reduce((sum, series) => sum + series[b], 0));
    const at = totals.indexOf(Math.max(...totals));
    return [
      `device ${device.device}`, page.bytesText(device.arena_bytes),
      page.bytesText(device.live_bytes),
      ...device.series.map((series) => page.bytesText(series[at] * memory.unit_bytes))
    ];
  });
  return page.element(
      "details", {}, page.element("summary", {}, "Memory at the peak as a table"),
      page.table(
          "Memory of each shown device at its peak",
          [
            {title: "device"}, {title: "needs", number: true},
            {title: "of which lives", number: true},
            ...memory.categories.map((title) => ({title, number: true}))
          ],
          rows));
};
