// What every view is made of: elements, hooks, and signals that components follow.

import { html, render, useCallback, useEffect, useErrorBoundary, useLayoutEffect, useMemo, useRef, useState } from "../vendor/preact-htm.js";
import { batch, computed, effect, signal } from "../vendor/signals.js";

export { batch, computed, effect, html, render, signal, useCallback, useEffect, useErrorBoundary, useLayoutEffect, useMemo, useRef, useState };

/**
 * Return a signal's value, and draw the component again when it changes.
 * @template T
 * @param {import("../vendor/signals.js").ReadonlySignal<T>} source @returns {T}
 */
export function useValue(source) {
  const [, again] = useState(0);
  useLayoutEffect(() => {
    let first = source.peek();
    return source.subscribe((value) => {
      if (value === first) return;
      first = value;
      again((times) => times + 1);
    });
  }, [source]);
  return source.peek();
}
