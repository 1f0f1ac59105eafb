// The beginning of an exported file: the same page over what the file carries.

import { html, render } from "../parts/page.js";
import { source } from "../parts/source.js";
import { address, go } from "../parts/state.js";
import { App } from "../views/app.js";
import { chunk } from "./chunks.js";
import { StaticSource } from "./source.js";

const index = await chunk("index");
source.now = new StaticSource(index);
if (!address.value.conversation) go({ conversation: index.conversation, view: "log", given: {} });
const place = /** @type {HTMLElement} */ (document.getElementById("app"));
place.replaceChildren();
render(html`<${App} />`, place);
document.documentElement.dataset.ready = "true";
