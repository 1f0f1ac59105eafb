// What the page uses of the bundle, as types: written by hand, since the package ships none for this file.
export type Child = VNode | string | number | null | false | undefined | Child[];
export interface VNode {
  type: unknown;
  props: Record<string, unknown>;
}
export function html(strings: TemplateStringsArray, ...values: unknown[]): any;
export function h(type: unknown, props: object | null, ...children: unknown[]): VNode;
export function render(tree: unknown, parent: Element): void;
export class Component<P = any, S = any> {
  props: P;
  state: S;
  constructor(props?: P);
  setState(change: Partial<S>): void;
  forceUpdate(): void;
}
export function useState<T>(first: T | (() => T)): [T, (next: T | ((now: T) => T)) => void];
export function useEffect(effect: () => void | (() => void), inputs?: readonly unknown[]): void;
export function useLayoutEffect(effect: () => void | (() => void), inputs?: readonly unknown[]): void;
export function useRef<T>(first: T): { current: T };
export function useMemo<T>(make: () => T, inputs: readonly unknown[]): T;
export function useCallback<T extends Function>(call: T, inputs: readonly unknown[]): T;
export function useErrorBoundary(seen?: (error: any) => void): [any, () => void];
