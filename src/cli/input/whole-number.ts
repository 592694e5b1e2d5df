import { InvalidArgumentError } from 'commander';

/** Reads a whole number from 1. @throws InvalidArgumentError, which says what is allowed */
export function wholeUpTo(most: number): (text: string) => number {
  return (text) => read(text, 1, most);
}

/** Reads a whole number, or 0 for none. @throws InvalidArgumentError, which says what is allowed */
export function wholeOrNone(most: number): (text: string) => number {
  return (text) => read(text, 0, most);
}

function read(text: string, least: number, most: number): number {
  const value = /^\d{1,10}$/.test(text) ? Number(text) : -1;
  if (value < least || value > most) throw new InvalidArgumentError(`allowed: a whole number from ${least} to ${most}`);
  return value;
}
