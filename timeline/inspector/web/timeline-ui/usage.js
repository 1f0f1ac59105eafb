// <tl-context-usage>: how full the context is. Green; yellow above 80 %; red above 95 %, each with a sign and a pattern.

import { LiveElement, make, sheet } from "./element.js";
import { figure } from "./words.js";

const CSS = sheet(`
.row{display:flex;align-items:center;gap:8px}
.track{flex:1;height:6px;border-radius:3px;background:var(--tl-track);overflow:hidden}
.bar{height:100%;width:0;background:var(--tl-green-500);transition:width .2s}
:host([level="warning"]) .bar{background:repeating-linear-gradient(45deg,var(--tl-yellow-500) 0 6px,var(--tl-yellow-300) 6px 8px)}
:host([level="critical"]) .bar{background:repeating-linear-gradient(90deg,var(--tl-red-500) 0 5px,var(--tl-red-700) 5px 7px)}
.label{font-size:12px;white-space:nowrap;min-width:7ch;text-align:right}
:host([plain]) .label{display:none}
@media (prefers-reduced-motion:reduce){.bar{transition:none}}
`);
const LEVELS = { ok: ["", ""], warning: ["▲ ", ", above 80 %"], critical: ["■ ", ", above 95 %"] };

export class ContextUsage extends LiveElement {
  constructor() {
    super(CSS);
    this._bar = make("div", { class: "bar", part: "bar" });
    this._label = make("span", { class: "label figures", part: "label", "aria-hidden": "true" });
    this._meter = make(
      "div",
      { class: "track", part: "track", role: "meter", "aria-label": "Context used", "aria-valuemin": "0", "aria-valuemax": "100" },
      this._bar,
    );
    this._root.append(make("div", { class: "row" }, this._meter, this._label));
  }

  draw() {
    const { usage } = this.state;
    this.hidden = usage === null;
    if (usage === null) return;
    const percent = Math.max(0, Math.min(usage.percentUsed, 100));
    const level = usage.isCritical ? "critical" : usage.isWarning ? "warning" : "ok";
    const [sign, words] = LEVELS[/** @type {keyof typeof LEVELS} */ (level)];
    this.setAttribute("level", level);
    this._bar.style.width = `${percent}%`;
    this._label.textContent = `${sign}${usage.estimated ? "~" : ""}${Math.round(percent)} %`;
    const text = `${Math.round(percent)} % of ${figure(usage.limit)} tokens${words}`;
    this._meter.setAttribute("aria-valuenow", String(Math.round(percent)));
    this._meter.setAttribute("aria-valuetext", text);
    this.title = `${figure(usage.currentTokens)} of ${figure(usage.limit)} tokens${usage.estimated ? ", about" : ""}`;
  }
}
