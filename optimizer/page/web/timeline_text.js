"use strict";
// What the timeline says in words.

// What the shown devices stand for.
page.devicesNote = function(data) {
  const {devices, timeline} = data;
  let text = devices.simulated < devices.devices ?
      `${devices.simulated} simulated devices stand for ${page.countText(devices.devices)}. ` :
      "";
  if (devices.stages.length > 1) {
    const simulated = devices.stages[0].simulated.length;
    text += `Each of the ${devices.stages.length} pipeline stages has ` +
        `${page.plural(devices.stages[0].last - devices.stages[0].first + 1, "device")}` +
        `${
                simulated > 1 && devices.shown.length === devices.stages.length ?
                    `, of which the first of ${simulated} simulated ones is shown` :
                    ""}. `;
  }
  if (timeline.simulated_micro_batches < timeline.micro_batches) {
    text += `${timeline.simulated_micro_batches} micro-batches are drawn of ${
        timeline.micro_batches}; those left out repeat the ones in the middle. `;
  }
  if (timeline.steps > 1) text += `${timeline.steps} steps between two flushes are drawn. `;
  return page.element("p", {class: "note"}, text || "All devices are simulated.");
};

page.spanAt = function(row, s) {
  const [start, length, kind, moment, tasks, label] = row.spans.slice(6 * s, 6 * s + 6);
  return {start, length, kind, moment, tasks, label};
};

page.spanText = function(timeline, view) {
  const row = timeline.rows[view.row];
  const span = page.spanAt(row, view.span);
  const us = timeline.span_us / timeline.ticks;
  const what = span.label >= 0 ?
      timeline.labels[span.label] :
      `${timeline.classes[span.kind]}${span.moment >= 0 ? `, micro-batch ${span.moment}` : ""}, ${
          page.plural(span.tasks, "task")}`;
  return `Device ${row.device}, ${page.queues[row.queue][0]}: ${what}, ${
             page.timeText(span.length * us)} ` +
      `from ${page.timeText(span.start * us)}`;
};

page.deviceTable = function(data) {
  const step = data.report.predicted_step_us;
  const rows = data.report.step.devices.map(
      (device) =>
          [`device ${device.device}`, page.timeText(device.compute_us),
           page.percentText(device.compute_us / step), page.timeText(device.communication_us),
           page.timeText(device.idle_us)]);
  return page.element(
      "details", {}, page.element("summary", {}, "Simulated devices as a table"),
      page.table(
          "Time of each simulated device in a step; communication overlaps computation",
          [
            {title: "device"}, {title: "computes", number: true},
            {title: "of the step", number: true}, {title: "communicates", number: true},
            {title: "does not compute", number: true}
          ],
          rows));
};
