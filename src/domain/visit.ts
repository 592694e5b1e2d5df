import type { AppError } from '../errors.ts';

/** A request as far as it matters who sent it; one of Node's is one. */
export type Visit = {
  readonly headers: RequestHeaders;
  readonly socket: { readonly remoteAddress?: string | undefined };
};

/**
 * How the store is asked about something that a stranger may have made up, such as a key or a slug: at once, in a queue,
 * or not at all, and then it throws.
 */
export type Lookup = <Found>(find: () => Promise<Found>) => Promise<Found>;

export const lookUpDirectly: Lookup = (find) => find();

/** What is done about addresses whose requests are refused again and again. */
export type Strangers = {
  /** How the store may be asked about what a request says. What is remembered needs no question. */
  lookFor(visit: Visit): Lookup;
  /**
   * Notes with which status a request was refused before it was known who sent it. Gives the error to answer with instead
   * once its address is above its limit.
   */
  onRefused(visit: Visit, status: number): AppError | undefined;
};

/** Request headers as Node gives them: lower-case names. */
export type RequestHeaders = { readonly [name: string]: string | string[] | undefined };
