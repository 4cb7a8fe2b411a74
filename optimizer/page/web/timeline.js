"use strict";
// The simulated step: a row for each queue of each shown device. Drawn on a canvas, as there are
// thousands of spans; a cursor that arrow keys move reads them out.
page.drawTimeline = function(data, section) {
  const timeline = data.timeline;
  const view = {from: 0, to: timeline.ticks, row: 0, span: 0, hasCursor: false};
  const canvas = page.element("canvas", {
    tabindex: 0,
    role: "application",
    "aria-roledescription": "timeline",
    "aria-label":
        "Timeline of the step: arrow keys go from task to task and from row to row, plus and minus zoom"
  });
  const readout = page.element(
      "output", {class: "readout", "aria-live": "polite"},
      "Point at a task, or go through tasks with the arrow keys.");
  const shown = {...timeline};
  const draw = () => page.paintTimeline(canvas, shown, view);
  // Of many devices first what computes: communication would be four rows in five.
  const computing = page.element(
      "input", {type: "checkbox", id: "computing", checked: timeline.rows.length > 40});
  const choose = () => {
    shown.rows = timeline.rows.filter(({queue}) => !computing.checked || queue === "compute");
    Object.assign(view, {row: 0, span: 0, hasCursor: false});
    draw();
  };
  computing.addEventListener("change", choose);
  const read = () => {
    readout.textContent = page.spanText(shown, view);
    draw();
  };
  const zoom = (factor) => {
    const middle = (view.from + view.to) / 2;
    const half = Math.max(50, (view.to - view.from) / 2 / factor);
    view.from = Math.max(0, middle - half);
    view.to = Math.min(timeline.ticks, middle + half);
    draw();
  };
  const pan = (by) => {
    const width = view.to - view.from;
    view.from = Math.min(Math.max(0, view.from + by * width), timeline.ticks - width);
    view.to = view.from + width;
    draw();
  };
  const button = (text, label, act) => {
    const element = page.element("button", {type: "button", "aria-label": label}, text);
    element.addEventListener("click", act);
    return element;
  };
  section.append(
      page.devicesNote(data),
      page.legend(timeline.classes.map((name, i) => ({name, colour: `var(--task-${i})`}))),
      page.element(
          "div", {class: "tools"}, button("+", "Zoom into the step", () => zoom(2)),
          button("−", "Zoom out of the step", () => zoom(0.5)),
          button("←", "Earlier", () => pan(-0.5)), button("→", "Later", () => pan(0.5)),
          button("All", "Show the whole step", () => zoom(1e-9)),
          page.element(
              "label",
              {for: "computing"
              },
              computing, " Only what computes")),
      page.element("div", {class: "drawn"}, canvas), readout, page.deviceTable(data));
  page.timelineEvents(canvas, shown, view, {read, zoom, draw});
  choose();
  new ResizeObserver(draw).observe(canvas.parentElement);
  page.redraws.push(draw);
};

page.timelineEvents = function(canvas, timeline, view, act) {
  const size = page.timelineSize;
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top - size.top) / size.row);
    const left = page.labelWidth(box.width);
    const tick =
        view.from + (event.clientX - box.left - left) / (box.width - left) * (view.to - view.from);
    if (!timeline.rows[row] || tick < view.from) return;
    const spans = timeline.rows[row].spans;
    for (let s = 0; 6 * s < spans.length; ++s) {
      if (spans[6 * s] <= tick && tick <= spans[6 * s] + spans[6 * s + 1]) {
        Object.assign(view, {row, span: s, hasCursor: true});
        act.read();
        return;
      }
    }
  });
  canvas.addEventListener("keydown", (event) => {
    const last = () => timeline.rows[view.row].spans.length / 6 - 1;
    const moves = {
      ArrowRight: () => {
        view.span = Math.min(last(), view.span + 1);
      },
      ArrowLeft: () => {
        view.span = Math.max(0, view.span - 1);
      },
      ArrowDown: () => {
        view.row = Math.min(timeline.rows.length - 1, view.row + 1);
      },
      ArrowUp: () => {
        view.row = Math.max(0, view.row - 1);
      },
      Home: () => {
        view.span = 0;
      },
      End: () => {
        view.span = last();
      },
    };
    if (event.key === "+" || event.key === "=") return act.zoom(2);
    if (event.key === "-") return act.zoom(0.5);
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
    view.span = Math.min(last(), view.span);
    view.hasCursor = true;
    page.followCursor(timeline, view);
    act.read();
  });
};

page.followCursor = function(timeline, view) {
  const span = page.spanAt(timeline.rows[view.row], view.span);
  const width = view.to - view.from;
  if (span.start >= view.from && span.start + span.length <= view.to) return;
  view.from = Math.min(Math.max(0, span.start - width / 10), timeline.ticks - width);
  view.to = view.from + width;
};
