// The page's beginning: the source is the server that sent the page.

import { html, render } from "./parts/page.js";
import { App } from "./views/app.js";

const place = /** @type {HTMLElement} */ (document.getElementById("app"));
place.replaceChildren();
render(html`<${App} />`, place);
