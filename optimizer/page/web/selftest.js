"use strict";
// What a browser test asks of the page: opened as F.html#selftest it walks over everything that can
// be clicked or typed at, and leaves a line for each check in #selftest.
page.selfTest = async function(data) {
  const lines = [];
  const check = (what, holds) => lines.push(`${holds ? "ok" : "FAILED"} ${what}`);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const key = (element, name) => element.dispatchEvent(
      new KeyboardEvent("keydown", {key: name, bubbles: true, cancelable: true}));
  for (const [name, test] of Object.entries(page.tests)) {
    try {
      await test({data, check, all, key});
    } catch (error) {
      check(`${name}: ${error.stack || error}`, false);
    }
  }
  // What was put off to the next frames may fail, too.
  await new Promise((done) => setTimeout(done, 200));
  check(`errors: ${page.errors.join("; ") || "none"}`, page.errors.length === 0);
  check(`drawn in ${document.documentElement.dataset.drawnMs} ms`, true);
  document.body.append(page.element("pre", {id: "selftest"}, lines.join("\n")));
};
