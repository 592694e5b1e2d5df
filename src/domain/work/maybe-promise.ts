/**
 * A value that is nearly always known at once and sometimes must be fetched. Every promise costs the hot path time, so a
 * known value is passed on directly.
 */
export type MaybePromise<T> = T | Promise<T>;

/** Applies `use` now when the value is known, else when it arrives. */
export function whenKnown<T, R>(value: MaybePromise<T>, use: (value: T) => MaybePromise<R>): MaybePromise<R> {
  return value instanceof Promise ? value.then(use) : use(value);
}
