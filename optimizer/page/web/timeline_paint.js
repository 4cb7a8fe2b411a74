"use strict";
// The pixels of the timeline.
page.timelineSize = {
  top: 24,
  row: 16,
  bar: 12
};
page.redraws = [];

page.labelWidth = (width) => (width < 560 ? 96 : 208);

// The queues of a device, as a reader calls them: full, and where there is little room.
page.queues = {
  compute: ["compute", "comp"],
  communication: ["communication", "comm"],
  weights: ["communication of weights", "weights"],
  forward: ["to the next stage", "next"],
  backward: ["to the stage before", "before"],
};

// 1, 2 or 5 times a power of ten, so that there are at most `most` ticks.
page.tickOf = function(span, most) {
  const power = Math.pow(10, Math.floor(Math.log10(span / most)));
  return [1, 2, 5, 10].map((factor) => factor * power).find((tick) => span / tick <= most);
};

page.paintTimeline = function(canvas, timeline, view) {
  const size = page.timelineSize;
  const width = canvas.parentElement.clientWidth;
  const height = size.top + size.row * timeline.rows.length + 4;
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  const left = page.labelWidth(width);
  const scale = (width - left) / (view.to - view.from);
  const x = (tick) => left + (tick - view.from) * scale;
  page.paintAxis(context, timeline, view, {x, width, height, left});
  const colours = timeline.classes.map((name, i) => page.colour(`task-${i}`));
  timeline.rows.forEach((row, r) => {
    const y = size.top + r * size.row;
    context.fillStyle = page.colour("text");
    context.textAlign = "left";
    context.fillText(page.rowLabel(timeline, r, width < 560), 0, y + size.bar - 2);
    for (let s = 0; s < row.spans.length; s += 6) {
      const begin = Math.max(left, x(row.spans[s]));
      const end = Math.min(width, x(row.spans[s] + row.spans[s + 1]));
      if (end <= begin) continue;
      context.fillStyle = colours[row.spans[s + 2]];
      context.fillRect(begin, y, Math.max(0.5, end - begin), size.bar);
    }
  });
  if (view.hasCursor) page.paintCursor(context, timeline, view, x, left);
};

page.rowLabel = function(timeline, r, isShort) {
  const row = timeline.rows[r];
  const isFirst = r === 0 || timeline.rows[r - 1].device !== row.device;
  const queue = page.queues[row.queue][isShort ? 1 : 0];
  return `${isFirst ? `${isShort ? "" : "device "}${row.device} ` : "      "}${queue}`;
};

page.paintAxis = function(context, timeline, view, {x, width, height, left}) {
  const us = timeline.span_us / timeline.ticks;
  const tick = page.tickOf((view.to - view.from) * us, Math.max(2, (width - left) / 90));
  for (let at = Math.ceil(view.from * us / tick) * tick; at <= view.to * us * (1 + 1e-9);
       at += tick) {
    context.fillStyle = page.colour("line");
    context.fillRect(x(at / us), 18, 1, height - 18);
    context.fillStyle = page.colour("muted");
    context.textAlign = x(at / us) > width - 30 ? "right" :
        x(at / us) < left + 20                  ? "left" :
                                                  "center";
    context.fillText(at === 0 ? "0" : page.timeText(at), x(at / us), 12);
  }
};

page.paintCursor = function(context, timeline, view, x, left) {
  const size = page.timelineSize;
  const span = page.spanAt(timeline.rows[view.row], view.span);
  const begin = Math.max(left, x(span.start));
  context.strokeStyle = page.colour("focus");
  context.lineWidth = 2;
  context.strokeRect(
      begin - 1, size.top + view.row * size.row - 2,
      Math.max(3, x(span.start + span.length) - begin + 2), size.bar + 4);
};
