"use strict";
// Draws what the address asks for, and again what a change of it concerns.

let drawn = {};

// As a view of the inspector the page has the place that it gets there, and no head of its own.
document.documentElement.classList.toggle("framed", window.parent !== window);

function draw() {
  const state = choices.read();
  const changed = (...names) => names.some((name) => String(drawn[name]) !== String(state[name]));
  const here = figures.limits[state.limit];
  if (changed("limit")) {
    drawScope(state);
    drawAnswer(here);
    drawPolicies(here);
    drawScatters(here);
    drawParts(here);
    drawCollapses(here);
  }
  drawRecordings(state);
  if (changed("limit", "recording", "show")) drawCharts(state);
  else if (changed("call")) markCall(state.call);
  if (changed("limit", "recording", "first", "second", "only")) view.rows = STEP;
  drawPair(state);
  drawDifferences(state);
  drawn = state;
}

addEventListener("hashchange", draw);
addEventListener("resize", () => drawScatters(figures.limits[choices.read().limit]));
new ResizeObserver(fitCharts).observe(document.getElementById("charts"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawCharts(choices.read()));
draw();
if (drawn.call !== null) document.querySelector("#differences .detail")?.scrollIntoView({ block: "center" });
