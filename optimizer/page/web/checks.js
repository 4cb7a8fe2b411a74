"use strict";
// The checks of selftest.js, by what they look at.
page.tests = {
  header({data, check}) {
    check(
        "the headline is the report's",
        document.querySelector("h1").textContent === data.report.headline);
    check("one h1", document.querySelectorAll("h1").length === 1);
  },
  sections({check, all}) {
    for (const section of all("main > section")) {
      check(`section ${section.id} has more than a title`, section.children.length > 1);
    }
    for (const link of all("nav a")) {
      check(
          `link ${link.hash} leads somewhere`,
          document.getElementById(link.hash.slice(1)) !== null);
    }
  },
  bars({data, check, all}) {
    check("a row for each bar", all("#step tbody tr").length === data.bars.length);
    for (const bar of data.bars.filter(({parts}) => parts)) {
      const sum = Object.values(bar.parts).reduce((a, b) => a + b, 0);
      check(`parts of ${bar.name} are the step: ${sum}`, Math.abs(sum - 1) < 1e-6);
    }
  },
  nodes({data, check, all, key}) {
    const panel = document.getElementById("panel");
    const nodes = all(".pane:last-child .node");
    check("a node for each operator", nodes.length === data.graphs.plan.nodes.length);
    check("one tab stop a graph", all(".pane:last-child .node[tabindex='0']").length === 1);
    for (const node of nodes) {
      node.dispatchEvent(new MouseEvent("click", {bubbles: true}));
      const opened =
          !panel.hidden && document.getElementById("panel-title") === document.activeElement;
      key(document.activeElement, "Escape");
      if (!opened || !panel.hidden || document.activeElement !== node) {
        check(`panel of ${node.getAttribute("aria-label")}`, false);
      }
    }
    nodes[0].focus();
    key(nodes[0], "ArrowRight");
    check("arrow keys move on", nodes.length < 2 || document.activeElement === nodes[1]);
    check("nodes are named", nodes.every((node) => node.getAttribute("aria-label").length > 3));
    key(document.activeElement, "Enter");
    check("enter opens", !panel.hidden);
    document.getElementById("panel-close").click();
    check("close closes", panel.hidden);
  },
  search({check, all}) {
    const find = document.getElementById("find");
    const first = all(".pane:last-child .node.call .title")[0].textContent.split(" ")[0];
    find.value = first;
    find.dispatchEvent(new Event("input"));
    check(
        `"${first}" is found`,
        all(".found").length > 0 &&
            all(".found").length + all(".dimmed").length === all(".node").length);
    find.value = "";
    find.dispatchEvent(new Event("input"));
    check("nothing is dimmed without a search", all(".dimmed").length === 0);
  },
  colours({check, all}) {
    for (const by of ["devices", "time", "split"]) {
      const select = document.getElementById("colour-by");
      select.value = by;
      select.dispatchEvent(new Event("change"));
      check(`legend of ${by}`, all("#graph .legend li").length > 0);
    }
    const before = page.colour("ground");
    document.getElementById("theme").click();
    document.getElementById("theme").click();
    check(
        "the theme changes",
        page.colour("ground") !== before || document.documentElement.dataset.theme === "dark");
    document.getElementById("theme").click();
  },
  timeline({data, check, all, key}) {
    const canvas = all("#timeline canvas")[0];
    for (const name of ["ArrowRight", "ArrowDown", "End", "+", "-", "Home"]) key(canvas, name);
    check("the cursor is read out", /^Device \d+/.test(all("#timeline output")[0].textContent));
    check("rows", data.timeline.rows.length > 0);
  },
  memory({data, check, all}) {
    const select = document.getElementById("memory-device");
    for (let i = 0; i < data.memory.devices.length; ++i) {
      select.value = i;
      select.dispatchEvent(new Event("change"));
      check(`areas of device ${i}`, all("#memory path").length === data.memory.categories.length);
    }
  },
  traffic({data, check, all}) {
    check(
        "a cell for each pair",
        all("#traffic table.matrix .cell").length ===
            data.traffic.rows.length * data.traffic.columns.length);
  },
  rules({data, check, all}) {
    check("all rules are there", all(".rule").length === data.rules.length);
    const links = all("#derivation a");
    check(
        "links to rules lead there",
        links.every((link) => document.getElementById(link.hash.slice(1))));
  },
  layout({check, all}) {
    const width = document.documentElement.clientWidth;
    check(
        `nothing is wider than the page: ${document.documentElement.scrollWidth} of ${width}`,
        document.documentElement.scrollWidth <= width);
    check(
        "tables head their columns and rows",
        all("table").every(
            (table) => table.querySelector("caption") && table.querySelector("th[scope=col]")));
    check(
        "controls are named",
        all("button, select, input")
            .every(
                (control) => control.textContent.trim() || control.getAttribute("aria-label") ||
                    control.labels?.length));
  },
  contrast({check}) {
    const pairs = [
      ["text", "ground"], ["text", "raised"], ["muted", "ground"], ["muted", "raised"],
      ["link", "ground"], ["found-text", "found"]
    ];
    const before = document.documentElement.dataset.theme || "auto";
    for (const theme of ["light", "dark"]) {
      page.setTheme(theme);
      for (const [text, ground] of pairs) {
        const contrast = page.contrast(page.colour(text), page.colour(ground));
        check(`${theme}: ${text} on ${ground} ${contrast.toFixed(1)}`, contrast >= 4.5);
      }
    }
    page.setTheme(before);
  },
};

// As WCAG 2 has it, of colours as computed styles have them.
page.contrast = function(a, b) {
  const luminance = (colour) => {
    const parts = colour.match(/[\d.]+/g).slice(0, 3).map((part) => {
      const x = part / 255;
      return x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (light + 0.05) / (dark + 0.05);
};
