// The data of the file: gzip, in base64, in script elements that no browser runs. A chunk is unpacked when it is asked
// for, and the newest ones are kept.

const MOST = 40;
/** @type {Map<string, Promise<any>>} */
const kept = new Map();

/** @param {string} id @returns {Promise<any>} */
export function chunk(id) {
  const found = kept.get(id) ?? unpacked(id);
  kept.delete(id);
  kept.set(id, found); // the one that was asked for last is thrown away last
  for (const old of kept.keys()) {
    if (kept.size <= MOST) break;
    kept.delete(old);
  }
  return found;
}

/** @param {string} id */
async function unpacked(id) {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`This file is damaged: its part ${id} is missing. Export it again.`);
  const text = atob((element.textContent ?? "").trim());
  const bytes = Uint8Array.from(text, (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}
