"use strict";
// What the parts of the page share: elements, numbers as text, tables. Each file beside this one
// adds to `page` what draws its section, from the data alone.
const page = {
  errors: []
};

window.addEventListener("error", (event) => page.errors.push(event.message));

// page.element("a", {href: "#step"}, "Step"): children are elements or text.
page.element = function(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  return page.fill(element, attributes, children);
};

page.svg = function(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  return page.fill(element, attributes, children);
};

page.fill = function(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true)
      element.setAttribute(name, "");
    else if (value !== undefined && value !== false)
      element.setAttribute(name, value);
  }
  for (const child of children.flat()) {
    if (child !== undefined && child !== "") element.append(child);
  }
  return element;
};

// Three digits: "4.68 s", "97.1 ms", "12.3 us".
page.timeText = function(us) {
  if (us >= 1e6) return `${page.digits(us / 1e6)} s`;
  if (us >= 1e3) return `${page.digits(us / 1e3)} ms`;
  return `${page.digits(us)} us`;
};

page.digits = function(value) {
  if (value === 0) return "0";
  if (value >= 100) return Math.round(value).toLocaleString("en");
  return value.toPrecision(3).replace(/\.?0+$/, "");
};

page.bytesText = function(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let u = 0;
  while (bytes >= 1024 && u + 1 < units.length) {
    bytes /= 1024;
    ++u;
  }
  return `${u === 0 ? Math.round(bytes) : bytes.toFixed(1)} ${units[u]}`;
};

page.percentText = (share) => `${(100 * share).toFixed(1)} %`;
page.countText = (count) => count.toLocaleString("en");
page.plural = (count, what) => `${page.countText(count)} ${what}${count === 1 ? "" : "s"}`;

page.shortened = (text, length) => text.length <= length ? text : `${text.slice(0, length - 1)}…`;

// A colour of the style sheet as a canvas wants it: of the theme that is on.
page.colour = function(name) {
  const probe = document.getElementById("announcement");
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
};

page.announce = function(text) {
  document.getElementById("announcement").textContent = text;
};

// A table whose first column heads its rows. `columns`: {title, number: right-aligned}; cells are
// text or elements. It scrolls within itself where it is too wide.
page.table = function(caption, columns, rows, className = "") {
  const head = columns.map(
      (column) => page.element(
          "th", {scope: "col", class: column.number ? "number" : undefined}, column.title));
  const body = rows.map((cells) => {
    const row = page.element("tr");
    cells.forEach((cell, i) => {
      const attributes = {
        class: columns[i].number ? "number" : undefined,
        "data-title": columns[i].title
      };
      row.append(
          i === 0 ? page.element("th", {scope: "row", ...attributes}, cell) :
                    page.element("td", attributes, cell));
    });
    return row;
  });
  const table = page.element(
      "table", {class: className}, page.element("caption", {}, caption),
      page.element("thead", {}, page.element("tr", {}, head)), page.element("tbody", {}, body));
  return page.element(
      "div", {class: "scrolls", tabindex: 0, role: "region", "aria-label": caption}, table);
};

// A table whose rows are shown one below the other on narrow screens: roles keep what display takes
// away.
page.cards = function(scrolling) {
  const roles = {
    table: "table",
    thead: "rowgroup",
    tbody: "rowgroup",
    tr: "row",
    td: "cell",
    "thead th": "columnheader",
    "tbody th": "rowheader"
  };
  for (const [selector, role] of Object.entries(roles)) {
    for (const element of scrolling.querySelectorAll(selector)) element.setAttribute("role", role);
  }
  scrolling.querySelector("table").classList.add("cards");
  return scrolling;
};

page.facts = function(pairs) {
  const list = page.element("dl", {class: "facts"});
  for (const [term, value] of pairs) {
    if (value === undefined || value === "") continue;
    list.append(
        page.element("div", {}, page.element("dt", {}, term), page.element("dd", {}, value)));
  }
  return list;
};

page.legend = function(entries) {
  const items = entries.map(
      ({name, colour, pattern}) => page.element(
          "li", {},
          page.element("span", {class: `swatch ${pattern || ""}`, style: `--swatch:${colour}`}),
          name));
  return page.element("ul", {class: "legend"}, items);
};
