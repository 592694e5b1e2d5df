/**
 * For what is nearly always known at once and sometimes must be fetched. Every promise costs the hot path time, so what
 * is known is handed on as it is.
 */
export type MaybePromise<T> = T | Promise<T>;

/** Applies `use` now when the value is here, else when it comes. */
export function whenKnown<T, R>(value: MaybePromise<T>, use: (value: T) => R): MaybePromise<R> {
  return value instanceof Promise ? value.then(use) : use(value);
}
