// The lab's page as a view: several policies and limits on this log, with the plots and tables of `timeline lab --html`.

import { shellWord, whole } from "../pure/format.js";
import { Empty, Failed, useLoaded } from "../parts/loading.js";
import { html, useCallback, useEffect, useRef, useState } from "../parts/page.js";
import { Command } from "../parts/pieces.js";
import { POLICIES } from "../parts/policies.js";
import { pathOf, source } from "../parts/source.js";
import { slide } from "../parts/state.js";

/** Policies that are compared at a time, and limits. */
const MOST = 8;
const MOST_LIMITS = 4;

/** @param {{ id: string, row: any, given: Record<string, string> }} props */
export function Lab({ id, row, given }) {
  if (!source.now.live) return html`<${Empty} title="No policies were compared for this file"><p>The lab replays the log. Run this on the machine that has the log:</p><${Command} text=${`timeline lab ${shellWord(id)} --facts --html lab.html`} /><//>`;
  const asked = given.policies && given.limits ? { policies: given.policies, limits: given.limits } : null;
  return html`<div class="lab">
    <${Choice} row=${row} given=${given} />
    ${asked
      ? html`<${Compared} key=${`${asked.policies} ${asked.limits}`} id=${id} asked=${asked} version=${row.version} />`
      : html`<${Empty} title="Which policy would have served this log best?"><p>The log is run again under each policy and limit, priced by the rules of the provider's cache, and searched for the facts that its answers used. No model is called, and nothing is written. The others are compared with the first policy.</p><//>`}
  </div>`;
}

/** @param {{ row: any, given: Record<string, string> }} props */
function Choice({ row, given }) {
  const [chosen, setChosen] = useState(() => (given.policies ?? ["none", row.policy?.name || "balanced", "economical"].join(",")).split(","));
  const [limits, setLimits] = useState(given.limits ?? String(row.limit ?? 100000));
  const known = [...new Set([...POLICIES, ...chosen])];
  const run = (/** @type {Event} */ event) => {
    event.preventDefault();
    slide({ policies: known.filter((name) => chosen.includes(name)).sort((one, other) => Number(other === "none") - Number(one === "none")).join(","), limits: limits.split(/[\s,]+/).filter(Boolean).slice(0, MOST_LIMITS).join(",") });
  };
  const flip = (/** @type {string} */ name) => setChosen(chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name].slice(-MOST));
  return html`<form onSubmit=${run}>
    <fieldset class="lab-policies"><legend>Policies, up to ${MOST}</legend>${known.map((name) => html`<label key=${name} class="toggle"><input type="checkbox" checked=${chosen.includes(name)} onChange=${() => flip(name)} /> ${name}</label>`)}</fieldset>
    <div class="choice"><label>Limits <input class="limits" inputmode="numeric" required pattern="[1-9][0-9]{2,8}([, ]+[1-9][0-9]{2,8}){0,3}" title="Up to four numbers of tokens, separated by commas" value=${limits} onInput=${(/** @type {any} */ event) => setLimits(event.target.value)} /> tokens</label>
    <button class="primary" disabled=${!chosen.length}>Compare</button></div>
  </form>`;
}

/** Ask until it has ended: each answer says how far it is. @param {{ id: string, asked: { policies: string, limits: string }, version: number }} props */
function Compared({ id, asked, version }) {
  const [turn, setTurn] = useState(0);
  const found = useLoaded(pathOf(id, "lab"), { ...asked, _turn: turn, _seen: version }, `lab ${id}`);
  const going = found.data && !found.data.ended;
  useEffect(() => {
    if (going && !found.loading) setTurn((before) => before + 1);
  }, [found]);
  if (found.error) return html`<${Failed} error=${found.error} of="The comparison" />`;
  if (!found.data || going) return html`<${Going} done=${found.data?.done ?? 0} of=${found.data?.of ?? 0} />`;
  return html`<${Page} src=${pageOf(id, asked)} />`;
}

/** @param {{ done: number, of: number }} props */
function Going({ done, of }) {
  return html`<div class="empty" role="status"><p class="empty-title">${of ? `Call ${whole(done)} of ${whole(of)}, over all policies` : "The log is being read"}</p>
    <progress max=${of || 1} value=${of ? done : null} aria-label="Comparison"></progress><p>It ends when you leave this view.</p></div>`;
}

/** @param {string} id @param {{ policies: string, limits: string }} asked */
function pageOf(id, asked) {
  return `v1/${pathOf(id, "lab-page")}?${new URLSearchParams(asked)}`;
}

/** The page of the lab, as high as what it shows. @param {{ src: string }} props */
function Page({ src }) {
  const frame = useRef(/** @type {HTMLIFrameElement | null} */ (null));
  const fit = useCallback(() => {
    const inner = frame.current?.contentDocument?.documentElement;
    if (!inner) return;
    const grown = () => frame.current && (frame.current.style.height = `${inner.querySelector("body")?.scrollHeight ?? 900}px`);
    new ResizeObserver(grown).observe(/** @type {Element} */ (inner.querySelector("body")));
    grown();
  }, []);
  return html`<iframe ref=${frame} class="lab-page" title="The lab: policies compared on this log" src=${src} onLoad=${fit}></iframe>`;
}
