/** A value that is nearly always known at once, and sometimes must be fetched: a promise costs the hot path time. */
export type MaybePromise<T> = T | Promise<T>;
